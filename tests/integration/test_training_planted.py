"""Bugs planted in a training program, with real mpirun: each ends the job soon, with the sentence that a person needs.

Those that need PyTorch are in ``tests/frameworks/test_planted.py``. Elsewhere are: a node or a disk that is lost, and a
second job in a run directory (``test_training_job.py``), and two runs at once (``test_training_busy.py``).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.ansible import Ansible
from tests.integration.training import FILES, Nodes

# It is five seconds on a machine without other load.
SOON_SECONDS = 20.0
BEGIN = """
import os, sys, time
import dml_records
records = dml_records.start()
def fact():
    with open(os.environ["FACT"], "w") as file:
        file.write(str(time.time()))
records.step()
"""
# A group of processes with 64 MB, in which the kernel kills the rank that takes more.
LITTLE_MEMORY = """
for top, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
    if os.path.exists(os.path.join(top, "cgroup.procs")):
        break
group = os.path.join(top, "dml-planted")
os.makedirs(group, exist_ok=True)
for name, value in ((limit, 64 << 20), ("cgroup.procs", os.getpid())):
    with open(os.path.join(group, name), "w") as file:
        file.write(str(value))
fact()
taken = b"1" * (256 << 20)
"""
MANY_LINES = """
if records.rank == 0:
    time.sleep(1000)
for number in range(100000):
    print("line", number)
fact()
raise ValueError("end")
"""
PLANTED = {
    "a module in src": (
        "fact()\nimport own_model\n",
        r"No module named 'own_model' \(train\.py, line \d+\); your folder has src/own_model: set PYTHONPATH=src in ",
    ),
    "a package": (
        "fact()\nimport einops_of_mine\n",
        r"No module named 'einops_of_mine' .*; add the package that has the module einops_of_mine to requirements.txt",
    ),
    "a path": (
        "if records.rank == 1:\n    fact()\n    open('data/train.csv')\ntime.sleep(100)\n",
        r"rank 1 on n2 ended: FileNotFoundError: .* No such file or directory: 'data/train\.csv' \(train\.py, line",
    ),
    "a shape on one rank": (
        "if records.rank == 1:\n    fact()\n    memoryview(bytes(6)).cast('B', (2, 4))\ntime.sleep(100)\n",
        r"rank 1 on n2 ended: TypeError: memoryview: product.* != buffer size \(train\.py, line \d+\)",
    ),
    "memory beyond that of the node": (
        f"if records.rank == 1:\n    exec({LITTLE_MEMORY!r})\ntime.sleep(100)\n",
        r"rank 1 on n2 \(process \d+\) was ended by signal 9 \(Killed\)",
    ),
    "a rank that kills itself": (
        "if records.rank == 1:\n    fact()\n    os.kill(os.getpid(), 9)\ntime.sleep(100)\n",
        r"rank 1 on n2 \(process \d+\) was ended by signal 9 \(Killed\)",
    ),
    "a hundred thousand lines": (MANY_LINES, r"rank 1 on n2 ended: ValueError: end \(train\.py, line \d+\)"),
    "an end without a step": ("fact()\nsys.exit(3)\n", r"rank [01] on \S+ ended with exit code 3"),
}


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    """Two nodes, and a folder with a package in src as a copy of the user's folder."""
    two = Nodes(Ansible({}, tmp_path), tmp_path)
    work = two.run_dir / "work"
    (work / "src" / "own_model").mkdir(parents=True)
    (work / "src" / "own_model" / "__init__.py").touch()
    two.script = work / "train.py"
    yield two
    if two.look()["state"] == "running":
        two.stop()
    for group in (Path("/sys/fs/cgroup/memory/dml-planted"), Path("/sys/fs/cgroup/dml-planted")):
        if group.is_dir():
            group.rmdir()


def died(nodes: Nodes, script: str) -> tuple[str, float]:
    """Return why the job of a script died, and the seconds from the planted fact until that is known."""
    nodes.script.write_text(BEGIN + script)
    fact = nodes.folder / "fact"
    hosts = [{"name": nodes.here}, {"name": "n2"}]
    environment = {"PYTHONPATH": str(FILES), "FACT": str(fact)}
    command = [sys.executable, "-u", str(FILES / "dml_steps.py"), str(nodes.script)]
    started = nodes.start(command=command, hosts=hosts, environment=environment)
    assert started.changed, started.out
    job = nodes.ended()
    assert job["state"] == "died", job
    assert nodes.processes(job) == []
    return str(job["why"]), time.time() - float(fact.read_text())


QUICK = ("a module in src", "a path", "memory beyond that of the node", "a hundred thousand lines")


@pytest.mark.parametrize("bug", [bug if bug in QUICK else pytest.param(bug, marks=pytest.mark.slow) for bug in PLANTED])
def test_names_a_planted_bug_soon(nodes: Nodes, bug: str) -> None:
    script, sentence = PLANTED[bug]

    why, seconds = died(nodes, script)

    assert re.search(sentence, why), why
    assert seconds < SOON_SECONDS


def test_names_a_full_file_system_with_its_size(nodes: Nodes) -> None:
    small = nodes.folder / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(small)], check=True)
    try:
        # A file for each rank: a second one that truncates the file of the first would make room again.
        each = f"open({os.fspath(small / 'model.')!r} + str(os.getpid()), 'wb')"
        why, seconds = died(nodes, f"fact()\n{each}.write(bytes(1 << 22))\n")
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)

    assert re.search(rf"found the disk full: OSError: .* No space left on device.*{small} \(2 MB\)", why), why
    assert seconds < SOON_SECONDS
