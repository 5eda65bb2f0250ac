"""The checks of `make gpu` that need PyTorch and no GPU pass on CPUs: `make frameworks`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".cache" / "frameworks" / "pytorch" / "bin" / "python"
ON_CPUS = ["steps of a script", "steps of Trainer", "steps of Lightning", "stun of a rank", "killed rank"]


@pytest.mark.parametrize("check", ON_CPUS)
def test_check_without_gpu_needs_passes_on_cpus(check: str, tmp_path: Path) -> None:
    command = [str(PYTHON), "-m", "tools.gpu", "--out", str(tmp_path), "--name", "cpu", check]

    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=600)

    results = json.loads((tmp_path / "cpu.json").read_text())["checks"]
    assert (done.returncode, results[check]["result"]) == (0, "ok"), done.stdout + done.stderr
