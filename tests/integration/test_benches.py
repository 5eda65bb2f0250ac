"""The benchmarks whose numbers the documents quote run to their end; on small sizes, their limits do not matter."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lab.simulator import ROOT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "last"),
    [
        ("decisions/run", "measured in"),
        ("folder/run", "the end is noticed after"),
        ("observe/run", "MB of memory"),
        ("records/run 1000", "followed a field per record"),
        ("runs/run 4", "runs with many workers"),
        ("site/run 4", "times a play with one module"),
        ("verdict/run 40000 32", "CPU seconds of all / of a tenth"),
        ("vmotion/run --plans", "with the return home"),
    ],
)
def test_benchmark_measures_all_that_it_prints(command: str, last: str) -> None:
    name, *words = command.split()

    command_line = [sys.executable, str(ROOT / "bench" / name), *words]
    done = subprocess.run(command_line, cwd=ROOT, capture_output=True, text=True, check=False)

    assert "Traceback" not in done.stderr, done.stderr[-3000:]
    assert last in done.stdout.splitlines()[-1], done.stdout[-3000:] + done.stderr[-3000:]
