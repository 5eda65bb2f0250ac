"""Users run playbooks, whose programs are the real ones, while others act; the result is checked.

The parts of a playbook that are not programs are short here: which job runs, and which folder continues.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from plugins.module_utils.core import observer_clock
from plugins.module_utils.durable.program import START, ControllerGone, MemoryJournal, Program
from plugins.module_utils.errors import CollectionError, Refused
from plugins.module_utils.hosts.change_hosts import HostChangeOptions
from plugins.module_utils.hosts.rollout import RolloutOptions, plan_hosts, require_possible, rollout, window_of
from plugins.module_utils.jobs.running_job import job_from
from plugins.module_utils.trials.evidence.facts import Facts
from plugins.module_utils.trials.folder import continued_settings
from plugins.module_utils.trials.programs.observe import observe
from plugins.module_utils.trials.programs.test import test
from plugins.module_utils.trials.steps.trial import Trial
from plugins.plugin_utils.trial import _reason, window_by
from tests.fakes.deaths import Killed

from . import slurm_queue
from .faults import Interrupted
from .job import LAUNCHER, STEP_SECONDS, Job
from .modules import SimulatedCalls
from .role_tasks import RoleTasks
from .rollbacks import Evidence, RoleCalls, saved
from .site import CLUSTER, Site
from .trial_calls import Folder, TrialCalls
from .world import JOB_CHECK, PACE, SETTINGS

Faults = Mapping[int, Callable[[SimulatedCalls], None]]
# The verdict measures silences by the records; a step more or less is accepted.
# No host needs more, by the defaults or as measured.
LONGEST_HOST_SECONDS = 2700.0
TOLERANCE_SECONDS, MAX_GAP_S = 2 * STEP_SECONDS, PACE["limits"]["max_gap_s"]
OPTIONS: dict[str, Any] = {**SETTINGS, **PACE, "observe": {}}
# The plays that are tasks of roles.
TASKS = ("rollback", "teardown")
OBSERVATION = {"observe": {"seconds": 60, "keep": 150}, "duration": 600, "drs_override": "", "guest_checks": False}


class SiteTime:
    """The clocks of a controller: that which users set, and that which only time moves."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def time(self) -> float:
        return self._site.clock + self._site.clock_set

    def monotonic(self) -> float:
        return self._site.clock


@dataclass(frozen=True)
class End:
    """The end of a window: as the user writes it, and when that is."""

    text: str = ""
    at: float = math.inf

    @property
    def is_date(self) -> bool:
        return "-" in self.text

    @classmethod
    def after(cls, site: Site, seconds: float, *, is_date: bool) -> End:
        """Return an end after some seconds, as a date or as the time of day that clocks then show."""
        at = site.clock + seconds - site.clock % 60.0
        if is_date:
            return cls(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)), at)
        with in_zone(site.zone):
            return cls(time.strftime("%H:%M", time.localtime(at)), at)


@contextmanager
def in_zone(zone: str) -> Iterator[None]:
    """Give the controller a time zone during the block."""
    before = os.environ.get("TZ")
    try:
        _set_zone(zone or before)
        yield
    finally:
        _set_zone(before)


def _set_zone(zone: str | None) -> None:
    if os.environ.get("TZ") == zone:
        return
    if zone is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = zone
    time.tzset()


class FolderJournal(MemoryJournal):
    """The journal of a folder. Its file has a second name, which the result of a program is written under."""

    def __init__(self, calls: SimulatedCalls, folder: Folder) -> None:
        self._calls, self.path, self.values = calls, folder.path / "journal", folder.values

    def write(self, key: str, value: Any) -> Any:
        self._calls.must_be_attended()
        self._calls.point()
        self.values[key] = value
        self._calls.point()
        return value


@dataclass
class Outcome:
    """How a playbook ended: its message, empty if it succeeded; whether its controller was killed."""

    message: str = ""
    is_killed: bool = False
    is_interrupted: bool = False
    verdict: str = ""
    play: str = ""

    @property
    def kind(self) -> str:
        """Return the kind of this end, for statistics."""
        if self.is_killed:
            return "killed"
        if self.is_interrupted:
            return "interrupted"
        ended = "success" if not self.message else "failure"
        return f"{ended}, {self.verdict}" if self.verdict else ended

    @property
    def is_success(self) -> bool:
        return not self.message and not self.is_killed and not self.is_interrupted


@dataclass
class Team:
    """The people who run playbooks on a site, and the folders that they left."""

    site: Site
    folders: list[Folder] = field(default_factory=list)
    runs: int = 0
    # The controller on which the playbooks run.
    controller: str = "here"
    # The folder of the evidence that each change of hosts saves; without one, none is saved.
    where: Path | None = None
    evidence: list[Evidence] = field(default_factory=list)
    # The end of the present window.
    end: End = field(default_factory=End)
    # The lines that the last run showed.
    shown: list[str] = field(default_factory=list)

    def hosts(
        self,
        *,
        under_training: bool = False,
        most: int = 1,
        faults: Faults | None = None,
        only: Sequence[str] = (),
        window: Mapping[str, Any] | None = None,
        end: End | None = None,
    ) -> Outcome:
        """Run the playbook hosts, as its role does: plan, then roll out, then open a window for the rest."""
        self.site.most, self.end = most, end or End()
        own: dict[str, Any] = {"not_after": self.end.text, "notify": [{"command": ["tell"]}]}
        limits = {**own, "accept_other_jobs": False, **(window or {})} if under_training else {}
        self.site.requires_ack = bool(limits.get("requires_ack"))
        self.site.accepts_others = bool(limits.get("accept_other_jobs"))
        version = self.site.requested_image
        image = {"components": {"manager": str(version)}} if version else {}
        how = HostChangeOptions(CLUSTER, self.site.requested.option, max_out_of_service=most, image=image)
        options = RolloutOptions(how, only, around_job=under_training, window=limits, job_check=JOB_CHECK)
        name = "hosts around a job" if under_training else "hosts"
        return self._played(name, faults, lambda calls: self._change(calls, options), only)

    def vmotion_test(self, faults: Faults | None = None) -> Outcome:
        """Run the playbook vmotion_test."""
        return self._played("vmotion_test", faults, lambda calls: self._carry_out(calls, {}))

    def observation(self, faults: Faults | None = None) -> Outcome:
        """Run the playbook observe, which writes nothing to vCenter."""
        writes, holder = self.site.writes, self.site.holder
        outcome = self._played("observe", faults, lambda calls: self._carry_out(calls, {}, OBSERVATION))
        assert (self.site.writes, self.site.holder) == (writes, holder), "an observation wrote to vCenter"
        return outcome

    @property
    def run(self) -> str:
        """Return the name of the last run."""
        return f"run {self.runs} {self.controller}"

    def _played(
        self, name: str, faults: Faults | None, play: Callable[[SimulatedCalls], Outcome], only: Sequence[str] = ()
    ) -> Outcome:
        """Run a playbook as the next run, whose faults come at their points, for the chosen hosts."""
        self.runs, self.site.chosen = self.runs + 1, tuple(only)
        calls = SimulatedCalls(self.site, self.run, faults or {})
        self.site.rules_read.clear()
        self.site.run_began, self.site.is_window, self.site.ends_at = self.site.clock, False, math.inf
        self.shown = calls.lines
        try:
            with patch.object(observer_clock, "time", SiteTime(self.site)), in_zone(self.site.zone):
                outcome = play(calls)
        except Interrupted:
            # The tasks of a role, unlike a program, leave the lock to the next run of this controller.
            is_free = name in TASKS or self.site.last_call == ("cluster_lock", "free") or self.site.holder != calls.run
            assert is_free, f"Ctrl-C left the lock, after {self.site.last_call[0]}"
            outcome = Outcome(is_interrupted=True)
        except (Killed, ControllerGone):
            outcome = Outcome(is_killed=True)
        except CollectionError as error:
            outcome = Outcome(str(error))
        outcome.play = name
        return outcome

    def _change(self, calls: SimulatedCalls, options: RolloutOptions) -> Outcome:
        plan = plan_hosts(calls, options)
        require_possible(plan)
        is_training = self.site.job is not None and self.site.job.is_running
        if (is_training or self.site.is_beside()) and not options.around_job:
            raise Refused(CLUSTER, "change its hosts", "a training job runs on its workers", "wait until it ends")
        unfinished = self._open_folder() if options.around_job else None
        if options.around_job and not is_training and unfinished is None:
            raise Refused(CLUSTER, "change its hosts around a job", "no job was found", "leave out under_training")
        requested = window_of(plan, options)
        job = self.site.job if is_training else None
        named: dict[str, Any] = {"run_dir": job.run_dir} if job else {}
        if job and self.site.has_slurm:
            named["slurm"] = slurm_queue.place_of(job)
        if job is None and unfinished and self.site.has_slurm:
            # The role then names the job with which the window began.
            named = {key: unfinished.values[START].get(key) for key in ("run_dir", "slurm")}
        if unfinished:
            settings = {"window": requested, **named, "launcher": OPTIONS["launcher"]}
            continued_settings.refuse_other(
                unfinished.path, continued_settings.with_next_attempt(unfinished.values), settings
            )
        self._roll_out(calls, options, plan)
        if options.around_job and (plan["leaving"] or unfinished):
            return self._carry_out(calls, requested, named)
        return Outcome()

    def _roll_out(self, calls: SimulatedCalls, options: RolloutOptions, plan: Mapping[str, Any]) -> None:
        """Save the evidence of the hosts, and change them, if there is something to change."""
        if not plan["in_service"] and not plan["leaving"]:
            return
        if self.where:
            path = self.where / f"{len(self.evidence)}.json"
            self.evidence.append(saved(calls, path, options.change))
        with observer_clock.running():
            rollout(Program(MemoryJournal(), calls), calls, options)

    def rollback(self, taken: Evidence, faults: Faults | None = None) -> Outcome:
        """Run the playbook rollback."""
        return self._played("rollback", faults, lambda calls: self._roll_back(calls, taken))

    def _roll_back(self, calls: SimulatedCalls, taken: Evidence) -> Outcome:
        if self.site.jobs():
            raise Refused(CLUSTER, "change its hosts", "a training job runs on its workers", "wait until it ends")
        own = RoleCalls(self.site, calls.run, calls.faults)
        self.shown = own.lines
        given = {"inventory_hostname": CLUSTER, "rollback_evidence": str(taken.path)}
        RoleTasks(own.run_module, {"esxi_host": partial(self.restore, own)}).run("rollback", given)
        return Outcome()

    def restore(self, calls: SimulatedCalls, given: Mapping[str, Any]) -> None:
        """Bring each host to its profile, as the role esxi_host does."""
        change = HostChangeOptions(CLUSTER, {}, host_profiles=given["esxi_host_profiles"])
        options = RolloutOptions(change, hosts=given["esxi_host_hosts"], job_check=JOB_CHECK)
        plan = plan_hosts(calls, options)
        require_possible(plan)
        self._roll_out(calls, options, plan)

    def _open_folder(self) -> Folder | None:
        return next((folder for folder in self.folders if folder.is_open), None)

    def _carry_out(
        self, calls: SimulatedCalls, requested: Mapping[str, Any], more: Mapping[str, Any] | None = None
    ) -> Outcome:
        """Begin or continue a vMotion test, a window or an observation in its folder, as the action does."""
        settings = {**OPTIONS, "window": dict(requested), **(more or {})}
        folder = self._folder(settings)
        self.site.ends_at = self.end.at
        site = TrialCalls(calls.site, calls.run, calls.faults, folder)
        site.points = calls.points
        journal = FolderJournal(site, folder)
        kept = continued_settings.continued(folder.values.get(START) or journal.write(START, settings), settings)
        job = job_from(site.here, site.here, kept)
        trial = Trial(site, job, Facts(kept), requested=dict(requested), started=site.now())
        self.site.is_window, self.site.around = bool(kept["window"]), kept["run_dir"]
        run = observe if kept["observe"] else window_by if kept["window"] else test
        try:
            message = _reason(run, Program(journal, site), trial, journal)  # type: ignore[arg-type]
        except CollectionError as error:
            # The action says so too, if anybody still listens.
            raise Killed if site.is_dead else error from error
        verdict = str((trial.facts.judged or {}).get("verdict", ""))
        if trial.facts.first_hosts and verdict == "inconclusive":
            verdict = ""  # No rank of the job ran on the workers that moved.
        # After the launcher was deleted, no one knows how its job ended.
        if site.is_same(str(LAUNCHER["host"])):
            self._check_verdict(verdict, trial.facts, folder.job)
        self._check_moves(trial.facts, folder.job)
        folder.keep_done((change["host"] for change in trial.facts.finished_changes), "the window")
        self._check_end(message)
        return Outcome(message, verdict=verdict)

    def _folder(self, settings: Mapping[str, Any]) -> Folder:
        """Return the open folder, if these settings may continue it, or else a new one."""
        folder = self._open_folder()
        if folder is None:
            path = Path(f"/test/{len(self.folders) + 1}")
            folder = Folder(path, self.site.job, dict(self.site.machines))
            self.folders.append(folder)
        else:
            continued_settings.refuse_other(folder.path, continued_settings.with_next_attempt(folder.values), settings)
        return folder

    def _check_end(self, message: str) -> None:
        """A window ends for lack of time only if a host needs more, and names the end as the user gave it."""
        # A run without an end repeats how an earlier one of its folder ended, which could not release all that it held.
        if "(window_not_after)" in message and self.end.text:
            left = self.end.at - self.site.clock
            assert left < LONGEST_HOST_SECONDS, f"{left:.0f} s were left: {message}"
            assert self.end.is_date or f" {self.end.text} " in message, f"{self.end.text} was meant: {message}"

    def _check_moves(self, facts: Facts, job: Job | None) -> None:
        """Each move has all ranks that ran on its worker, and no own move counts as one of others."""
        own = [move["worker"] for move in facts.others if move.get("by") == "us"]
        assert not own, f"the moves of {', '.join(own)} count as those of others"
        for move in facts.moves:
            ranks = job.ranks_by_worker.get(move["worker"], []) if job else []
            assert move["ranks"] == ranks, (
                f"{move['worker']} moved with ranks {ranks}, and the facts say {move['ranks']}"
            )

    def _check_verdict(self, verdict: str, facts: Facts, job: Job | None) -> None:
        """Compare a verdict with the truth about the job."""
        if not verdict or job is None or not job.step_times:
            return
        silence = job.longest_silence(job.step_times[0], facts.observed_until)
        has_died = job.state == "died"
        is_broken = (has_died and (job.ended or 0.0) < facts.observed_until) or silence > MAX_GAP_S + TOLERANCE_SECONDS
        # One that its owner stops while others move has not continued either.
        is_over = job.state == "stopped" and (job.ended or 0.0) <= facts.observed_until
        is_fine = not (has_died or is_over) and silence < MAX_GAP_S - TOLERANCE_SECONDS
        assert not (is_broken and verdict == "continuous"), f"continuous, but it was silent for {silence} s"
        assert not (is_fine and verdict == "broken"), f"broken, but its longest silence was {silence} s: {facts.judged}"
