"""The output of foreign benchmarks becomes the same records that the log readers return."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plugins.module_utils.training.output.log import Record, parse

ROOT = Path(__file__).parents[3]
FILES = ROOT / "roles" / "training" / "files"
LOG = ROOT / "tests" / "fixtures" / "tf_cnn_benchmarks-trivial-4ranks.log"
HOROVOD = "Model: ResNet50\nIter #0: 12.5 img/sec per GPU\nIter #1: 13.5 img/sec per GPU\nImg/sec per GPU: 13.0 +-1.0\n"
# Prints what it is given, in pieces, and says who it is; beside it lies a module that it imports.
SCRIPT = """
import json, sys, sibling
for piece in json.loads(sys.argv[1]):
    print(piece, end="")
    sys.stdout.flush()
print(__name__, sibling.WORD, len(sys.argv))
"""


def printed_by(rank: int) -> str:
    """Return what one rank printed in the real log."""
    steps = [record for record in parse(LOG.read_text()).steps if record.rank == rank]
    return "".join(line_of(record) for record in steps)


def line_of(record: Record) -> str:
    rate, loss = record.images_per_sec, record.loss
    return f"{record.step}\timages/sec: {rate:.1f} +/- 0.2 (jitter = 0.6)\t{loss:.3f}\n"


def recorded(folder: Path, pieces: list[str], rank: int = 0) -> tuple[str, list[dict[str, object]]]:
    """Return what a script printed in the end, and the records of it."""
    for path in folder.glob("*.jsonl"):
        path.unlink()
    (folder / "script.py").write_text(SCRIPT)
    (folder / "sibling.py").write_text("WORD = 'beside'")
    mpi = {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "4", "DML_RECORDS": str(folder)}
    command = [sys.executable, "-u", str(FILES / "dml_output.py"), str(folder / "script.py"), json.dumps(pieces)]
    done = subprocess.run(command, env={**os.environ, **mpi}, capture_output=True, text=True, check=True)
    return done.stdout, [json.loads(line) for line in (folder / f"rank{rank}.jsonl").read_text().splitlines()]


def test_every_step_of_the_real_log_is_recorded(tmp_path: Path) -> None:
    printed = printed_by(2)
    result, records = recorded(tmp_path, [printed], rank=2)
    assert result == f"{printed}__main__ beside 2\n"
    read = parse("".join(json.dumps(record) + "\n" for record in records))
    assert read.problems == []
    real = [record for record in parse(LOG.read_text()).steps if record.rank == 2]
    assert len(real) > 5
    assert [(one.rank, one.step, one.images_per_sec, one.loss) for one in read.steps] == [
        (one.rank, one.step, one.images_per_sec, one.loss) for one in real
    ]
    assert all(record["size"] == 4 and record["pid"] for record in records)


def test_horovod_s_own_benchmark_is_recorded(tmp_path: Path) -> None:
    _result, records = recorded(tmp_path, [HOROVOD])
    reported = [(record["step"], record["stride"], record["images_per_sec"], record["loss"]) for record in records]
    assert reported == [(0, 1, 12.5, None), (1, 1, 13.5, None)]


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(1, len(HOROVOD) - 1), max_size=8))
def test_however_it_is_printed(tmp_path: Path, cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(HOROVOD)]
    pieces = [HOROVOD[begin:end] for begin, end in itertools.pairwise(places)]
    result, records = recorded(tmp_path, pieces)
    assert result.startswith(HOROVOD)
    assert [record["images_per_sec"] for record in records] == [12.5, 13.5]
