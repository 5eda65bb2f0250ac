"""A job of another tool that a maintenance window stops at a checkpoint and starts again with its owner's commands."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Mapping, Sequence
from typing import Literal, cast

from ...durable.calls import ReachedNode, Result, required
from ...durable.program import MemoryJournal, Program
from ...errors import Failed, TimedOut
from ..ending.job_state import JobState
from ..runs import any_job, run_files
from ..runs.any_job import Launched, RunPlace
from ..runs.controller_site import TrainingCalls
from ..runs.restartable import Checkpoints, NamedJob, Ranks, SeenCheckpoint, checkpoints_of
from ..runs.run_watch import RunWatch
from ..runs.training_options import Options
from ..runs.training_run import TrainingRun

STOP_SECONDS, START_SECONDS = 120.0, 300.0
# No rank of the job runs on its launcher.
ABSENT = "absent"
# Written before the job is started, in its run directory: an interrupted start is waited for, before it is repeated.
STARTED = "dml-started-again"
COMMANDS: tuple[Literal["stop", "start", "checkpoints"], ...] = ("stop", "start", "checkpoints")
PLACE = "{resume}"
# The output may end without a line end, as that of curl does.
OUTPUT_AND_CODE = ("sh", "-c", '"$@" 2>&1; code=$?; echo; echo "$code"', "sh")


class OthersJob:
    """A job with its place and its commands; the records of its ranks show whether it runs."""

    def __init__(self, calls: TrainingCalls, job: NamedJob) -> None:
        self._calls, self._job = calls, job
        self._records = str(job.get("records") or job["run_dir"])
        self.name = f"the job in {job['run_dir']}"
        self._ranks = Ranks(calls, job["nodes"], self._records, self.name)

    def refusal(self) -> str:
        """Return nothing: the job has all of its commands."""
        return ""

    def by_owner(self) -> str:
        """Return nothing: the job has no other attempt."""
        return ""

    def state(self) -> JobState:
        """Return whether the job runs; one without a running rank on its launcher counts as stopped."""
        options = {"gather": ["job"], "run_dir": self._job["run_dir"], "records": self._records}
        state: JobState = required(self._on_launcher(any_job.INFO, options))["job"]
        return {**state, "state": "stopped"} if state["state"] == ABSENT and not self._ranks.found()[0] else state

    def stopped_by_owner(self) -> str:
        """Return nothing: no record says who has stopped it."""
        return ""

    def checkpoints(self) -> Checkpoints:
        """Return the checkpoints in their folder on the launcher."""
        return checkpoints_in(self._calls, self._job)

    def ask_for_checkpoint(self, signal: str, seconds: float) -> None:
        """Send a signal to the processes of all ranks."""
        del seconds
        self._ranks.ask(signal, 0, self.withdraw)

    def withdraw(self) -> None:
        """Leave the job as it is: nothing was written."""

    def free_nodes(self) -> None:
        """Free nothing: no scheduler gives its nodes to other jobs."""

    def stop(self) -> JobState:
        """Run the command that stops the job, unless its ranks end by themselves, and wait until none is left."""
        state, p = self.state()["state"], Program(MemoryJournal(), self._calls)
        # Without a rank on the launcher, those on other nodes may be about to end, as after a signal.
        if state == "running" or (state == ABSENT and not self._have_ended(p)):
            # It is that of an earlier window.
            self._remove(self._mark)
            self._run("stop")
            if not self._have_ended(p):
                ranks = ", ".join(self._ranks.found()[0])
                cause = f"ranks {ranks} run {STOP_SECONDS:.0f} s after its command stop had ended"
                raise TimedOut(self.name, "stop it", cause, "let the command wait for the end of the job")
        return {"state": "stopped", "why": "stopped by its command stop for a maintenance window"}

    def _have_ended(self, p: Program) -> bool:
        return bool(p.wait(lambda: not self._ranks.found()[0], STOP_SECONDS))

    def start_again(self, checkpoint: SeenCheckpoint, down: Mapping[str, object] | None = None) -> RunPlace:
        """Run the command that starts the job from a checkpoint, and wait until its ranks write records."""
        del down
        p, is_ours = Program(MemoryJournal(), self._calls), self._exists(self._mark)
        if self.state()["state"] == "running":
            return self._started() if is_ours else {"by_owner": f"a job in {self._job['run_dir']}"}
        if not is_ours or not p.wait(self._runs, START_SECONDS):
            self._write(self._mark)
            folder = str(self._job["checkpoints"])
            self._run("start", posixpath.normpath(posixpath.join(folder, checkpoint["path"])))
        if not p.wait(self._runs, START_SECONDS):
            cause = f"no rank has written a record {START_SECONDS:.0f} s after its command start had ended"
            raise TimedOut(self.name, "start it again", cause, "start it by hand, and end the window")
        return self._started()

    def _runs(self) -> bool:
        return self.state()["state"] == "running"

    def _exists(self, path: str) -> bool:
        return bool(required(self._on_launcher("ansible.builtin.stat", {"path": path}))["stat"]["exists"])

    def _write(self, path: str) -> None:
        required(self._on_launcher(run_files.COPY, {"content": "", "dest": path, "mode": "0600"}))

    def _remove(self, path: str) -> None:
        required(self._on_launcher("ansible.builtin.file", {"path": path, "state": "absent"}))

    def _started(self) -> RunPlace:
        """Return where the job runs."""
        return {
            "run": self._name,
            "launcher": self._job["launcher"],
            "kubernetes": {},
            "user": self._job.get("user") or "",
            "run_dir": self._job["run_dir"],
            "nodes": self.machines(),
        }

    def _run(self, name: Literal["start", "stop"], checkpoint: str = "") -> None:
        """Run a command of the owner on the launcher; its words are not for a shell."""
        given = self._job[name]
        words = shlex.split(given) if isinstance(given, str) else [str(word) for word in given]
        argv = [word.replace(PLACE, checkpoint) for word in words]
        # A failed module would not return the output.
        answer = required(self._on_launcher(run_files.COMMAND, {"argv": [*OUTPUT_AND_CODE, *argv]}))
        output, _line, code = str(answer.get("stdout") or "").rstrip().rpartition("\n")
        if code != "0":
            cause = (output.rstrip().splitlines() or [f"it ended with exit code {code}"])[-1]
            raise Failed(self.name, f"{name} it with {shlex.join(argv)}", cause, "correct the command, then continue")

    def watch(self) -> RunWatch:
        """Return the watch of its records."""
        return watch_of(self._calls, self._job, self._name, self._job["nodes"])

    def judged(self) -> Result:
        """Return no verdict: another tool keeps the code, the data and the command of the job."""
        return unjudged(self.name)

    def machines(self) -> list[ReachedNode]:
        """Return the nodes of the job."""
        return list(self._job["nodes"])

    def _on_launcher(self, module: str, options: Mapping[str, object]) -> Result:
        return self._calls.on(str(self._job["launcher"]), module, options)

    @property
    def _name(self) -> str:
        return posixpath.basename(str(self._job["run_dir"]))

    @property
    def _mark(self) -> str:
        return f"{self._job['run_dir']}/{STARTED}"


def checkpoints_in(calls: TrainingCalls, job: NamedJob) -> Checkpoints:
    """Return the checkpoints in the folder that the user names, on the launcher."""
    folder, launcher = str(job["checkpoints"]), str(job["launcher"])
    found = required(calls.on(launcher, any_job.INFO, {"gather": ["checkpoints"], "checkpoints": folder}))
    return checkpoints_of(found["checkpoints"], f"{launcher}:{folder}", calls.now())


def watch_of(calls: TrainingCalls, job: NamedJob, name: str, nodes: Sequence[ReachedNode]) -> RunWatch:
    """Return the watch of the records of a job that another tool runs."""
    records, launcher = str(job.get("records") or job["run_dir"]), str(job["launcher"])
    o = {"results": job["results"], "runs": posixpath.dirname(records), "silence": 0, "command": [name]}
    options: Options = cast("Options", {**o, "launcher": launcher})
    run = TrainingRun(options, {}, posixpath.basename(records), name, "")
    launched: Launched = {"launcher": launcher, "kubernetes": {}, "watched": list(nodes)}
    return RunWatch(calls, run, launched, launcher)


def unjudged(name: str) -> Result:
    """Return that a restart is not judged."""
    why = f"{name}: inconclusive: this collection does not know whether its program is the same"
    return {"verdict": "inconclusive", "lines": [why], "breaches": []}


def lacking(job: Mapping[str, object]) -> str:
    """Return why a job that the user names cannot be restarted; empty if it has its commands."""
    # Slurm itself stops and starts its jobs.
    missing = [name for name in COMMANDS if not job.get(name) and (name == "checkpoints" or not job.get("slurm"))]
    needed = "the folder checkpoints" if job.get("slurm") else "the commands stop and start, and the folder checkpoints"
    return f"maintenance_job needs {needed} for a restart: it lacks {', '.join(missing)}." if missing else ""
