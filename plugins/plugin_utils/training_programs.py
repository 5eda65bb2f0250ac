# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of the role training, which run with the options of the role."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path

from ansible.plugins.action import ActionBase

from ..module_utils.core import run_request
from ..module_utils.durable.calls import Result
from ..module_utils.durable.program import MemoryJournal, Program
from ..module_utils.errors import CollectionError, Refused, summary
from ..module_utils.slurm.job_states import task_of
from ..module_utils.slurm.own_job import OwnSlurmJob, queued_runs
from ..module_utils.training.launch import data, folder
from ..module_utils.training.launch.mpirun import LauncherError, rank_command
from ..module_utils.training.programs import ask, fabric_check, stop, train, vary
from ..module_utils.training.results import manifest
from ..module_utils.training.running import busy
from ..module_utils.training.runs import job_search, node_setup, rank_words, run_source, training_run
from ..module_utils.training.runs.rank_words import refused, split_command
from ..module_utils.training.runs.training_options import Options
from ..module_utils.training.runs.training_run import KUBERNETES, SLURM, Node, TrainingRun
from ..module_utils.training.runs.variations import variations
from . import packed_folder, restartable_jobs
from .interruption import shown_if_interrupted
from .modules import Modules
from .node_modules import NodeModules, Variables
from .requested_options import ROLE, RequestedOptions
from .run_limit import limit_of
from .training_site import HOSTS, TrainingSetup, describe, earlier_run, requirements_of, with_variables
from .world import NodeWorld, show

# Questions are short: more nodes than Ansible has forks are asked at the same time.
AT_ONCE = 32
DATA_WORD = "{data}"


def _train(p: Program, setup: TrainingSetup, *, is_check: bool) -> Result:
    if setup.options["sweep"]:
        return _vary(p, setup, is_check=is_check)
    setup, run = setup.healthy()
    if is_check:
        node_setup.prepare(setup.calls, run, setup.site.library)
        setup.calls.show(train.planned(run))
        return {"changed": True, "run": run.name}
    setup.require_free(run)
    text = f"The training run {run.name} continues. {train.ways(run)}"
    # A controller that was suspended must not take the job for silent, and stop it.
    with shown_if_interrupted(lambda: text), setup.calls.awake_clock():
        return train.train(p, setup.site, run)


def _vary(p: Program, setup: TrainingSetup, *, is_check: bool) -> Result:
    groups = setup.variations()
    runs = [each for group in groups for each in group]
    if is_check:
        node_setup.prepare(setup.calls, setup.varied(runs[0]), setup.site.library)
        for each in runs:
            setup.calls.show(f"{each.name} on {', '.join(each.nodes)}: {' '.join(each.command)}")
        return {"changed": True}
    # Other runs train on any of the nodes, and Slurm has an order of those of each group.
    for group in groups if setup.options["backend"] == SLURM else groups[:1]:
        setup.require_free(replace(setup.varied(group[0]), first=group[0].name.rpartition(".")[0]))
    left = (
        "The submitted runs continue." if setup.options["backend"] == SLURM else "The runs that have started continue."
    )
    with shown_if_interrupted(lambda: f"{left} The same command continues the sweep."), setup.calls.awake_clock():
        return vary.vary(p, setup.site, groups, setup.varied, setup.known)


def _start(p: Program, setup: TrainingSetup, *, is_check: bool) -> Result:
    setup, run = setup.healthy()
    if is_check:
        return {"changed": True}
    started = train.start(p, setup.site, run)
    slurm = {"slurm": OwnSlurmJob(setup.calls, run).place()} if run.o["backend"] == SLURM else {}
    return {"changed": True, **job_search.run_of_job(run, started.launched), **slurm}


def _find(_p: Program, setup: TrainingSetup, *, is_check: bool) -> Result:
    del is_check
    nodes = setup.all_nodes()
    jobs = job_search.jobs_on(setup.calls, nodes)
    found = job_search.only_job(setup.options, jobs, nodes, setup.known(str(setup.options["name"])))
    if found["runs"] and setup.options["backend"] == KUBERNETES:
        run = setup.named(str(found["runs"][0]["name"]))
        found.update(job_search.run_of_job(run, setup.site.job_of(run).found()))
    if found["runs"] and setup.options["backend"] == SLURM:
        found["slurm"] = OwnSlurmJob(setup.calls, setup.named(str(found["runs"][0]["name"]))).place()
    if found["runs"]:
        found["restart"] = restartable_jobs.kept(setup, str(found["runs"][0]["name"]))
    others = busy.others(
        str(found.get("run_dir", "")), str(found.get("launcher", "")), jobs, nodes, setup.continued_runs
    )
    return {**found, "asked": jobs, "others": others, "changed": False}


def _list(_p: Program, setup: AskingSetup, *, is_check: bool) -> Result:
    del is_check
    o, nodes = setup.options, setup.all_nodes()
    # A comparison needs only files of this controller.
    jobs = {} if o["compare"] else job_search.undescribed_jobs(setup.calls, nodes)
    queued = queued_runs(setup.calls, o) if o["backend"] == SLURM and not o["compare"] else []
    return {**job_search.listed(setup.calls, o, jobs, nodes, queued), "changed": False}


def _stop(p: Program, setup: AskingSetup, *, is_check: bool) -> Result:
    run = setup.named()
    runs = setup.members(run) or [run]
    if is_check:
        left = [each for each in runs if stop.is_left(setup.site, each)]
        return _shown({"lines": [f"would stop {each.name}" for each in left], "changed": bool(left)})
    return stop.stop(p, setup.site, run) if runs == [run] else stop.stop_sweep(p, setup.site, runs)


def _logs(_p: Program, setup: AskingSetup, *, is_check: bool) -> Result:
    del is_check
    return _shown(ask.logs(setup.site, setup.requested(), int(setup.options["lines"])))


def _fetch(_p: Program, setup: AskingSetup, *, is_check: bool) -> Result:
    return _shown(ask.fetch(setup.site, setup.requested(), str(setup.options["fetch"]), is_check=is_check))


def _execute(_p: Program, setup: AskingSetup, *, is_check: bool) -> Result:
    command = rank_words.split_command(setup.options["exec"])
    return _shown(ask.execute(setup.site, setup.requested(), command, is_check=is_check))


def _shown(result: Result) -> Result:
    for line in result.pop("lines"):
        show(line)
    return result


def _sweep(p: Program, setup: TrainingSetup, *, is_check: bool) -> Result:
    if is_check:
        setup.calls.show(vary.remaining(setup.site, setup.options)["summary"])
        return {"changed": True}
    with setup.calls.awake_clock():
        vary.sweep(p, setup.site, setup.options, setup.point)
    return {"changed": True}


def _fabric_check(p: Program, setup: TrainingSetup, *, is_check: bool) -> Result:
    fabric_check.require_pairs(setup.options)
    run = setup.fabric()
    if is_check:
        prepared = node_setup.prepare(setup.calls, run, setup.site.library)
        setup.calls.show(fabric_check.planned(run, fabric_check.pairs_of(run, prepared)))
        return {"changed": True}
    with setup.calls.awake_clock():
        return {**fabric_check.compared(p, setup.site, setup.fabric), "changed": True}


PROGRAMS: dict[str, Callable[..., Result]] = {
    "training_exec": _execute,
    "training_fabric_check": _fabric_check,
    "training_fetch": _fetch,
    "training_find": _find,
    "training_list": _list,
    "training_logs": _logs,
    "training_start": _start,
    "training_stop": _stop,
    "training_sweep": _sweep,
    "training_train": _train,
}


# The programs whose playbooks have one host, and that ask nodes themselves.
ASKING = ("training_exec", "training_fetch", "training_list", "training_logs", "training_stop")
DESCRIBE, REQUEST = "training_describe", "training_request"


def run(action: ActionBase, task_vars: Variables, name: str, *, is_check: bool) -> Result:
    """Return the result of a program, or how the host of the task is reached."""
    try:
        if name == DESCRIBE:
            return {**describe(action, task_vars), "changed": False}
        if name == REQUEST:
            return check_request(action, task_vars)
        if name not in PROGRAMS:
            raise Refused("name", "run a program", f"there is no {name}", "correct the name")
        setup = (AskingSetup if name in ASKING else TrainingSetup)(action, task_vars)
        # The state of a run lies in files, so that another controller does not need the journal of this one.
        program = Program(MemoryJournal(), setup.calls)
        return PROGRAMS[name](program, setup, is_check=is_check)
    except CollectionError as error:
        return {"failed": True, "msg": str(error)}


class Nodes(Mapping[str, Node]):
    """The nodes by their names; each is described when it is needed."""

    def __init__(self, names: Sequence[str], describe_one: Callable[[str], Node]) -> None:
        self._names, self._describe = dict.fromkeys(names), describe_one

    def __getitem__(self, name: str) -> Node:
        if name not in self._names:
            raise KeyError(name)
        return self._describe(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class AskingSetup(TrainingSetup):
    """The setup of such a program; the hosts are those that a play on the workers would have."""

    def __init__(self, action: ActionBase, task_vars: Variables) -> None:
        super().__init__(action, {**task_vars, HOSTS: _hosts(task_vars)})
        nodes = NodeModules(action, self._vars, at_least_at_once=AT_ONCE)
        self.calls = NodeWorld(Modules(action, self._vars), nodes, ROLE)
        self._place = ("", "")

    @cached_property
    def options(self) -> Options:
        """Return the options; those that follow from facts have their defaults."""
        return {**self._requested.options({}), "interfaces": {}}

    def all_nodes(self) -> Mapping[str, Node]:
        """Return every node of the inventory's workers within the limit."""
        return Nodes(self._vars[HOSTS], self._described_here)

    def named(self, name: str = "") -> TrainingRun:
        """Return the named run with the manifest of its latest attempt here; only its owner's files are touched."""
        o: Options = {**self.options, "name": name or self.options["name"]}
        if not o["name"]:
            raise Refused("training_name", "find the run", "it is empty", "name a run that dml.vsphere.runs lists")
        known = run_source.latest_attempt(self._own, training_run.name_of_run(o, ""))
        run_source.require_owner(o, known)
        own = str(known.get("name") or o["name"])
        o = {**run_source.with_place(o, known), "name": own}
        run = TrainingRun(o, self.all_nodes(), own, own, self.requested_by, known=known)
        self._place = (str(known.get("launcher") or ""), run.dir)
        return run

    def members(self, run: TrainingRun) -> list[TrainingRun]:
        """Return the runs of a sweep that is named like one; empty for a run, and if a run does not wait in a queue."""
        if run.known or run.o["backend"] != SLURM:
            return []
        found = Path(str(run.o["results"])).glob(f"{glob.escape(run.name)}.*/{manifest.FILE}")
        numbers = sorted(int(number) for path in found if (number := task_of(path.parent.name)[1]))
        return [self.named(f"{run.name}.{number}") for number in numbers]

    def requested(self) -> TrainingRun:
        """Return the named run with its program; if this controller does not know it, all workers are asked."""
        run = self.named()
        known = ask.known_manifest(self.site, run)
        if not known:
            return run
        run = replace(run, o=run_source.with_followed(run.o, known), known=known)
        self._place = (run.launcher, run.dir)
        return run

    def _described_here(self, name: str) -> Node:
        """Return how a node is reached, from its variables; those of the host of the task are not those of others."""
        hosts = self._vars["hostvars"]
        own = hosts.raw_get(str(self._vars["inventory_hostname"]))
        of_play = {key: value for key, value in self._vars.items() if key not in own or key in (HOSTS, "hostvars")}
        facts = {"ansible_local": {"dml_node": {"user": self._owner}}}
        return describe(
            self._action, {**of_play, **hosts.raw_get(name), "ansible_facts": facts, HOSTS: self._vars[HOSTS]}
        )

    @cached_property
    def _owner(self) -> str:
        """Return the user of the run, as its launcher reports the owner of its folder; empty for the login user."""
        launcher, folder = self._place
        if launcher not in self._vars[HOSTS]:
            return ""
        found = (
            self.calls.on(launcher, "ansible.builtin.stat", {"path": folder, "get_checksum": False}).get("stat") or {}
        )
        owner, login = str(found.get("pw_name") or ""), self._vars["hostvars"][launcher].get("ansible_user")
        return "" if owner in ("root", login) else owner


def _hosts(task_vars: Variables) -> list[str]:
    """Return the workers within the limit, in the order of the inventory; the play has only the first of them."""
    hosts = list(task_vars[HOSTS])
    request = run_request.RunRequest((), groups=task_vars["groups"], limit=limit_of(task_vars))
    workers = run_request.in_order(run_request.worker_pattern(task_vars.get("guests")), request)
    return workers if workers[:1] == hosts else hosts


def check_request(action: ActionBase, task_vars: Variables) -> Result:
    """Return all refusals as the message of a failure."""
    try:
        requested = RequestedOptions(action, task_vars)
        o = requested.options({})
        is_new = requested.names_program or not (o["name"] or o["resume"] or o["repeat"])
        checks: list[Callable[[], object]] = [
            lambda: training_run.require_nodes(o["nodes"], task_vars["ansible_play_hosts_all"])
        ]
        checks += _checks_of_program(o) if is_new else [lambda: _require_earlier(o)]
    except CollectionError as error:
        return {"failed": True, "msg": str(error)}
    errors = [error for error in map(_refusal_of, checks) if error]
    return {"failed": True, "msg": summary(errors)} if errors else {"changed": False}


def _refusal_of(check: Callable[[], object]) -> CollectionError | None:
    try:
        check()
    except CollectionError as error:
        return error
    return None


def _require_earlier(o: Options) -> None:
    """Check the run whose program a new one takes; a run that is followed may be known to its launcher only."""
    if source := earlier_run(o):
        run_source.require_source(with_variables(o, source), source, takes_program=True)


def _checks_of_program(o: Options) -> Iterator[Callable[[], object]]:
    yield lambda: training_run.name_of_run(o, "run")
    yield lambda: earlier_run(o)
    yield lambda: _require_data(o)
    if o["sweep"]:
        name, size = o["name"] or "run", int(o["sweep_size"])
        yield lambda: variations(name, o["sweep"], split_command(o["command"]), o["nodes"], size)
    yield lambda: _require_runnable(o)
    if not o["folder"]:
        return
    yield lambda: requirements_of(o)
    left_out = [*o["left_out"], *([f"/{o['outputs']}"] if o["resume"] else [])]
    path, files = o["folder"], cache(lambda: packed_folder.files_of(o["folder"], left_out))
    yield lambda: folder.check(path, files(), o["folder_limit"])
    yield lambda: folder.check_secrets(path, packed_folder.secrets_of(path, files(), o["include"]))
    yield lambda: folder.check_command(path, split_command(o["command"]), files())


def _require_runnable(o: Options) -> None:
    """Refuse a command that cannot be run on the nodes."""
    words = split_command(o["command"])
    if not o["data"] and any(DATA_WORD in word for word in words):
        cause = f"it has {DATA_WORD}, and there is no training_data"
        raise Refused("training_command", "run it", cause, "set training_data, or write the path into the command")
    try:
        rank_command(words, "python", "")
    except LauncherError as error:
        raise refused(error) from error


def _require_data(o: Options) -> None:
    if o["data"]:
        data.sha256_of(o["data"], o["data_sha256"])
        if not data.is_url(o["data"]):
            packed_folder.data_files(o["data"], o["data_limit"])
