"""Run directories in which another user could replace a program."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.guests import file_ownership
from plugins.module_utils.training.guest import job
from plugins.module_utils.training.guest.code_folder import CodeFolder
from plugins.module_utils.training.guest.environment import COMPLETE, Environment
from plugins.module_utils.training.guest.job import TrainingJob
from tests.unit.plugins.module_utils.training.guest.test_job import left, params, program

__all__ = ["left"]


def test_refuses_a_folder_that_other_users_may_write(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(
        Refused, match=f"could not start a job: other users may write in {folder}; run this as the user of the job"
    ):
        TrainingJob(params(tmp_path)).plan({"state": "absent"})
    with pytest.raises(Refused):
        TrainingJob(params(tmp_path))._start()
    assert list(folder.iterdir()) == []


def test_a_folder_of_another_user_holds_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir()
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    if own == 0:
        # Root's folders are accepted like the user's, so the folder gets a third user as its owner.
        found = os.stat_result((0o40755, *[0] * 3, own + 2, *[0] * 5))
        monkeypatch.setattr("plugins.module_utils.guests.file_ownership.os.stat", lambda _path, **_how: found)
    with pytest.raises(Refused, match=r"run belongs to another user \(uid \d+\)"):
        TrainingJob(params(tmp_path)).plan({"state": "absent"})


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run as root, to whom all files belong, also if another user runs the tests."""
    real = os.stat

    def stat(path: Any, **how: Any) -> os.stat_result:
        found = real(path, **how)
        return os.stat_result((*found[:4], 0, *found[5:]))

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "stat", stat)


@pytest.mark.usefixtures("as_root")
def test_root_starts_no_job_below_a_shared_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    # As in a folder that only root can change.
    is_below = file_ownership._above
    monkeypatch.setattr(file_ownership, "_above", lambda path: [one for one in is_below(path) if one == str(shared)])
    shared.chmod(0o775)
    with pytest.raises(Refused, match=f"other users may write in {shared}"):
        TrainingJob(params(shared)).plan({"state": "absent"})
    shared.chmod(0o1777)
    TrainingJob(params(shared / "one")).plan({"state": "absent"})


@pytest.fixture
def lent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_root: None) -> Path:
    """Return a folder of root below one in which a group may rename entries, as root sees them."""
    lent = tmp_path / "lent"
    (lent / "own").mkdir(parents=True)
    is_below = file_ownership._above
    monkeypatch.setattr(file_ownership, "_above", lambda path: [one for one in is_below(path) if one == str(lent)])
    lent.chmod(0o775)
    return lent


@pytest.mark.parametrize("shared", ["dest", "store"])
def test_root_unpacks_no_code_below_a_shared_folder(lent: Path, shared: str) -> None:
    """Root would run a file that another user has put in its place."""
    folders = {"dest": str(lent.parent / "dest"), "store": str(lent.parent / "store"), shared: str(lent / "own")}
    code = CodeFolder({"sha256": "", "archive": None, "once": False, **folders})
    with pytest.raises(Refused, match=f"could not unpack code that root runs: other users may write in {lent}; run"):
        code.read()
    lent.chmod(0o755)
    assert code.read() == {"sha256": None}


def test_root_uses_no_environment_below_a_shared_folder(lent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Environment, "_stack", lambda _self: {"folders": [], "packages": {}})
    given = {"python": "/usr/bin/python3", "requirements": "", "code": "", "folder": "", "store": str(lent)}
    environment = Environment(given)
    path = Path(environment.python).parents[1]
    path.mkdir()
    (path / COMPLETE).touch()
    with pytest.raises(Refused, match="could not use the environment: other users may write in"):
        environment.read()
    lent.chmod(0o755)
    assert environment.read() == {"python": environment.python}


def test_an_environment_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Environment, "_stack", lambda _self: {"folders": [], "packages": {}})
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    found = os.stat_result((0o40755, *[0] * 3, own + 2, *[0] * 5))
    monkeypatch.setattr("plugins.module_utils.guests.file_ownership.os.stat", lambda _path, **_how: found)
    given = {"python": "/usr/bin/python3", "requirements": "", "code": "", "folder": "", "store": str(tmp_path)}
    with pytest.raises(Refused, match=r"belongs to another user \(uid \d+\); run this as the user of the folder"):
        Environment(given).read()


def test_does_not_follow_a_link_replacing_the_supervisor(left: Path) -> None:
    (left / "run").mkdir()
    (left / "victim").write_text("precious")
    (left / "run" / job.PROGRAM).symlink_to(left / "victim")
    started = TrainingJob(params(left, mpirun=program(left, "sleep 60")))
    started.apply(started.plan(started.read()))
    assert (left / "victim").read_text() == "precious"
    assert not (left / "run" / job.PROGRAM).is_symlink()
