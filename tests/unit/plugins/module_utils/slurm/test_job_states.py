"""The state of a run is that of its run directory, unless Slurm holds or ends its job."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.slurm import job_states
from plugins.module_utils.slurm.job_states import SlurmJob

# squeue of Slurm 22.05.8 on four nodes of the lab.
SQUEUE = """1|dml-a|COMPLETED|None|2026-11-29T02:28:43|dml|(null)
7|dml-a|PENDING|Resources|N/A|dml|dml:abc
5|dml-a|RUNNING|None|2026-11-29T02:28:58|dml|dml:a|b

"""
FULL = {"state": "waiting", "full": "; no space left on n1:/r, whose file system / has 1.0 MB"}
WAITS, RUNS, CAME = {"state": "waiting"}, {"state": "running"}, {"state": "finished"}
DIED = {"state": "died", "why": "rank 1 on n2 was ended by signal 9", "machine": True}
STOPPED = {"state": "stopped"}


def job(state: str) -> SlurmJob:
    return SlurmJob("5", "dml-a", state, "None", "N/A", "dml", "dml:a")


def test_jobs_are_found_by_their_comment() -> None:
    jobs = job_states.jobs_of(SQUEUE)
    assert [(one.number, one.is_alive, one.comment) for one in jobs] == [
        ("1", False, "(null)"),
        ("7", True, "dml:abc"),
        ("5", True, "dml:a|b"),
    ]
    assert job_states.own_job(jobs, "a", "a|b") == jobs[2] and job_states.own_job(jobs, "a", "") == jobs[1]
    assert job_states.own_job(jobs, "a", "other") is None and job_states.own_job(jobs, "b", "") is None


@pytest.mark.parametrize(
    ("waiting", "queue", "line"),
    [
        (job("CONFIGURING"), "", "Slurm job 5 is CONFIGURING"),
        (job("PENDING"), "", "Slurm job 5 in partition dml: waits, None"),
        (job("PENDING"), "9|gpu\n8|dml\n5|dml\n", "Slurm job 5 in partition dml: place 2 of 2, None"),
        (
            SlurmJob("5", "dml-a", "PENDING", "Priority", "2026-11-29T03:00:00", "dml", ""),
            "5|dml",
            "place 1 of 1, Priority, expected",
        ),
    ],
)
def test_waiting_job_has_its_place_and_reason(waiting: SlurmJob, queue: str, line: str) -> None:
    assert line in job_states.why_waiting(waiting, queue)


@pytest.mark.parametrize(
    ("there", "slurm", "state", "is_of_machine", "words"),
    [
        (WAITS, job("PENDING"), "waiting", None, "Slurm starts job 5"),
        (RUNS, job("RUNNING"), "running", None, ""),
        (WAITS, job("RUNNING"), "waiting", None, "Slurm starts job 5"),
        (WAITS, None, "stopped", None, "was cancelled while it waited"),
        (RUNS, None, "running", None, ""),
        (CAME, job("COMPLETED"), "finished", None, ""),
        (CAME, job("TIMEOUT"), "finished", None, ""),
        (DIED, job("FAILED"), "died", True, "signal 9"),
        (WAITS, job("FAILED"), "died", False, "as FAILED before its ranks started; /r/slurm.log on n1 says why"),
        (FULL, job("FAILED"), "died", False, "before its ranks started; no space left on n1:/r, whose"),
        (STOPPED, job("TIMEOUT"), "died", False, "at its time limit: set training_slurm.time to"),
        (RUNS, job("NODE_FAIL"), "died", True, "one of its nodes did not answer (NODE_FAIL)"),
        ({}, job("NODE_FAIL"), "died", True, "(NODE_FAIL)"),
        (DIED, job("OUT_OF_MEMORY"), "died", False, "(OUT_OF_MEMORY); rank 1 on n2 was ended by"),
        (STOPPED, job("PREEMPTED"), "died", True, "(PREEMPTED)"),
        (WAITS, job("BOOT_FAIL"), "died", True, "(BOOT_FAIL)"),
        (RUNS, job("CANCELLED"), "stopped", None, "Slurm job 5 was cancelled"),
        (WAITS, job("CANCELLED"), "stopped", None, "Slurm job 5 was cancelled"),
    ],
)  # fmt: skip
def test_state_follows_from_slurm_and_the_run_directory(
    there: dict[str, Any], slurm: SlurmJob | None, state: str, is_of_machine: bool | None, words: str
) -> None:
    found = job_states.combined(there, slurm, "/r/slurm.log on n1")
    assert (found["state"], found.get("machine")) == (state, is_of_machine) and words in found.get("why", "")
