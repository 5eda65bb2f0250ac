# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Modules in zip files are compiled once, and run with the kept code, without it and with a damaged one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lab.simulator import BYTECODE


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the file that keeps code, and nothing kept yet."""
    shutil.copytree(BYTECODE, tmp_path / "lab" / "bytecode", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(checkout: Path, text: str, folder: str = "one") -> str:
    """Run a module of a zip file in a new folder, as Ansible does for each task."""
    place = checkout / folder / "payload.zip"
    place.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(place, "w") as file:
        file.writestr("answer.py", text)
    environment = {**os.environ, "PYTHONPATH": str(checkout / "lab" / "bytecode"), "PYTHONDONTWRITEBYTECODE": "1"}
    program = f"import sys; sys.path.insert(0, {str(place)!r}); import answer; print(answer.VALUE)"
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()


def kept(checkout: Path) -> list[Path]:
    return sorted((checkout / ".cache" / "bytecode").glob("*/*"))


def test_a_source_is_compiled_once_also_in_another_folder(checkout: Path) -> None:
    assert run(checkout, "VALUE = 6 * 7") == "42"
    (first,) = kept(checkout)
    written = first.stat().st_mtime_ns
    assert run(checkout, "VALUE = 6 * 7", "two") == "42"
    assert [(path, path.stat().st_mtime_ns) for path in kept(checkout)] == [(first, written)]


def test_a_changed_source_runs_as_it_is(checkout: Path) -> None:
    assert [run(checkout, f"VALUE = {number}") for number in (1, 2, 1)] == ["1", "2", "1"]
    assert len(kept(checkout)) == 2


@pytest.mark.parametrize("damaged", [b"", b"no code", b"i\x07\x00\x00\x00"])
def test_damaged_code_is_compiled_again(checkout: Path, damaged: bytes) -> None:
    run(checkout, "VALUE = 6 * 7")
    (only,) = kept(checkout)
    only.write_bytes(damaged)
    assert run(checkout, "VALUE = 6 * 7") == "42"
    assert only.read_bytes() != damaged


def test_a_folder_that_cannot_be_written_keeps_nothing(checkout: Path) -> None:
    (checkout / ".cache").write_text("a file, where root cannot make a folder either")
    assert run(checkout, "VALUE = 6 * 7") == "42"
