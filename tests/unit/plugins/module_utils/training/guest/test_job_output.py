"""The end of the output of a job: bounded, from a whole line on, and without secret values."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.errors import Failed
from plugins.module_utils.guests import supervisor
from plugins.module_utils.training.guest import job
from plugins.module_utils.training.guest.job import TrainingJob
from plugins.module_utils.training.guest.job_output import last_output, shown_output
from tests.unit.plugins.module_utils.training.guest.test_job import params

TOKEN = "a-token-of-the-site"
MISSING = "rank 0 on n1 ended: ModuleNotFoundError: No module named 'net.data' (train.py, line 3)"


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    (tmp_path / supervisor.DESIRED).write_text(json.dumps({"secret_environment": {"TOKEN": TOKEN, "LEVEL": "1"}}))
    return tmp_path


def test_missing_output_is_empty(run_dir: Path) -> None:
    assert last_output(str(run_dir), 10) == shown_output(str(run_dir), 10) == ""


@pytest.mark.parametrize("limit", range(1, 60))
def test_no_part_of_a_secret_value_is_shown(run_dir: Path, limit: int) -> None:
    (run_dir / supervisor.OUTPUT).write_text(f"login with {TOKEN}\nlevel 1\ndone\n")
    shown = shown_output(str(run_dir), limit)
    assert not any(TOKEN[begin:] in shown for begin in range(len(TOKEN) - 3)), shown
    assert "login with {TOKEN}\nlevel 1\ndone\n".endswith(shown) or shown == "login with HIDDEN\nlevel 1\ndone\n"


def test_a_run_directory_without_options_has_an_output(tmp_path: Path) -> None:
    (tmp_path / supervisor.OUTPUT).write_bytes(b"\xff one\n")
    assert shown_output(str(tmp_path), 100) == "\ufffd one\n"


@pytest.mark.parametrize("name", [supervisor.DESIRED, job.PROGRAM])
def test_a_full_disk_leaves_the_folder_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    opening = os.open

    def full(path: str, *rest: Any) -> int:
        handle = opening(path, *rest)
        if os.path.basename(path) != name:
            return handle
        os.close(handle)
        return opening("/dev/full", os.O_WRONLY)

    monkeypatch.setattr(job.os, "open", full)
    subject = TrainingJob(params(tmp_path))
    with pytest.raises(Failed, match=rf"create the run directory: .*/run/{name}: No space left on device"):
        subject._start()
    assert subject.read() == {"state": "absent"}
    assert [path.name for path in (tmp_path / "run").iterdir()] == []


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        (
            "src/net/__init__.py",
            "; your folder has src/net: set PYTHONPATH=src in training_environment, or install it with",
        ),
        ("code/python/net.py", "; your folder has code/python/net: set PYTHONPATH=code/python in"),
        ("a/b/c/net.py", "; add the package that has the module net to requirements.txt in your folder"),
        (".git/net.py", "; add the package that has the module net to requirements.txt in your folder"),
    ],
)
def test_a_missing_module_is_found_in_the_folder(tmp_path: Path, path: str, remedy: str) -> None:
    (tmp_path / "work" / path).parent.mkdir(parents=True)
    (tmp_path / "work" / path).touch()

    assert job.of(MISSING, str(tmp_path)).startswith(remedy)
