# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the training jobs that a change would stop, and refuses to stop them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins.action import ActionBase

from ..module_utils.core import observer_clock
from ..module_utils.durable.calls import Arguments, NodeCalls, Result, required
from ..module_utils.durable.program import MemoryJournal, Program
from ..module_utils.errors import CollectionError, WholeError
from ..module_utils.jobs import running_job
from ..module_utils.slurm.job_states import is_named
from ..module_utils.training.running import busy
from ..module_utils.trials.folder import trial_folder
from .modules import Modules
from .node_modules import NodeModules, Variables
from .slurm_place import with_place
from .world import NodeWorld

JOBS = "dml.vsphere.training_info"
# The options of a job that say where it runs.
PLACE = ("launcher", "user", "run_dir", "records", "nodes", "kubernetes", "slurm")
# The options with which the jobs are read again before hosts leave service.
READ_AGAIN = ("cluster", "guests", "unread_is_idle", "ignored", "remedies")
# The variables with which a user names the job of a cluster.
NAMES_OF_JOB = ("maintenance_job", *(f"vmotion_test_{name}" for name in ("run_dir", "kubernetes", "slurm")))
ARGUMENTS: dict[str, Any] = {
    "cluster": {"type": "str", "default": ""},
    "guests": {"type": "list", "elements": "str", "default": []},
    "unread_is_idle": {"type": "bool", "default": False},
    "ignored": {"type": "str", "default": ""},
    "interrupt": {"type": "bool", "default": False},
    "remedies": {"type": "list", "elements": "str", "choices": list(busy.REMEDIES), "default": []},
    "wait": {"type": "int", "default": 0},
    "under_training": {"type": "bool", "default": False},
    "around": {"type": "dict", "default": {}},
    "windows": {"type": "path", "default": ""},
}


class JobSearch:
    """The search for the jobs on the workers that a task concerns."""

    def __init__(self, calls: NodeCalls, given: Mapping[str, Any], task_vars: Variables) -> None:
        self._calls, self._given, self._vars = calls, given, task_vars
        self._hosts: Mapping[str, Any] = task_vars["hostvars"]

    def job(self) -> Mapping[str, Any]:
        """Return the job around which the hosts are changed; refuse an incomplete one, and a change without one."""
        given = self._given
        if given["around"]:
            running_job.require_complete(given["around"], under_training=given["under_training"])
            running_job.require_one_cluster(clusters_around_job(self._vars))
            # A folder with a dot is not one of a window.
            results = os.path.join(os.path.abspath(given["windows"] or "."), ".jobs")
            return {**given["around"], "restart": running_job.restart_of(given["around"], results)}
        if not given["under_training"]:
            return {}
        running_job.require_one_cluster(clusters_around_job(self._vars))
        if self._window and not running_job.first_found(self._found()):
            # Its job ended while no controller was at work: the host at hand is finished, and the job is judged.
            return {key: self._window.get(key) for key in PLACE}
        limit, workers = str(self._vars.get("ansible_limit") or ""), self._vars["groups"].get("workers") or []
        name = self._vars["inventory_hostname"]
        return running_job.require_found(name, self._found(), limit=limit, has_workers=bool(workers))

    def place(self, action: ActionBase) -> None:
        """Find the workers of a job in Slurm; an unfinished window knows them, also after the end of its job."""
        named = self._given["around"]
        if not named.get("slurm"):
            return
        before = self._window
        is_same = is_named(str((before.get("slurm") or {}).get("job")), named["slurm"].get("job"))
        known = {key: before.get(key) for key in PLACE} if is_same else {}
        job = {**named, **(known or ({} if before else with_place(action, self._vars, named)))}
        records = busy.records_of(job)
        own = re.escape(busy.name_of(records)) if records else ""
        self._given = {**self._given, "around": job, "ignored": f"{own}$"}

    def require_running(self, nodes: NodeModules) -> None:
        """Refuse a named job that does not run, before the first write; an unfinished window judges its job itself."""
        job = self._given["around"]
        launcher = str(job.get("launcher") or "")
        if not job or self._window or (launcher not in self._hosts and not job.get("kubernetes")):
            return
        on_launcher = nodes.as_user(str(job["user"])) if job.get("user") else nodes
        login = partial(nodes.on, str(job["slurm"]["login"])) if job.get("slurm") else None
        running_job.required_to_run(
            running_job.job_from(self._calls.here, partial(on_launcher.on, launcher), job, login)
        )

    def answers(self) -> dict[str, Result]:
        """Return the jobs on each worker; refuse to stop one of them, unless it may be stopped or ends in time."""
        given, calls, requested = self._given, self._calls, self._known_answers()
        found = self.replies(requested)
        if given["interrupt"] or not busy.busy(found):
            self._wait_for_boots(found)
        for line in busy.unread(found):
            calls.show(line)
        refused = busy.refusal(found, given["remedies"])
        if refused and given["wait"]:
            refused = self._after_waiting(found)
        if refused and not given["interrupt"] and not self._is_around_found_job:
            raise WholeError(refused)
        return found

    def replies(self, known: Mapping[str, Result] | None = None) -> dict[str, Result]:
        """Return the jobs on each worker; those that are known already are not asked."""
        known = known or {}
        return {**known, **self._ask([worker for worker in self._workers() if worker not in known])}

    def unread(self, answers: Mapping[str, Result]) -> str:
        """Return why running guests of the cluster count as busy; empty if the jobs of all are known."""
        return str(self._unread_guests(answers)["unread_error"]) if self._must_be_read else ""

    def unread_workers(self, answers: Mapping[str, Result]) -> dict[str, str]:
        """Return the running guests whose jobs are unknown, with the reasons; none if the inventory has no workers."""
        unread = self._unread_guests(answers)["unread"] if answers else []
        return {str(guest["name"]): str(guest["reason"]) for guest in unread}

    @cached_property
    def _window(self) -> Mapping[str, Any]:
        """Return the settings of the window that an earlier controller left unfinished; empty if there is none."""
        if not self._given["windows"]:
            return {}
        cluster = trial_folder.named(self._given["cluster"], self._calls.here)
        folder = trial_folder.find("", os.path.abspath(self._given["windows"]), cluster)
        settings = (trial_folder.settings_in(folder) if folder else None) or {}
        return settings if settings.get("window") else {}

    @property
    def _must_be_read(self) -> bool:
        """Whether running guests whose jobs are unknown count as busy.

        Those of a job that the user names need not be hosts of the inventory.
        """
        return bool(self._given["cluster"] and not (self._given["unread_is_idle"] or self._given["around"]))

    @property
    def _is_around_found_job(self) -> bool:
        return bool(self._given["under_training"] and not self._given["around"])

    def _found(self) -> list[Mapping[str, Any]]:
        """Return what the role training found on the workers."""
        found = [self._hosts[name].get("training_started") for name in self._vars["groups"].get("workers") or []]
        return [each for each in found if isinstance(each, Mapping)]

    def _known_answers(self) -> dict[str, Result]:
        """Return the answers of the workers that the search for the job around which hosts are changed has asked."""
        found = self._found() if self._is_around_found_job else []
        return dict(next((each["asked"] for each in found if each.get("asked")), {}))

    def _workers(self) -> list[str]:
        """Return the workers of the cluster, or all hosts of a play on workers.

        A limit to a cluster does not exclude its workers. A worker of a static inventory does not name its cluster.
        """
        if not self._given["cluster"]:
            return list(self._vars["ansible_play_hosts_all"])
        here = ("", self._vars["inventory_hostname"])
        workers = self._vars["groups"].get("workers") or []
        return [name for name in workers if str(self._hosts[name].get("vm_cluster") or "") in here]

    def _ask(self, workers: list[str]) -> dict[str, Result]:
        answers = self._calls.on_each(JOBS, {worker: {} for worker in workers})
        return {name: self._selected(name, answer) for name, answer in answers.items()}

    def _selected(self, worker: str, answer: Result) -> Result:
        """Return an answer without the ignored jobs, and without its name, so that equal reasons are grouped."""
        jobs = {"jobs": busy.selected(answer["jobs"], "", self._given["ignored"])} if "jobs" in answer else {}
        return {**answer, **jobs, "msg": str(answer.get("msg") or "").removeprefix(f"{worker}: ")}

    def _unread_guests(self, answers: Mapping[str, Result]) -> Result:
        """Return the running guests of the cluster whose jobs are unknown, as vCenter shows them."""
        addresses = {name: self._hosts[name].get("ansible_host") for name in self._vars["groups"].get("workers") or []}
        options = {"cluster": self._given["cluster"], "names": self._given["guests"], "jobs": dict(answers)}
        known = {name: address for name, address in addresses.items() if address}
        return dict(required(self._calls.here("worker_vm_info", {**options, "addresses": known})))

    def _wait_for_boots(self, found: dict[str, Result]) -> None:
        """Ask the workers again whose guests boot, until they answer or must have booted."""
        if not self._must_be_read or all("jobs" in answer for answer in found.values()):
            return

        def booting() -> dict[str, float]:
            unread = self._unread_guests(found)["unread"]
            return {guest["name"]: guest["boots"] for guest in unread if guest["boots"]}

        def have_booted() -> bool:
            found.update(self._ask([worker for worker, answer in found.items() if "jobs" not in answer]))
            return not booting()

        try:
            waiting = booting()
        except CollectionError:
            return  # the refusal asks vCenter again, after the answers of the workers are shown
        if waiting:
            seconds = max(waiting.values())
            self._calls.show(f"waits at most {seconds:.0f} s for guests that boot: {', '.join(waiting)}")
            self._await(have_booted, seconds)

    def _after_waiting(self, found: dict[str, Result]) -> str:
        """Wait for the end of the jobs, and return why the change is still refused; empty if they have ended."""
        calls, seconds = self._calls, self._given["wait"]
        for worker, titles in busy.busy(found).items():
            calls.show(f"{worker}: the training job {titles} runs. The new run waits at most {seconds} s for its end.")

        def have_ended() -> bool:
            found.update(self._ask(list(busy.busy(found))))
            return not busy.busy(found)

        if not self._await(have_ended, seconds):
            calls.show(f"{', '.join(busy.busy(found))}: the training job still runs after {seconds} s.")
        return busy.refusal(found, self._given["remedies"])

    def _await(self, condition: Callable[[], bool], seconds: float) -> bool:
        with observer_clock.running():
            return Program(MemoryJournal(), self._calls).wait(condition, seconds)


def clusters_around_job(task_vars: Variables) -> list[str]:
    """Return the clusters of the play whose variables name the same job as those of this one, or none."""
    hosts = task_vars.get("hostvars") or {}

    def named(cluster: str) -> list[Any]:
        return [hosts[cluster].get(name) for name in NAMES_OF_JOB]

    clusters = [name for name in task_vars.get("ansible_play_hosts_all") or [] if name in hosts]
    return [name for name in clusters if named(name) == named(task_vars["inventory_hostname"])]


def run(action: ActionBase, task_vars: Variables, options: Arguments, *, is_check: bool) -> Result:
    """Return the job around which hosts are changed, the reason to refuse a change, and how to check the jobs again.

    Check mode stops no job, so that it asks no worker.
    """
    checked = ArgumentSpecValidator(ARGUMENTS).validate(options)
    if checked.error_messages:
        return {"failed": True, "msg": f"The options of running_jobs are invalid: {'; '.join(checked.error_messages)}"}
    given = checked.validated_parameters
    nodes = NodeModules(action, task_vars)
    # Only root sees the jobs of all users.
    nodes = nodes.as_user("root") if given["cluster"] else nodes
    search = JobSearch(NodeWorld(Modules(action, task_vars), nodes, "training"), given, task_vars)
    try:
        search.place(action)
        job = _read_again_as(search.job(), given)
        check = {} if given["interrupt"] else {name: given[name] for name in READ_AGAIN}
        found = {"changed": False, "job": job, "unread_error": "", "job_check": check}
        if is_check:
            return found
        search.require_running(NodeModules(action, task_vars))
        answers = search.answers()
        if not given["cluster"]:
            _require_read(answers)
            return found
        return {**found, "unread_error": search.unread(answers)}
    except CollectionError as error:
        return {"failed": True, "msg": str(error)}


def _read_again_as(job: Mapping[str, Any], given: Mapping[str, Any]) -> Result:
    """Return a job with the options with which its window reads the other jobs before each host."""
    # The guests of a job that the user names need not be hosts of the inventory.
    is_idle = given["unread_is_idle"] or bool(given["around"])
    return {**job, "ignored_jobs": given["ignored"], "unread_is_idle": is_idle} if job else {}


def beside(modules: Modules, cluster: str, settings: Mapping[str, Any]) -> Result:
    """Return the training jobs on the workers of a cluster besides that of a window, and why others are unknown.

    A test has no option that makes such workers idle: it gets each of them (``unread_workers``).
    """
    window = settings["window"]
    given: Result = {"cluster": cluster, "ignored": window.get("ignored_jobs") or "", "guests": []}
    search = _search_again(modules, {**given, "unread_is_idle": window.get("unread_is_idle", True)})
    try:
        answers = search.replies()
        hosts = modules.task[1]["hostvars"]
        nodes: busy.Nodes = {name: hosts[name]["training_node"] for name in answers if "training_node" in hosts[name]}
        jobs = busy.others(busy.records_of(settings), str(settings["launcher"]), answers, nodes)
        unread_workers = {} if window else search.unread_workers(answers)
        return {"jobs": jobs, "unread": search.unread(answers), "unread_workers": unread_workers}
    except CollectionError as error:
        return {"failed": True, "msg": str(error)}


def again(modules: Modules, options: Arguments) -> Result:
    """Fail as ``run`` does if jobs run on the workers of a cluster; return why they are not known."""
    search = _search_again(modules, options)
    try:
        answers = search.replies()
        if refused := busy.refusal(answers, options["remedies"]):
            raise WholeError(refused)
        return {"unread": search.unread(answers)}
    except CollectionError as error:
        return {"failed": True, "msg": str(error)}


def _search_again(modules: Modules, given: Arguments) -> JobSearch:
    """Return the search for the jobs on the workers of a cluster, of which only root sees those of all users."""
    action, task_vars = modules.task
    calls = NodeWorld(modules, NodeModules(action, task_vars).as_user("root"), "training")
    return JobSearch(calls, {**given, "around": {}}, task_vars)


def require_free(action: ActionBase, task_vars: Variables, ignored: str, wait: int) -> None:
    """Refuse nodes on which other jobs than the ignored ones train, or wait for their end."""
    given = {"ignored": ignored, "wait": wait, "remedies": ["wait"], "interrupt": False, "cluster": "", "around": {}}
    calls = NodeWorld(Modules(action, task_vars), NodeModules(action, task_vars), "training")
    _require_read(JobSearch(calls, {**given, "under_training": False}, task_vars).answers())


def _require_read(answers: Mapping[str, Result]) -> None:
    """Refuse workers that could not be read: nothing else asks whether they train."""
    lines = busy.unread(answers)
    if lines:
        raise WholeError(". ".join(lines))
