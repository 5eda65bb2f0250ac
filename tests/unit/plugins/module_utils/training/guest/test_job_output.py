"""The end of the output of a job: bounded, from a whole line on, and without secret values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plugins.module_utils.guests import supervisor
from plugins.module_utils.training.guest.job_output import last_output, shown_output

TOKEN = "a-token-of-the-site"


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
