# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The world of a vMotion test: its folder, the watch of the job's records, and the program that runs in it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from ansible.release import __version__ as ansible_version

from ..module_utils import runner
from ..module_utils.core import observer_clock
from ..module_utils.durable.program import END, START, ControllerGone, Program
from ..module_utils.durable.program_journal import NAME, FileJournal
from ..module_utils.errors import CollectionError, Failed
from ..module_utils.jobs.running_job import job_from
from ..module_utils.maintenance.lock.holder import current_user
from ..module_utils.training.results.report_files import for_collector
from ..module_utils.training.runs.any_job import Job
from ..module_utils.training.runs.restartable import NotRestartable, Restartable
from ..module_utils.trials.evidence import prediction
from ..module_utils.trials.evidence.facts import Facts
from ..module_utils.trials.evidence.other_verdicts import results
from ..module_utils.trials.evidence.outcome import passed
from ..module_utils.trials.folder import continued_settings, facts_file, trial_folder, trial_metrics
from ..module_utils.trials.programs.observe import observe
from ..module_utils.trials.programs.test import test
from ..module_utils.trials.programs.window_by import window_by
from ..module_utils.trials.steps import permission, window_end, window_ways
from ..module_utils.trials.steps.trial import Trial
from ..module_utils.trials.steps.window_notices import notify_of_pause
from ..module_utils.watch.watcher import is_watched
from . import running_jobs
from .controller import start_watch
from .interruption import shown_if_interrupted
from .modules import Modules
from .observer import ended_by_signal, post, run_command
from .restartable_jobs import restartable
from .slurm_place import with_place
from .window_signal import PAUSE, in_progress
from .world import ActionWorld, show

DRIVERS = "stacks/facts/compatibility.yml"
REPLACED = "The window ends here, because a window with other settings takes its place."
NOTICE_SECONDS = 30.0
WATCH_SECONDS, UNWATCH_SECONDS, ROLL_SECONDS = 60.0, 60.0, 30.0


def show_plan(modules: Modules, given: Mapping[str, Any]) -> dict[str, Any]:
    """Show the plan of a test in check mode, or both ways through a maintenance window, and return it."""
    settings, now = _settings(given), observer_clock.now()
    late = permission.over(settings["window"], now, now)
    if late:
        return {"failed": True, "msg": f"Cluster {settings['cluster']}: no window would be opened: {late}."}
    site = TrialSite(modules, settings["cluster"], Path(settings["dir"]) / "check", "")
    trial = Trial(site, _job(site, settings), Facts(settings))
    earlier = trial_folder.earlier_changes(Path(settings["dir"]), settings["cluster"])
    possible = [window_ways.by_moves(trial, earlier)]
    if settings["window"]:
        possible.append(window_ways.by_restart(trial, earlier, now))
    refusal = _shown(settings, possible, now)
    return (
        {"failed": True, "msg": refusal}
        if refusal
        else {"changed": True, "moves": possible[0].planned.get("moves", [])}
    )


def _shown(settings: Mapping[str, Any], possible: Sequence[window_ways.Way], now: float) -> str:
    """Show the ways, and return why the requested one is impossible; empty if it is possible."""
    window, moves = settings["window"], possible[0]
    by = window.get("by") or window_ways.MOVE
    if not window:
        for line in moves.lines:
            show(line)
        return moves.why_not
    for line in [] if moves.why_not else [*moves.lines, *prediction.lines(moves.planned["prediction"], now)]:
        show(line)
    if not moves.why_not:
        show(f"limit of a stun: {settings['stun_budget']:.0f} s; a move that would be longer is not made")
        nodes = (settings.get("slurm") or {}).get("nodes")
        show(f"Slurm starts no job on {', '.join(nodes)} during the window" if nodes else "")
    for line in possible[1].lines:
        show(line)
    for line in (*map(window_ways.Way.in_words, possible), *window_end.limits_in_words(window, now)):
        show(line)
    if by == window_ways.AUTO:
        show(window_ways.chosen(possible)["why"])
        return ""
    why_not = next(way.why_not for way in possible if way.by == by)
    return f"{why_not} {window_ways.INSTEAD}" if why_not and by == window_ways.MOVE else why_not


def _settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a test, with what a window needs to restart its job."""
    settings = {name: value for name, value in given.items() if name not in ("folder", "ending", "job", "metrics")}
    known = (given.get("job") or {}).get("restart")
    return {**settings, "restart": known} if known and settings["window"] else settings


class TrialSite(ActionWorld):
    """The modules, the watch and the files of one test in its folder."""

    def __init__(self, modules: Modules, subject: str, folder: Path, metrics: str) -> None:
        super().__init__(modules, subject)
        self.folder, self.controller = str(folder), str(uuid4())
        self.drivers: Mapping[str, Any] = modules.load(DRIVERS)
        self.versions: Mapping[str, str] = {"ansible": ansible_version, "collection": modules.version}
        self._folder, self._metrics = folder, metrics
        self.run_command = run_command
        # The warnings of the modules, each once, for the result of the task.
        self.warnings: dict[str, Any] = {}

    def here(self, module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Run a module on the controller, and return its result."""
        result = super().here(module, options)
        self.warnings.update({str(warning): warning for warning in result.get("warnings") or []})
        return result

    def start_watch(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Start a watch, which outlives this controller, unless one is running."""
        records = Path(options["records"])
        if is_watched(records):
            return {}
        # An earlier controller that was interrupted has asked its watch to end.
        Path(options["stop"]).unlink(missing_ok=True)
        attended = {**options, "attended": str(self._folder / NAME)}
        started = start_watch(attended)
        if started.get("failed") or not _until(lambda: is_watched(records), WATCH_SECONDS):
            reason = started.get("msg") or "the watch did not start"
            return {"failed": True, "msg": f"{records}: could not watch the job: {reason}"}
        return {}

    def stop_watch(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """End the watch of the records."""
        records = Path(options["records"])
        Path(options["stop"]).touch(mode=0o600)
        if _until(lambda: not is_watched(records), UNWATCH_SECONDS):
            return {}
        reason = f"it is still running {UNWATCH_SECONDS:.0f} s after the request."
        return {"failed": True, "msg": f"{records}: could not end the watch: {reason}"}

    def on_node(self, node: str, user: str, module: str, options: Mapping[str, Any], /) -> dict[str, Any]:
        """Run a module on a host of the inventory, as a user; one that does not answer is not waited for."""
        self.must_be_attended()
        return self._modules.on(node, user, module, options)

    def on(self, node: str, user: str, module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Run a module on a host of the inventory, as a user, and wait for one that does not answer."""
        return self._connected(lambda: self._modules.on(node, user, module, options))

    def roll_records(self) -> bool:
        """Have the watch begin a new file of records; without a watch, the records stay as they are."""
        request = self._folder / "roll"
        request.touch(mode=0o600)
        is_rolled = _until(lambda: not request.exists(), ROLL_SECONDS)
        request.unlink(missing_ok=True)
        return is_rolled

    def ask_for_end(self) -> None:
        """Ask for the end of an observation."""
        (self._folder / "end").touch(mode=0o600)

    def must_pause(self) -> bool:
        """Return whether the user interrupted the playbook once."""
        return (self._folder / PAUSE).exists()

    def jobs_on_workers(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the other training jobs on the workers of the cluster, or why they are not known."""
        self.must_be_attended()
        return running_jobs.beside(self._modules, self._subject, settings)

    def earlier_changes(self) -> list[dict[str, Any]]:
        """Return the host changes of earlier windows of the cluster."""
        return trial_folder.earlier_changes(self._folder.parent, self._subject, self._folder)

    def restartable(self, known: Mapping[str, Any]) -> Restartable:
        """Return an attempt of a job, which a window by restart stops and starts again."""
        if not known:
            return NotRestartable(
                "the job", "The job cannot be restarted: the playbook did not find it on the workers."
            )
        action, task_vars = self._modules.task
        by = f"the maintenance window of {current_user()}@{os.uname().nodename}"
        return restartable(action, task_vars, known, by)

    def notify(self, hook: Mapping[str, Any], text: str) -> dict[str, Any]:
        """Give a text to a command or a URL of the user."""
        if hook.get("url"):
            return post(str(hook["url"]), text, NOTICE_SECONDS)
        return run_command([str(word) for word in hook.get("command") or []], text, NOTICE_SECONDS)

    def write(self, name: str, content: object) -> None:
        """Write a JSON file in the folder of the test."""
        facts_file.write_json(self._folder / f"{name}.json", content)

    def write_facts(self, facts: Facts) -> None:
        """Write the facts so far, and their metrics."""
        facts_file.write(self._folder, facts)
        self.write_metrics(facts, is_running=True)

    def write_metrics(self, facts: Facts, is_running: bool) -> None:
        """Write the metrics of the facts for a collector; the test continues without them, as on a full disk."""
        if self._metrics:
            text = trial_metrics.metrics(facts, self._folder.name, observer_clock.now(), is_running)
            files = for_collector(self._metrics, self._folder.name, text)
            self.show(str(runner.converge_one(runner.OfProgram(), files).get("msg") or ""))


class ObservationSite(TrialSite):
    """An observation survives its controller: it changes nothing but its folder, and ends with its report."""

    def must_be_attended(self) -> None:
        """Ask for the end of the observation if its controller is gone."""
        try:
            super().must_be_attended()
        except ControllerGone:
            self.ask_for_end()


def _job(site: TrialSite, settings: Mapping[str, Any]) -> Job:
    """Return the job of a test; one in Slurm is read on its launcher and on its login node."""
    slurm = settings.get("slurm")
    if not slurm:
        return job_from(site.here, site.there, settings)
    on_launcher = partial(site.on, settings["launcher"], settings["user"])
    return job_from(site.here, on_launcher, settings, partial(site.on, str(slurm.get("login") or ""), ""))


def carry_out(modules: Modules, given: Mapping[str, Any]) -> dict[str, Any]:
    """Begin or continue a test, a maintenance window or an observation in its folder, and return its result."""
    settings = {name: value for name, value in _settings(given).items() if name != "dir"}
    folder = trial_folder.opened(given["folder"], given["dir"], trial_folder.named(given["cluster"], modules.here))
    try:
        with observer_clock.running(folder), FileJournal(folder / NAME, observer_clock.now) as journal:
            start = journal.values.get(START)
            if start is not None and not given["ending"]:
                continued_settings.refuse_other(folder, continued_settings.with_next_attempt(journal.values), settings)
            if start is None:
                settings = with_place(*modules.task, settings)
            if start is None or not continued_settings.is_replaced(start, settings):
                done = _carried_out(modules, journal, settings, given["ending"], given["metrics"])
                return {"folder": str(folder), "changed": True, **done}
            ended = _carried_out(modules, journal, settings, REPLACED, given["metrics"])
            if ended["failed"]:
                return {"folder": str(folder), "changed": True, **ended}
        return carry_out(modules, {**given, "folder": ""})
    except CollectionError as error:
        return {"failed": True, "msg": str(error), "folder": str(folder)}


def _carried_out(
    modules: Modules, journal: FileJournal, settings: Mapping[str, Any], ending: str = "", metrics: str = ""
) -> dict[str, Any]:
    """Run the program in the folder of a journal, and write how it ended unless something is left to release."""
    folder = journal.path.parent
    is_continued = START in journal.values
    continues = f"ends the test in {folder}" if ending else f"continues the test in {folder} with its original settings"
    show(continues if is_continued else f"starts {folder}")
    kept = continued_settings.continued(journal.values.get(START) or journal.write(START, dict(settings)), settings)
    is_observation = bool(kept["observe"])
    site = (ObservationSite if is_observation else TrialSite)(modules, kept["cluster"], folder, metrics)
    started = observer_clock.now()
    trial = Trial(site, _job(site, kept), Facts(kept), requested=settings["window"], started=started)
    trial.is_replaced = ending == REPLACED
    program = Program(journal, site, ending)
    run = observe if is_observation else window_by if kept["window"] else test
    with ended_by_signal(site.ask_for_end, is_observation), _as_window(trial, folder):
        reason = _reason(run, program, trial, journal)
    site.write_metrics(trial.facts, is_running=False)
    judged = trial.facts.judged or {}
    # A test that was asked to end has done so, unless something is left, or its job broke.
    is_left = END not in journal.values or (bool(trial.facts.at_hand) and not trial.is_replaced)
    is_failed = bool(reason) and (not ending or is_left or judged.get("verdict") == "broken")
    result: dict[str, Any] = {key: judged[key] for key in ("verdict", "moved") if key in judged}
    result["warnings"] = list(site.warnings.values())
    result.update({"other_jobs": results(trial.facts.other_jobs)} if trial.facts.other_jobs else {})
    return {**result, "failed": is_failed, "msg": reason or passed(trial.facts, str(folder))}


@contextmanager
def _as_window(trial: Trial, folder: Path) -> Iterator[None]:
    """Let Ctrl-C pause a window; show what is left if it ends the run instead."""
    if not trial.settings["window"]:
        with nullcontext() if trial.settings["observe"] else shown_if_interrupted(lambda: _left(trial.facts, folder)):
            yield
        return
    with in_progress(folder), shown_if_interrupted(lambda: window_end.interrupted(trial.facts)):
        yield


def _left(facts: Facts, folder: Path) -> str:
    """Return the state that a test leaves when Ctrl-C ends it."""
    return (
        f"Cluster {facts.cluster}: the vMotion test was interrupted after {len(facts.moves)} moves, is unfinished in "
        f"{folder}, and holds the lock of the cluster. DRS does not move the workers until the next run: run it again."
    )


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


def _until(condition: Callable[[], bool], seconds: float, pause: float = 0.2) -> bool:
    """Return whether the condition becomes true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True
