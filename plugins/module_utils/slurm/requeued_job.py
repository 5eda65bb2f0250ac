"""A batch job of another user in Slurm that a maintenance window requeues as held, and releases after its hosts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from ..durable.calls import Result
from ..durable.program import MemoryJournal, Program
from ..errors import Failed, TimedOut
from ..training.ending.job_state import SIGNAL_REQUEST, STOP_REQUEST, JobState
from ..training.programs.restart_commands import OthersJob
from ..training.runs.any_job import RunPlace
from ..training.runs.controller_site import TrainingCalls
from ..training.runs.restartable import NamedJob, SeenCheckpoint
from . import job_states
from .commands import run
from .named_job import ReadJob, read_job, state_of

# Slurm waits 30 s between SIGTERM and SIGKILL, unless its site set KillWait.
STOP_SECONDS, START_SECONDS = 180.0, 900.0
# The reasons of a job that was requeued as held, and of one that its user or an administrator holds.
HELD = re.compile(r"held", re.IGNORECASE)
_FIELDS = re.compile(r"^ +Requeue=([01]) Restarts=[0-9]{1,9} BatchFlag=([0-9])", re.MULTILINE)


class RequeuedJob(OthersJob):
    """A job that its number in Slurm names; its batch script finds the newest checkpoint when Slurm starts it again."""

    def __init__(self, calls: TrainingCalls, job: NamedJob) -> None:
        super().__init__(calls, job)
        self._number, self._login = str(job["slurm"]["job"]), str(job["slurm"]["login"])
        self.name = f"job {self._number} in Slurm"

    def refusal(self) -> str:
        """Return why Slurm would not start the job again; empty if it would."""
        shown = self._scontrol("show", "job", self._number)
        if shown.get("failed"):
            return f"{self.name} cannot be read: {shown['msg']}."
        found = _FIELDS.findall(str(shown.get("stdout") or ""))
        if found and found[-1] == ("1", "1"):
            return ""
        return f"{self.name} cannot be requeued: only a batch job submitted with sbatch --requeue starts again."

    def state(self) -> JobState:
        """Return the state of the job in Slurm; one that ended after the request of the window was stopped by it."""
        job, there = read_job(self._ask, self._number), super().state()
        if self._is_ending(job):
            return {**there, "state": "stopped", "why": f"it is {job_states.ENDING} in Slurm"}
        found: JobState = self._of_slurm(job, there)
        is_over = found["state"] not in ("running", "waiting", "stopped")
        return {**found, "state": "stopped"} if is_over and job and self._has_request() else found

    def _of_slurm(self, job: ReadJob | None, there: JobState) -> JobState:
        if job is None:
            return {**there, "state": "died", "why": f"Slurm no longer has job {self._number}"}
        if job.state in job_states.WAITING and HELD.search(job.reason):
            return {**there, "state": "stopped", "why": f"it is {job.state} ({job.reason}) in Slurm"}
        if job.state in job_states.ALIVE and job.state not in job_states.WAITING:
            return {**there, "state": "running"}
        # Slurm may have started it before, on account of a failure.
        return state_of(there, job, self._number, job.restarts)  # type: ignore[return-value] # keys of JobState

    def stopped_by_owner(self) -> str:
        """Return that another user has cancelled the job, which the window only requeues."""
        job = read_job(self._ask, self._number)
        # Slurm forgets a job some minutes after its end.
        is_gone = job is None and self._has_request()
        return "cancelled in Slurm" if is_gone or (job and job.state == "CANCELLED") else ""

    def ask_for_checkpoint(self, signal: str, seconds: float) -> None:
        """Send a signal to the processes of all ranks; scancel would not reach those that mpirun has started."""
        del seconds
        self._ranks.ask(signal, 0, partial(self._write, self._signal))

    def withdraw(self) -> None:
        """Remove the requests: whatever ends the job later is its own end."""
        self._remove(self._signal)
        self._remove(self._request)

    def stop(self) -> JobState:
        """Requeue the job as held, and wait until Slurm has ended its processes on all nodes."""
        state = self.state()
        if state["state"] not in ("running", "waiting", "stopped"):
            return state
        if not self._is_held() and not self._is_ending(read_job(self._ask, self._number)):
            self._write(self._request)
            self._require_done("requeue it as held", self._scontrol("requeuehold", self._number))
        if not Program(MemoryJournal(), self._calls).wait(self._has_stopped, STOP_SECONDS):
            cause = f"{STOP_SECONDS:.0f} s after the request, {self.state().get('why') or 'ranks of it still run'}"
            raise TimedOut(self.name, "requeue it as held", cause, f"see scontrol show job {self._number}")
        return {"state": "stopped", "why": "requeued as held for a maintenance window"}

    def start_again(self, checkpoint: SeenCheckpoint, down: Mapping[str, object] | None = None) -> RunPlace:
        """Release the job; it starts when the reservation of its nodes ends."""
        del checkpoint, down
        self.withdraw()
        if self._is_held():
            self._require_done("release it", self._scontrol("release", self._number))
        return self._started()

    def judged(self) -> Result:
        """Wait until Slurm has started the job, which it does minutes after a requeue; return no verdict."""
        if not Program(MemoryJournal(), self._calls).wait(self._runs, START_SECONDS):
            cause = f"{START_SECONDS:.0f} s after its release, {self.state().get('why') or 'no rank of it runs'}"
            raise TimedOut(self.name, "see it run again", cause, f"see scontrol show job {self._number}")
        return super().judged()

    def _runs(self) -> bool:
        return self.state()["state"] == "running" and bool(self._ranks.found()[0])

    def _has_stopped(self) -> bool:
        return self._is_held() and not self._ranks.found()[0]

    def _is_held(self) -> bool:
        job = read_job(self._ask, self._number)
        return job is not None and job.state in job_states.WAITING and bool(HELD.search(job.reason))

    def _is_ending(self, job: ReadJob | None) -> bool:
        """Return whether Slurm ends the job for the window, without the reason that it is held then."""
        return job is not None and job.state == job_states.ENDING and self._exists(self._request)

    def _has_request(self) -> bool:
        """Return whether the window has stopped the job, or requested a checkpoint of its ranks."""
        return self._exists(self._request) or self._exists(self._signal)

    @property
    def _request(self) -> str:
        return f"{self._job['run_dir']}/{STOP_REQUEST}"

    @property
    def _signal(self) -> str:
        return f"{self._job['run_dir']}/{SIGNAL_REQUEST}"

    def _ask(self, module: str, options: Mapping[str, object]) -> Result:
        return self._calls.on(self._login, module, options)

    def _scontrol(self, *words: str) -> Result:
        return run(self._ask, "scontrol", *words)

    def _require_done(self, tried: str, result: Result) -> None:
        if result.get("failed"):
            raise Failed(self.name, tried, str(result["msg"]), "correct that, and run again")
