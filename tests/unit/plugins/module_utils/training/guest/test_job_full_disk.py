"""A job that is to start on a full disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.errors import Failed
from plugins.module_utils.guests import supervisor
from plugins.module_utils.training.guest import job
from plugins.module_utils.training.guest.job import TrainingJob
from tests.unit.plugins.module_utils.training.guest.test_job import params


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
