# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Run directories in which another user could replace a program."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.guests import file_ownership
from plugins.module_utils.training.guest import job
from plugins.module_utils.training.guest.job import TrainingJob
from tests.unit.plugins.module_utils.training.guest.test_job import left, params, program

__all__ = ["left"]


def test_a_folder_in_which_others_may_write_holds_no_job(tmp_path: Path) -> None:
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
        monkeypatch.setattr("plugins.module_utils.guests.file_ownership.os.stat", lambda _path: found)
    with pytest.raises(Refused, match=r"run belongs to another user \(uid \d+\)"):
        TrainingJob(params(tmp_path)).plan({"state": "absent"})


def test_root_starts_no_job_below_a_folder_that_others_may_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
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


def test_a_link_that_lies_where_the_supervisor_is_written_is_not_followed(left: Path) -> None:
    (left / "run").mkdir()
    (left / "victim").write_text("precious")
    (left / "run" / job.PROGRAM).symlink_to(left / "victim")
    started = TrainingJob(params(left, mpirun=program(left, "sleep 60")))
    started.apply(started.plan(started.read()))
    assert (left / "victim").read_text() == "precious"
    assert not (left / "run" / job.PROGRAM).is_symlink()
