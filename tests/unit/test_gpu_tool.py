"""`make gpu` refuses each check in a sentence on a machine without a GPU, and still writes its page."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tools.gpu import checks, ranks
from tools.gpu.__main__ import page, run

ROOT = Path(__file__).parents[2]
WITHOUT_GPU = ["rows of nvidia-smi", "health", "out of memory", "communicator of NCCL", "Flight Recorder"]


def test_machine_without_gpu_reports_refused_checks_on_page(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.gpu", "--out", str(tmp_path), "--name", "here", *WITHOUT_GPU]

    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PATH": ""}, check=False, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((tmp_path / "here.json").read_text())["checks"]
    assert {name: one["result"] for name, one in results.items()} == dict.fromkeys(WITHOUT_GPU, "refused")
    assert all(one["said"].endswith(".") for one in results.values())
    assert "| rows of nvidia-smi | refused | This machine has no nvidia-smi. |" in (tmp_path / "here.md").read_text()


def test_failed_check_is_wrong_and_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def contradicts(_folder: Path) -> checks.Result:
        raise checks.Wrong("NCCL starts | without pools")

    def breaks(_folder: Path) -> checks.Result:
        raise ValueError("a damaged driver")

    monkeypatch.setitem(checks.CHECKS, "health", contradicts)
    monkeypatch.setitem(checks.CHECKS, "stun of a rank", breaks)
    results = {name: run(name, tmp_path, deadline=1e12) for name in ("health", "stun of a rank")}

    assert [one["result"] for one in results.values()] == ["wrong", "wrong"]
    assert "| health | wrong | NCCL starts / without pools |" in page("here", {"gpu": "T4"}, results)


def test_refuses_checks_after_the_deadline(tmp_path: Path) -> None:
    assert run("health", tmp_path, deadline=0.0)["said"] == "The time of all checks is over."


def test_kills_an_endless_rank_with_its_children(tmp_path: Path) -> None:
    process = ranks._rank(["sh", "-c", "sleep 300 & sleep 300"], tmp_path, dict(os.environ))
    job = ranks.Ranks(tmp_path, [process])

    (output,) = job.outputs(seconds=1.0)

    assert output.endswith("killed after its time") and job.codes == [-signal.SIGKILL]
