# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The actions around a running job: they begin, continue or end a test, a window or an observation, or plan it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from ansible.plugins.action import ActionBase

from ..module_utils.core import observer_clock
from ..module_utils.durable.calls import Result, required
from ..module_utils.durable.program import END, START, ControllerGone, Program
from ..module_utils.durable.program_journal import NAME, FileJournal
from ..module_utils.errors import CollectionError, Failed, Refused, WholeError
from ..module_utils.jobs.running_job import require_one_cluster
from ..module_utils.trials.evidence import prediction
from ..module_utils.trials.evidence.facts import Facts
from ..module_utils.trials.evidence.outcome import last_verdict, passed, results
from ..module_utils.trials.evidence.verdict_input import check_limits
from ..module_utils.trials.evidence.window_settings import require_known
from ..module_utils.trials.folder import continued_settings, trial_folder
from ..module_utils.trials.programs.maintenance_window import window
from ..module_utils.trials.programs.observe import observe
from ..module_utils.trials.programs.restart_window import restart_window
from ..module_utils.trials.programs.test import test
from ..module_utils.trials.steps import window_end, window_ways
from ..module_utils.trials.steps.trial import Trial
from ..module_utils.trials.steps.window_end import notify_of_pause
from ..module_utils.trials.steps.window_ways import AUTO, INSTEAD, MOVE, RESTART, choose
from . import facts
from .interruption import ended_by_signal, in_progress, shown_if_interrupted
from .modules import CONNECTION, Modules
from .node_modules import Variables, require_user
from .role_options import ROLE_OF_TRIALS, of_trial, requested_of_role, specification
from .running_jobs import clusters_around_job
from .slurm_place import with_place
from .trial_site import ObservationSite, TrialSite, job_of
from .world import show

REPLACED = "The window ends here, because a window with other settings takes its place."
# The options that a journal does not keep; the job names the defaults of others.
PATHS = ("dir", "folder", "metrics")
OF_THE_RUN = (*PATHS, "ending")


@dataclass(frozen=True)
class Request:
    """A run as the user asked for it: the settings that its journal keeps, the folder of all runs, and its own folder.

    ``ending`` is the reason for which an unfinished window ends instead of continuing.
    """

    settings: Mapping[str, Any]
    dir: str
    folder: str = ""
    metrics: str = ""
    ending: str = ""

    @property
    def cluster(self) -> str:
        """Return the name of the cluster."""
        return str(self.settings["cluster"])


class Kind(NamedTuple):
    """The program of an action, its plan in check mode, and what Ctrl-C does to it."""

    run: Callable[[Program, Trial], str]
    show: Callable[[Trial, Request, float], window_ways.Way]
    attended: Callable[[Facts, TrialSite], AbstractContextManager[None]]
    site: type[TrialSite] = TrialSite


def show_plan(modules: Modules, request: Request, kind: Kind) -> Result:
    """Show the plan of a run in check mode, unless an unfinished one continues, and return it."""
    before = trial_folder.unfinished_test(
        {**request.settings, "folder": request.folder, "dir": request.dir},
        trial_folder.named(request.cluster, modules.here),
    )
    if before["found"] and not before["replaced"]:
        show(f"{request.cluster}: the next run continues the unfinished one in {before['folder']}")
        return {"changed": True, "unfinished": before["folder"], "moves": []}
    site = kind.site(modules, request.cluster, Path(request.dir) / "check", "")
    trial = Trial(site, job_of(site, request.settings), Facts({**request.settings}))
    planned = kind.show(trial, request, observer_clock.now())
    if planned.why_not:
        return {"failed": True, "msg": planned.why_not}
    return {"changed": True, "unfinished": "", "moves": planned.planned.get("moves", [])}


def _show_moves(trial: Trial, request: Request, _now: float) -> window_ways.Way:
    planned = window_ways.by_moves(trial, _earlier_changes(request))
    for line in planned.lines:
        show(line)
    return planned


def _show_ways(trial: Trial, request: Request, now: float) -> window_ways.Way:
    """Show both ways through a window, and return that of the moves, with the reason why the window is impossible."""
    settings, window = trial.settings, trial.settings["window"]
    late = window_end.over(window, now, now)
    if late:
        return window_ways.Way(window_ways.MOVE, f"Cluster {request.cluster}: no window would be opened: {late}.")
    earlier = _earlier_changes(request)
    moves, restart = window_ways.by_moves(trial, earlier), window_ways.by_restart(trial, earlier, now)
    if not moves.why_not:
        for line in [*moves.lines, *prediction.lines(moves.planned["prediction"], now)]:
            show(line)
        show(f"limit of a stun: {settings['stun_budget']:.0f} s; a move that would be longer is not made")
        nodes = (settings.get("slurm") or {}).get("nodes")
        show(f"Slurm starts no job on {', '.join(nodes)} during the window" if nodes else "")
    shown = [*restart.lines, moves.in_words(), restart.in_words(), *window_end.limits_in_words(window, now)]
    for line in shown:
        show(line)
    return replace(moves, why_not=_why_impossible(window.get("by") or window_ways.MOVE, [moves, restart]))


def _why_impossible(by: str, ways: Sequence[window_ways.Way]) -> str:
    if by == window_ways.AUTO:
        show(window_ways.chosen(ways)["why"])
        return ""
    why_not = next(way.why_not for way in ways if way.by == by)
    return f"{why_not} {window_ways.INSTEAD}" if why_not and by == window_ways.MOVE else why_not


def _earlier_changes(request: Request) -> list[dict[str, Any]]:
    return trial_folder.earlier_changes(Path(request.dir), request.cluster)


def carry_out(modules: Modules, request: Request, kind: Kind) -> Result:
    """Begin or continue a run in its folder, and return its result."""
    cluster = trial_folder.named(request.cluster, modules.here)
    folder, settings = trial_folder.opened(request.folder, request.dir, cluster), request.settings
    try:
        with observer_clock.running(folder), FileJournal(folder / NAME, observer_clock.now) as journal:
            start = journal.values.get(START)
            if start is not None and not request.ending:
                continued_settings.refuse_other(folder, continued_settings.with_next_attempt(journal.values), settings)
            if start is None:
                request = replace(request, settings=_with_nodes(modules, settings))
            if start is None or not continued_settings.is_replaced(start, settings):
                return {"folder": str(folder), "changed": True, **_carried_out(modules, journal, request, kind)}
            ended = _carried_out(modules, journal, replace(request, ending=REPLACED), kind)
            if ended["failed"]:
                return {"folder": str(folder), "changed": True, **ended}
        return carry_out(modules, replace(request, folder=""), kind)
    except CollectionError as error:
        return {"failed": True, "msg": str(error), "folder": str(folder)}


def _with_nodes(modules: Modules, settings: Mapping[str, Any]) -> dict[str, object]:
    """Return the settings of a new run, with the nodes of its job if it is named by its number in Slurm, or in pods."""
    there = settings["kubernetes"]
    if not there or settings["nodes"]:
        return with_place(*modules.task, settings)
    job = required(modules.here("mpijob_info", dict(there)))["job"]
    if not job.get("workers"):
        raise WholeError(
            f"The namespace {there.get('namespace') or 'default'} has no job {there.get('name')} with workers: "
            f"it is {job['state']}. Set its name and its namespace."
        )
    return {**settings, "nodes": job["workers"]}


def _carried_out(modules: Modules, journal: FileJournal, request: Request, kind: Kind) -> Result:
    """Run the program in the folder of a journal, and write how it ended unless something is left to release."""
    folder, settings, ending = journal.path.parent, request.settings, request.ending
    is_continued = START in journal.values
    continues = f"ends the test in {folder}" if ending else f"continues the test in {folder} with its original settings"
    show(continues if is_continued else f"starts {folder}")
    kept = continued_settings.continued(journal.values.get(START) or journal.write(START, dict(settings)), settings)
    if kept["user"]:
        require_user(str(kept["user"]))
    site = kind.site(modules, kept["cluster"], folder, request.metrics)
    trial = Trial(site, job_of(site, kept), Facts(kept), requested=settings["window"], started=observer_clock.now())
    trial.is_replaced = ending == REPLACED
    with kind.attended(trial.facts, site):
        reason = _reason(kind.run, Program(journal, site, ending), trial, journal)
    site.write_metrics(trial.facts, is_running=False)
    judged = last_verdict(trial.facts)
    # A test that was asked to end has done so, unless something is left, or its job broke.
    is_left = END not in journal.values or (bool(trial.facts.at_hand) and not trial.is_replaced)
    is_failed = bool(reason) and (not ending or is_left or judged.get("verdict") == "broken")
    result: dict[str, Any] = {key: judged[key] for key in ("verdict", "moved") if key in judged}
    result["warnings"] = list(site.warnings.values())
    result.update({"other_jobs": results(trial.facts.other_jobs)} if trial.facts.other_jobs else {})
    return {**result, "failed": is_failed, "msg": reason or passed(trial.facts, str(folder))}


@contextmanager
def _as_window(facts: Facts, site: TrialSite) -> Iterator[None]:
    """Let Ctrl-C pause a window; show the state that is left if it ends the run instead."""
    with in_progress(Path(site.folder)), shown_if_interrupted(lambda: window_end.interrupted(facts)):
        yield


def _as_test(facts: Facts, site: TrialSite) -> AbstractContextManager[None]:
    """Show the state that a test leaves when Ctrl-C ends it."""
    return shown_if_interrupted(
        lambda: (
            f"Cluster {facts.cluster}: the vMotion test was interrupted after {len(facts.moves)} moves, is unfinished "
            f"in {site.folder}, and holds the lock of the cluster. DRS does not move the workers until the next run: "
            "run it again."
        )
    )


def _as_observation(_facts: Facts, site: TrialSite) -> AbstractContextManager[None]:
    """Let SIGINT and SIGTERM end an observation with its report."""
    return ended_by_signal(site.ask_for_end)


def window_by(p: Program, trial: Trial) -> str:
    """Return why the window failed; empty if it did not."""
    by = trial.settings["window"].get("by") or MOVE
    if by == AUTO:
        way = p.once("way", lambda: choose(trial, p.now()))
        p.say(way["why"])
        by = way["by"]
    if by == RESTART:
        return restart_window(p, trial)
    reason = window(p, trial)
    is_without_plan = p.written("cluster") is not None and p.written("plan") is None
    is_refused = is_without_plan or any(not move["ok"] for move in trial.facts.moves)
    return f"{reason} {INSTEAD}" if reason and is_refused else reason


TEST = Kind(test, _show_moves, _as_test)
WINDOW = Kind(window_by, _show_ways, _as_window)
OBSERVATION = Kind(observe, _show_moves, _as_observation, ObservationSite)


def _reason(run: Callable[[Program, Trial], str], program: Program, trial: Trial, journal: FileJournal) -> str:
    """Run a program, and return why it failed; empty if it passed.

    An error outside the attempts of a program is that of the lock: another run has the cluster, which stays untouched.
    """
    try:
        reason, is_over = run(program, trial), not program.left
    except window_end.WindowPaused:
        notify_of_pause(trial)
        reason, is_over = window_end.paused(trial.facts), False
    except ControllerGone as error:
        raise Failed(trial.site.folder, "continue", "ansible-playbook has ended", "run the playbook again") from error
    except CollectionError as error:
        reason, is_over = str(error), "job" not in journal.values
    if is_over:
        journal.write(END, {"passed": not reason, "said": reason})
    return reason


class TrialAction(ActionBase):  # type: ignore[misc]  # ansible is not read by mypy
    """Carries out the program of its kind, or only shows the plan."""

    _supports_check_mode = True
    kind: Kind
    options: ClassVar[Mapping[str, Any]]

    def run(self, tmp: Any = None, task_vars: Any = None) -> Result:
        """Return the result of the program; in check mode, that of its plan."""
        result: Result = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        carried_out = show_plan if self._task.check_mode else carry_out
        try:
            return {**result, **carried_out(Modules(self, task_vars), self._request(task_vars), self.kind)}
        except CollectionError as error:
            return {**result, "failed": True, "msg": str(error)}

    def _request(self, task_vars: Variables) -> Request:
        """Return the checked options of the task, with those of the role if it asks for them."""
        of_role = requested_of_role(self, task_vars, ROLE_OF_TRIALS)
        # Its values are the defaults of other options.
        job: Mapping[str, Any] = of_role.pop("job", None) or {}
        self._task.args = {**self._own(of_role), **self._task.args}
        # The modules check the options of the connection, which they get unchanged.
        connection = {name: {"type": "raw", "no_log": name in ("password", "proxy")} for name in CONNECTION}
        _validation, given = self.validate_argument_spec({**self.options, **connection})
        facts.require_none_on_workers(task_vars)
        require_one_cluster(clusters_around_job(task_vars))
        # A relative path is relative to the folder in which ansible-playbook was started.
        paths = {name: os.path.realpath(given[name]) if given[name] else "" for name in PATHS}
        request = request_of({**{name: given[name] for name in self.options}, **paths}, job)
        check_limits(request.settings["limits"])
        require_known(request.settings["window"])
        if request.settings["user"]:
            require_user(str(request.settings["user"]))
        return request

    def _own(self, of_role: Mapping[str, object]) -> dict[str, object]:
        """Return the options of this action; refuse those of another, which would be ignored."""
        for name in ("window", "observe"):
            if of_role.get(name) and name not in self.options:
                cause, remedy = f"they are for tasks_from={name} of the role", "leave them out, or include those tasks"
                raise Refused(f"{ROLE_OF_TRIALS}_{name}", "use these options", cause, remedy)
        return {name: value for name, value in of_role.items() if name in self.options}


def request_of(given: Mapping[str, Any], job: Mapping[str, Any]) -> Request:
    """Return options as a request, with what a window needs to restart the job."""
    settings = {"window": {}, "observe": {}, **{key: given[key] for key in given if key not in OF_THE_RUN}}
    if job.get("restart") and settings["window"]:
        settings["restart"] = job["restart"]
    return Request(settings, given["dir"], given["folder"], given["metrics"], given.get("ending") or "")


def options_of(*left_out: str) -> dict[str, Any]:
    """Return the options of an action, without those of other kinds."""
    return specification(of_trial(*left_out))
