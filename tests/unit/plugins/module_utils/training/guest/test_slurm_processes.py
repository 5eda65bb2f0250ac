"""The processes that Slurm lists for a job are its state on a node, with the folder of its records."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from plugins.module_utils.guests import supervisor
from plugins.module_utils.training.guest.slurm_processes import listed, state_of

# The answer of 22.05.8 on the node of the batch script.
HEAD = "PID      JOBID    STEPID   LOCALID GLOBALID\n"
LISTED = (
    HEAD
    + """{step}     4711     0        0       0
{batch}     4711     batch    0       0
{rank}     4711     batch    -       -
"""
)


@pytest.fixture
def rank() -> Iterator[int]:
    program = "print(flush=True); import time; time.sleep(600)"
    given = {**os.environ, "DML_RECORDS": "/home/anna/records"}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=given) as started:
        assert started.stdout and started.stdout.readline() == b"\n"
        yield started.pid
        started.kill()


def test_launcher_is_the_batch_script(rank: int) -> None:
    output = LISTED.format(step=os.getppid(), batch=os.getpid(), rank=rank)

    state = state_of("4711", output, "", "")

    assert (state["state"], state["records"]) == ("running", "/home/anna/records")
    assert state["launcher"] == supervisor.identity(os.getpid())
    assert state_of("4711", output, "", "/given")["records"] == "/given"


@pytest.mark.parametrize(
    ("output", "failure"),
    [
        (HEAD, ""),
        (LISTED.format(step=2**22 + 1, batch=2**22 + 2, rank=2**22 + 3), ""),
        ("", "slurm_load: no scontrol"),
        ("x 1 2\n99999999999999999999 1 batch 0 0\n", ""),
    ],
)
def test_job_without_listed_processes_is_absent(output: str, failure: str) -> None:
    why = f"Slurm lists no process of job 4711 on {socket.gethostname()}"

    assert state_of("4711", output, failure, "") == {"state": "absent", "why": f"{why}: {failure}" if failure else why}


@pytest.mark.parametrize(
    ("number", "squeue", "listed_as", "error"),
    [
        ("4711", (0, "", ""), "4711", ""),
        ("2_1", (0, "3\n", ""), "3", ""),
        (
            "2_1",
            (1, "", "slurm_load_jobs error: Invalid job id specified\n"),
            "",
            "slurm_load_jobs error: Invalid job id",
        ),
    ],
)
def test_lists_an_array_task_by_its_number(
    number: str, squeue: tuple[int, str, str], listed_as: str, error: str
) -> None:
    """Slurm 22.05.8 answers: "2_1" does not look like a jobid."""
    commands: list[list[str]] = []

    def run(command: list[str]) -> tuple[int, str, str]:
        commands.append(command)
        return squeue if command[0] == "squeue" else (0, HEAD, "")

    output, why = listed(number, run)

    assert commands[-1][-1] == (listed_as or "--format=%A")
    assert why.startswith(error) and output == (HEAD if listed_as else "")
