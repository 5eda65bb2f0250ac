# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the runs of the role training from its options, its nodes and the manifests of earlier runs."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from ..module_utils.errors import NotFound, Refused
from ..module_utils.kubernetes.own_mpijob import OwnMpiJob
from ..module_utils.maintenance.lock.holder import current_user
from ..module_utils.slurm.own_job import OwnSlurmJob, cancel_runs, submit_array
from ..module_utils.training.programs.follow import TrainingSite
from ..module_utils.training.results import saved_manifests
from ..module_utils.training.results.manifest import REPORTED, Manifest
from ..module_utils.training.runs import gpu_gate, job_search, run_source, training_run
from ..module_utils.training.runs.any_job import OwnJob, OwnMpirun
from ..module_utils.training.runs.rank_words import split_command
from ..module_utils.training.runs.training_options import Options
from ..module_utils.training.runs.training_run import KUBERNETES, MPI, SLURM, Node, TrainingRun
from ..module_utils.training.runs.variations import Variation, variations
from ..module_utils.training.transport import node_transport
from . import packed_folder, running_jobs
from .modules import ROOT, Modules
from .node_modules import NodeModules, Variables, require_user
from .requested_options import PROJECT, ROLE, RequestedOptions, answering, dependencies, read_folder
from .role_options import role_options
from .world import NodeWorld

LIBRARY = ROOT / "roles" / ROLE / "files"
# The options that differ between nodes, which the task ``describe`` has read on each of them.
OF_NODES = ("address", "interface", "reach", "kubernetes", "slurm", "user")
OF_ONE_NODE = "training_node"
HOSTS = "ansible_play_hosts_all"
# The job of a run by the backend that starts it.
JOBS: dict[str, Callable[[NodeWorld, TrainingRun], OwnJob]] = {
    MPI: OwnMpirun,
    KUBERNETES: OwnMpiJob,
    SLURM: OwnSlurmJob,
}


class TrainingSetup:
    """The options of the role for the host of the task, the described nodes, and the world of a program.

    ``given`` are options that outweigh those of an earlier run, in addition to those of the command line.
    """

    def __init__(self, action: ActionBase, task_vars: Variables, given: Collection[str] = ()) -> None:
        self._action, self._vars, self._given = action, task_vars, given
        self._requested = RequestedOptions(action, task_vars, given)
        self.calls = NodeWorld(Modules(action, task_vars), NodeModules(action, task_vars), ROLE)

    @cached_property
    def options(self) -> Options:
        """Return the options; defaults that follow from the nodes have the variable ``__training_known``."""
        training_run.require_nodes(self._requested.nodes, self._vars[HOSTS])
        known = node_transport.default_settings({name: self._facts(name) for name in self._requested.nodes})
        return {**self._requested.options(known), "interfaces": known["interfaces"]}

    @property
    def site(self) -> TrainingSite:
        job_of, results = partial(JOBS[self.options["backend"]], self.calls), str(self.options["results"])
        arrays = (submit_array, cancel_runs) if self.options["backend"] == SLURM else ()
        return TrainingSite(self.calls, job_of, str(LIBRARY), results, *(partial(each, self.calls) for each in arrays))

    def run(self) -> TrainingRun:
        """Return the run that the options ask for: a new one, or one that is followed, resumed or repeated."""
        o = self.options
        own = run_source.latest_attempt(self._own, o["name"]) if o["name"] else {}
        run_source.require_owner(o, own)
        if o["name"] and (run_source.is_taken_up(o, own) or not self._requested.names_program):
            o = {**run_source.with_place(o, own), "name": own.get("name") or o["name"]}
            reported = job_search.reported_manifest(self.calls, o, self.all_nodes(), own)
            known = job_search.known_manifest(self.calls, o, own, reported)
            if known:
                followed = run_source.with_followed(with_variables(o, known), known)
                return run_source.taken_up(self._made(followed, known_job=known, requirements=""), known)
        return self._new(own)

    def healthy(self) -> tuple[TrainingSetup, TrainingRun]:
        """Return the run on nodes with healthy GPUs, and its setup: spare nodes take the place of sick ones."""
        run = self.run()
        if run.is_followed_only:
            return self, run
        on = self._answering
        spares = {name: node for name, node in self.all_nodes().items() if name in on and name not in run.nodes}
        taken = gpu_gate.replacements(self.calls, run, spares)
        if not taken:
            return self, run
        nodes = [taken.get(name, name) for name in run.nodes]
        setup = TrainingSetup(self._action, {**self._vars, "training_nodes": nodes}, ["nodes"])
        return setup, setup.run()

    def attempt(self, name: str) -> TrainingRun:
        """Return an attempt that this controller started, with its program."""
        known = self._own(name)
        if not known:
            cause = f"this controller has no {self.options['results']}/{name}/manifest.json"
            raise NotFound(f"the training run {name}", "restart it", cause, "use the controller that started it")
        o = run_source.with_followed(with_variables({**self.options, "name": name}, known), known)
        return run_source.taken_up(self._made(o, known_job=known, requirements=""), known)

    def point(self, point: Mapping[str, Any]) -> TrainingRun:
        nodes, name = list(point["on"]), str(point["name"])
        o: Options = {**self.options, "nodes": nodes, "transport": point["transport"], "name": name}
        return self._made({**o, "launcher": nodes[0]})

    def variations(self) -> list[list[Variation]]:
        """Return the runs of a program with each combination of values, by groups of nodes."""
        o = self.options
        name, command = training_run.name_of_run(o, self._moment), split_command(o["command"])
        return variations(name, o["sweep"], command, o["nodes"], int(o["sweep_size"]))

    def varied(self, variation: Variation) -> TrainingRun:
        o: Options = {**self.options, "name": variation.name, "command": variation.command, "nodes": variation.nodes}
        return self._made({**o, "launcher": variation.nodes[0], "attempts": 1, "array": o["backend"] == SLURM})

    def known(self, name: str) -> Manifest:
        """Return the manifest of the latest attempt of a run that this controller keeps; empty without one."""
        return run_source.latest_attempt(self._own, name) if name else {}

    def fabric(self, gdr: str = "") -> TrainingRun:
        """Return the run that measures the bandwidth between pairs of nodes, with a given use of GPUDirect RDMA."""
        o: Options = {**self.options, "folder": "", "data": "", "command": ["dml_pairs.py"], "ranks_per_node": 1}
        o = {**o, "gdr": gdr or o["gdr"], "resume": "", "repeat": ""}
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        end = f"-gdr-{gdr.lower()}" if gdr else ""
        return self._made({**o, "name": f"fabric-{moment}-{o['transport']}-{len(o['nodes'])}{end}"})

    def named(self, name: str = "") -> TrainingRun:
        """Return the run with the given name on all nodes of the play."""
        o: Options = {**self.options, "nodes": list(self.all_nodes()), "name": name or self.options["name"]}
        return self._made(o, known=self._own(o["name"]), any_user=True)

    def all_nodes(self) -> Mapping[str, Node]:
        """Return every node of the play that was described."""
        described = {name: self._described(name) for name in self._vars[HOSTS]}
        return {name: node for name, node in described.items() if node is not None}

    def require_free(self, run: TrainingRun) -> None:
        """Refuse nodes on which other runs train; to follow a run needs none, and in Slurm a run waits in the queue."""
        if run.is_followed_only or self.options["share_nodes"]:
            return
        if self.options["backend"] == SLURM:
            OwnSlurmJob(self.calls, run).require_usable()
            return
        # Later attempts have a number after the name, and so do the runs of a sweep.
        own = f"{re.escape(run.first)}([-.][0-9]+)?$" if self.options["name"] else ""
        ignored = self.continued_runs or own
        task_vars = {**self._vars, HOSTS: self.options["nodes"]}
        running_jobs.require_free(self._action, task_vars, ignored, int(self._templated("training_wait") or 0))

    @property
    def continued_runs(self) -> str:
        """Return the pattern of the names of runs that the change does not concern; empty without one."""
        return str(self._templated("continued_runs") or "")

    @property
    def requested_by(self) -> str:
        """Return who starts a run, and where."""
        return f"{current_user()}@{os.uname().nodename}"

    def _new(self, own: Manifest) -> TrainingRun:
        o, source = self.options, earlier_run(self.options)
        if not source:
            return self._made(o, known_job=own)
        takes_program = not self._requested.names_program
        o = with_variables(o, source) if takes_program else o
        run_source.require_source(o, source, takes_program=takes_program)
        given = {*self._given, *(key for key in run_source.PROGRAM if f"{ROLE}_{key}" in self._requested.extra)}
        options = run_source.with_program(o, source, given) if takes_program else o
        return self._made(options, source={**source, "takes_program": takes_program}, resumed=str(o["resume"]))

    def _made(self, o: Options, **more: Any) -> TrainingRun:
        nodes = {name: self._node(name, o) for name in o["nodes"]}
        off = [name for name in nodes if name not in self._answering]
        if not more.pop("any_user", False):
            training_run.require_one_user({name: node for name, node in nodes.items() if name not in off})
            training_run.require_answers(off if not more.get("known") else [])
        source, known_job = more.get("source") or {}, more.pop("known_job", {})
        name = training_run.name_of_run(o, self._moment)
        by = str((more.get("known") or known_job).get("asked_by") or self.requested_by)
        if "requirements" not in more:
            takes_program = source.get("takes_program")
            more["requirements"] = str(source.get("requirements") or "") if takes_program else requirements_of(o)
            o = {**o, "requirements": (not takes_program and requirements_file(o)) or o["requirements"]}
        return TrainingRun(o, nodes, name, name, by, **more)

    def _node(self, name: str, o: Options) -> Node:
        node = self._described(name)
        if node is None:
            raise Refused(f"training_nodes names {name}", "train", "it is not a host of this play", "correct the name")
        return {**node, "interface": node["interface"] or o["interfaces"].get(name, ""), "facts": self._facts(name)}

    def _described(self, name: str) -> Node | None:
        node: Node | None = self._vars["hostvars"][name].get(OF_ONE_NODE)
        return {**node} if isinstance(node, Mapping) and "address" in node else None

    def ansible_host(self, name: str) -> str:
        """Return the address of a node in the inventory; empty without one."""
        return str(self._vars["hostvars"][name].get("ansible_host") or "")

    def _facts(self, name: str) -> Mapping[str, Any]:
        hosts = self._vars["hostvars"]
        return dict(hosts[name].get("ansible_facts") or {}) if name in hosts else {}

    def _own(self, name: str) -> Manifest:
        """Return the manifest of a run that this controller keeps; empty without one."""
        return kept_manifest(self.options, name)

    @cached_property
    def _answering(self) -> list[str]:
        return answering(self._vars)

    @cached_property
    def _moment(self) -> str:
        return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())

    def _raw(self, name: str) -> object:
        return self._action._templar.template(self._vars[name])

    def _templated(self, name: str) -> Any:
        """Return the value of a variable of playbooks; None if it is not set."""
        return self._raw(name) if name in self._vars else None


def describe(action: ActionBase, task_vars: Variables) -> Node:
    """Return how the nodes reach the host of the task and how the controller does."""
    node = role_options(action, task_vars, ROLE, only=OF_NODES)
    facts = task_vars.get("ansible_facts") or {}
    default = str(facts.get("nodename") or task_vars["inventory_hostname"]).lower()
    name = str(node.pop("kubernetes").get("node") or default)
    slurm = str(node.pop("slurm").get("node") or facts.get("nodename") or default).partition(".")[0]
    if node["user"]:
        require_user(node["user"])
    return {
        "address": str(node["address"]),
        "interface": str(node["interface"] or ""),
        "reach": list(node["reach"]),
        "kubernetes": name,
        "slurm": slurm,
        "user": str(node["user"] or ""),
    }


def kept_manifest(o: Options, name: str) -> Manifest:
    """Return the manifest of a run in the folder of results; empty without one."""
    try:
        return saved_manifests.read(Path(o["results"]) / name)
    except NotFound:
        return {}


def earlier_run(o: Options) -> Manifest:
    """Return the manifest of the run to resume or to repeat; empty for another run."""
    name = run_source.source_name(o)
    source = kept_manifest(o, name) if name else {}
    if name and not source:
        path = f"{o['results']}/{name}/manifest.json"
        remedy = "set it to a run that dml.vsphere.runs lists, and training_results to the folder with its results"
        raise Refused(f"the training run {name}", "continue from it", f"{path} does not exist", remedy)
    return source


def with_variables(o: Options, known: Manifest) -> Options:
    """Return options with the variables in dml.yml of the folder of an earlier run; no manifest has their values.

    The folder in a manifest that a node reported is not read: its user would choose which variables the ranks get.
    """
    folder = "" if known.get(REPORTED) else str(known.get("folder") or "")
    return {**o, "environment": {**read_folder(folder).options.get("environment", {}), **o["environment"]}}


def requirements_of(o: Options) -> str:
    """Return the text of the requirements in the folder; empty if the folder has none."""
    name = requirements_file(o)
    text = packed_folder.requirements_of(o["folder"], name, o["include"]) if name else ""
    if os.path.basename(name) != PROJECT:
        return text
    return dependencies(os.path.join(o["folder"], name), text, o["requirements"] == name)


def requirements_file(o: Mapping[str, Any]) -> str:
    """Return the file with the requirements; empty if the folder has none, or only a project that an image replaces."""
    name = str(o["requirements"])
    if not o["folder"] or name != "requirements.txt" or os.path.lexists(os.path.join(o["folder"], name)):
        return name if o["folder"] else ""
    is_project = os.path.lexists(os.path.join(o["folder"], PROJECT)) and o["backend"] != KUBERNETES and not o["image"]
    return PROJECT if is_project else ""
