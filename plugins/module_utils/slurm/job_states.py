"""The job of a run in Slurm, from ``squeue``, and how its state and that of the run directory combine; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# The columns of squeue. A comment may contain any character, so it comes last.
FORMAT = "%i|%j|%T|%r|%S|%P|%k"
COLUMNS = FORMAT.count("|")
# The number of a job, and of one task of a job array.
NUMBER = re.compile(r"[0-9]{1,12}(?:_[0-9]{1,12})?")
WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD")
# The start of each job's name, and of its comment. Names of nodes and runs have no such separator.
PREFIX, MARK, TASK = "dml-", "dml:", "_"
# Slurm ends the processes of the job, which may take as long as a node is slow.
ENDING = "COMPLETING"
ALIVE = (*WAITING, "RUNNING", ENDING, "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING")
# Why Slurm itself ends a job; the second value says whether a machine did it, so that another attempt may succeed.
ENDED_BY_SLURM = {
    "TIMEOUT": ("at its time limit: set training_slurm.time to a longer one", False),
    "DEADLINE": ("at its deadline", False),
    "OUT_OF_MEMORY": ("because it used more memory than Slurm allows", False),
    "NODE_FAIL": ("because one of its nodes did not answer", True),
    "BOOT_FAIL": ("because one of its nodes did not boot", True),
    "PREEMPTED": ("for a job with a higher priority", True),
}


@dataclass(frozen=True)
class SlurmJob:
    """A job in the queue of Slurm, or one that ended a short time ago; 4711_2 is task 2 of job array 4711."""

    number: str
    name: str
    state: str
    reason: str
    start: str
    partition: str
    comment: str

    @property
    def is_alive(self) -> bool:
        """Return whether the job waits or runs."""
        return self.state in ALIVE

    @property
    def is_of_run(self) -> bool:
        """Return whether a run of the collection submitted it, and neither the role slurm nor another user."""
        return self.name.startswith(PREFIX) and self.comment.startswith(MARK)

    @property
    def run(self) -> str:
        """Return the run whose job it is."""
        return run_of(self.name, self.number)

    @property
    def array(self) -> int:
        """Return its number without that of its task: a newer job has a greater one."""
        return int(self.number.partition(TASK)[0])

    def has(self, run_id: str) -> bool:
        """Return whether the comment names a run; that of an array has the start of each identifier."""
        ids = self.comment[len(MARK) :].split(",") if self.comment.startswith(MARK) else []
        return any(run_id.startswith(each) for each in ids if each)


def is_named(number: str, given: object) -> bool:
    """Return whether a user means a job with a number; that of a job array names its running task."""
    return str(given) in (number, number.partition(TASK)[0])


def name_of(run: str) -> str:
    """Return the name of the job of a run; a comma would separate two names."""
    return f"{PREFIX}{re.sub('[^A-Za-z0-9_.-]', '_', run)}"


def run_of(name: str, number: str) -> str:
    """Return the run of a job; the tasks of an array are the runs of a sweep."""
    task = number.partition(TASK)[2]
    return f"{name[len(PREFIX) :]}.{task}" if task else name[len(PREFIX) :]


def task_of(run: str) -> tuple[str, str]:
    """Return the sweep to which a run may belong, and its number in it; empty if its name has no number."""
    sweep, _dot, number = run.rpartition(".")
    return (sweep, number) if sweep and number.isdecimal() else ("", "")


def jobs_of(output: str) -> list[SlurmJob]:
    """Return the jobs in the output of squeue with ``FORMAT``."""
    rows = (line.strip().split("|", COLUMNS) for line in output.splitlines())
    return [SlurmJob(*row) for row in rows if len(row) == COLUMNS + 1 and NUMBER.fullmatch(row[0])]


def own_job(jobs: Sequence[SlurmJob], run: str, run_id: str) -> SlurmJob | None:
    """Return the job of a run, the newest of several; ``run_id`` is empty if its launcher does not answer.

    A command of a killed controller may reach Slurm late, so that a second job waits for the nodes of the first one.
    """
    own = [job for job in jobs if job.run == name_of(run)[len(PREFIX) :] and (not run_id or job.has(run_id))]
    if run_id:
        return max(own, key=lambda job: (job.is_alive, job.state not in WAITING, job.array), default=None)
    return max(own, key=lambda job: job.array, default=None)


def why_waiting(job: SlurmJob, queue: str) -> str:
    """Return one line about a job that waits; ``queue`` has the waiting jobs, those that start first before others."""
    if job.state != "PENDING":
        return f"Slurm job {job.number} is {job.state}"
    return f"Slurm job {job.number} in partition {job.partition}: {_place(job, queue)}"


def _place(job: SlurmJob, queue: str) -> str:
    rows = (line.strip().split("|") for line in queue.splitlines())
    ahead = [row[0] for row in rows if row[1:] == [job.partition]]
    place = f"place {ahead.index(job.number) + 1} of {len(ahead)}" if job.number in ahead else "waits"
    start = f", expected start {job.start}" if job.start not in ("N/A", "") else ""
    return f"{place}, {job.reason}{start}"


def in_table(job: SlurmJob, user: str, queue: str) -> dict[str, str]:
    """Return the row of a job among the runs; a cell is too short for the partition."""
    is_pending = job.state == "PENDING"
    why = f"job {job.number}: {_place(job, queue)}" if is_pending else why_waiting(job, queue)
    ended = {"COMPLETED": "finished", "FAILED": "died"}.get(job.state, "running")
    found = combined({"state": ended}, job, "", why)
    return {"name": job.run, "user": user, "state": str(found["state"]), "cause": str(found.get("why") or why)}


def combined(there: Mapping[str, object], job: SlurmJob | None, where: str, waits: str = "") -> dict[str, object]:
    """Return the state of a job from its run directory and from Slurm.

    ``where`` is the file with the messages of Slurm; ``there`` is empty if the launcher did not report the job.
    """
    state = there.get("state")
    if job is None or state == "finished":
        lost = "stopped: Slurm has no job of this run, whose ranks never started: it was cancelled while it waited"
        return {**there, "state": "stopped", "why": lost} if state == "waiting" else dict(there)
    if job.state in ENDED_BY_SLURM:
        how, is_of_machine = ENDED_BY_SLURM[job.state]
        return _died(there, f"Slurm ended job {job.number} {how} ({job.state})", machine=is_of_machine)
    if job.state == "CANCELLED":
        # A user who requested the end in the run directory had Slurm cancel it.
        requester = str(there.get("why") or "") if state == "stopped" else ""
        return {**there, "state": "stopped", "why": requester or f"stopped: Slurm job {job.number} was cancelled"}
    if job.state in WAITING or (state == "waiting" and job.is_alive):
        return {**there, "state": "waiting", "why": waits or f"Slurm starts job {job.number}"}
    why = there.get("full") or f"; {where} says why"
    before = f"Slurm ended job {job.number} as {job.state} before its ranks started{why}"
    return _died(there, before) if state == "waiting" else dict(there)


def _died(there: Mapping[str, object], why: str, machine: bool = False) -> dict[str, object]:
    """Return a job that Slurm ended, with the first cause in its output after that of Slurm."""
    first = str(there.get("why") or "") if there.get("state") == "died" else ""
    return {**there, "state": "died", "why": "; ".join(filter(None, (why, first))), "machine": machine}
