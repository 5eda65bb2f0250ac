"""Requirements over a stack, with real venv and pip: installed once, and the stack keeps its versions."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.errors import Failed, Refused
from plugins.module_utils.training.guest.environment import COMPLETE, Environment

WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Return a folder with a package in a wheel."""
    folder = tmp_path / "work"
    folder.mkdir()
    info = "extra-1.0.dist-info"
    with zipfile.ZipFile(folder / "extra-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("extra.py", "WORD = 'extra'\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: extra\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", WHEEL)
        wheel.writestr(f"{info}/RECORD", f"extra.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return folder


def environment(work: Path, text: str, **changes: Any) -> Environment:
    (work / "requirements.txt").write_text(text)
    params = {"python": sys.executable, "requirements": text, "folder": str(work), "name": "requirements.txt"}
    return Environment({**params, "code": "1", "store": str(work.parent / "store"), "timeout": 120, **changes})


def test_installs_requirements_once_on_top_of_the_stack(work: Path) -> None:
    subject = environment(work, "--no-index\n./extra-1.0-py3-none-any.whl\npytest\n")
    plan = subject.plan(subject.read())
    assert plan.due
    subject.apply(plan)
    assert Path(subject.python).parents[1].joinpath("requirements.txt").stat().st_mode & 0o777 == 0o600
    again = environment(work, "--no-index\n./extra-1.0-py3-none-any.whl\npytest\n")
    assert not again.plan(again.read()).due
    assert again.lock == ["extra==1.0"]
    program = "import extra, pytest, sys; print(extra.__file__, pytest.__file__)"
    printed = subprocess.run([subject.python, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert [str(work.parent / "store") in path for path in printed] == [True, False]


def test_refuses_requirements_that_conflict_with_the_stack(work: Path) -> None:
    subject = environment(work, "--no-index\npytest==0.1\n")
    with pytest.raises(
        Failed, match=r"could not install the requirements: ERROR: .*\(the stack has .*pytest \d.*; corre"
    ):
        subject.apply(subject.plan(subject.read()))
    assert subject.read() == {"python": None}
    assert not list((work.parent / "store").glob(f"*/{COMPLETE}"))


def test_names_a_missing_interpreter(work: Path) -> None:
    with pytest.raises(Refused, match=r"requirements over /nowhere/python: could not read the packages of the stack"):
        environment(work, "", python="/nowhere/python")
