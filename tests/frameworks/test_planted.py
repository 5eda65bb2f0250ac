"""Bugs planted in programs of PyTorch, in two real ranks over Gloo: a deadlock, NaN, a shape: `make frameworks`."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.module_utils.training.ending.job_end import cause_of
from plugins.module_utils.watch import hangs, stack_program
from plugins.module_utils.watch.live_pace import NotFinite
from plugins.module_utils.watch.received_record import received_record
from tests.frameworks.test_frameworks import FILES, FRAMEWORKS, records

BEGIN = """
import sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def step(x):
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
step(torch.rand(8, 4))
"""
DEADLOCK = """
def validate():
    input()
if rank == 1:
    validate()
dist.all_reduce(torch.ones(1))
"""
NOT_FINITE = "for number in range(8):\n    step(torch.rand(8, 4) / (0.0 if rank == 1 and number == 3 else 1.0))\n"
SHAPE = "step(torch.rand(8, 4 + rank))\n"
SOON_SECONDS = 20.0


class Ranks:
    """Two ranks of a script, as mpirun starts them."""

    def __init__(self, folder: Path, script: str, **variables: str) -> None:
        (folder / "train.py").write_text(BEGIN + script)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(probe.getsockname()[1])}
        own = {"DML_STEPS_BY": "auto", "DML_RECORDS": str(folder / "run"), "PYTHONPATH": str(FILES), **variables}
        self.output = folder / "output.log"
        self.processes = [self._begin(folder, rank, {**os.environ, **place, **own}) for rank in (0, 1)]

    def _begin(self, folder: Path, rank: int, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        python = FRAMEWORKS / "pytorch" / "bin" / "python"
        assert python.exists(), "the frameworks are not installed: run make frameworks"
        words = [str(python), "-u", str(FILES / "dml_torchrun.py"), str(folder / "train.py")]
        numbers = {"RANK": rank, "SIZE": 2, "LOCAL_RANK": rank, "LOCAL_SIZE": 2}
        place = {f"OMPI_COMM_WORLD_{name}": str(number) for name, number in numbers.items()}
        with (folder / f"rank{rank}.log").open("wb") as output:
            return subprocess.Popen(
                words, cwd=folder, env={**environment, **place}, stdin=subprocess.PIPE, stdout=output, stderr=output
            )

    def end(self) -> None:
        """End the ranks that still run."""
        for process in self.processes:
            process.kill()
            process.communicate()


@pytest.fixture
def started() -> Iterator[list[Ranks]]:
    """Return the ranks that a test begins, which are ended after it."""
    found: list[Ranks] = []
    yield found
    for ranks in found:
        ranks.end()


def test_names_a_rank_outside_a_collective_with_line(tmp_path: Path, started: list[Ranks]) -> None:
    started.append(Ranks(tmp_path, DEADLOCK))
    deadline = time.monotonic() + 300
    while "(validate), outside the collective" not in (found := _stacks(tmp_path)):
        assert time.monotonic() < deadline, found
    line = (BEGIN + DEADLOCK).splitlines().index("    input()") + 1

    before = time.monotonic()
    sentence = _stacks(tmp_path)

    assert "rank 1" in sentence and f"train.py:{line}" in sentence.replace(", line ", ":"), sentence
    assert time.monotonic() - before < SOON_SECONDS


def _stacks(folder: Path) -> str:
    if not (folder / "run").is_dir():
        return ""
    return hangs.stack_sentences({"n0": {"ranks": stack_program.stacks(str(folder / "run"))}})


def test_names_step_and_ranks_of_infinite_gradients(tmp_path: Path, started: list[Ranks]) -> None:
    started.append(Ranks(tmp_path, NOT_FINITE, DML_CHECK_GRADIENTS="1"))
    assert [process.wait(600) for process in started[0].processes] == [0, 0]

    judged = NotFinite()
    for rank in (0, 1):
        for record in records(tmp_path, rank):
            received = received_record({**record, "seen": record["t"]})
            assert received is not None
            judged.feed(received)

    # The first of nine steps was before the loop: DistributedDataParallel gives both ranks the gradients of rank 1.
    assert judged.sentence() == "gradients not finite since step 5 on ranks 0, 1"


def test_names_rank_and_line_of_a_different_shape(tmp_path: Path, started: list[Ranks]) -> None:
    started.append(Ranks(tmp_path, SHAPE))
    assert started[0].processes[1].wait(600) == 1

    # mpirun tags the lines of a rank.
    text = (tmp_path / "rank1.log").read_text()
    with_tags = "".join(f"[1,1]<stderr>:{line}\n" for line in text.splitlines())
    cause = cause_of(with_tags, 1, ["w1", "w2"])

    line = (BEGIN + SHAPE).splitlines().index("    model(x).mean().backward()") + 1
    assert "mat1 and mat2 shapes cannot be multiplied (8x5 and 4x1)" in cause.sentence, text
    assert f"line {line}" in cause.sentence, cause.sentence
