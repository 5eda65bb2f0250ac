"""The stacks of real ranks, which train on, and processes that are not ranks, which get no signal."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plugins.module_utils.watch import stack_program
from plugins.module_utils.watch.node_programs import read_stacks

FILES = Path(__file__).parents[5] / "roles" / "training" / "files"
TRAIN = """
import os, sys, time
def waits():
    print("ready", flush=True)
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.05)
waits()
"""


def rank(folder: Path, number: int) -> subprocess.Popen[str]:
    """Start a rank that waits for the file ``end``."""
    script = folder / "train.py"
    script.write_text(TRAIN)
    numbers = {"OMPI_COMM_WORLD_RANK": str(number), "DML_RECORDS": str(folder), "PYTHONPATH": str(FILES)}
    words = [sys.executable, str(FILES / "dml_steps.py"), str(script), str(folder / "end")]
    process = subprocess.Popen(words, env={**os.environ, **numbers}, stdout=subprocess.PIPE, text=True)
    assert process.stdout and process.stdout.readline() == "ready\n"
    return process


def test_each_rank_writes_its_stack_and_continues(tmp_path: Path) -> None:
    ranks = [rank(tmp_path, number) for number in range(2)]
    nodes = [{"name": "n1", "reach": ["sh", "-c"]}]

    first, second = (read_stacks(nodes=nodes, folder=str(tmp_path)) for _time in range(2))

    assert first == second == "Outside collectives: ranks 0, 1 are at train.py, line 6 (waits)."
    (tmp_path / "end").touch()
    for process in ranks:
        with process:
            assert process.wait(10) == 0
    assert read_stacks(nodes=nodes, folder=str(tmp_path)) == ""


@pytest.mark.parametrize("start", ["own", "other"])
def test_does_not_signal_a_process_it_would_kill(tmp_path: Path, start: str) -> None:
    """The number of a rank that ended belongs to another process, or a user has written the file."""
    with subprocess.Popen(["sleep", "60"]) as process:
        ticks = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[19] if start == "own" else "1"
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        (tmp_path / "rank0.stack").write_text(f"{process.pid} {ticks} {boot} n1\n")
        (tmp_path / "rank1.stack").symlink_to("/etc/passwd")

        assert stack_program.stacks(str(tmp_path)) == {}

        time.sleep(0.2)
        assert process.poll() is None
        process.kill()
