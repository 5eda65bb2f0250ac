"""The job of another tool: the processes that write its records, and the launcher above them."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.guests import supervisor
from plugins.module_utils.training.guest import others_job
from plugins.modules import training_info
from tests.unit.plugins.modules.test_continuity_verdict import call


@contextmanager
def launched(folder: Path, name: str = "mpirun") -> Iterator[tuple[int, int]]:
    """Run a launcher with one child, the rank; their numbers."""
    launcher = folder / name
    launcher.write_text("#!/bin/sh\nsleep 600 &\necho $!\nwait\n")
    launcher.chmod(0o755)
    with subprocess.Popen([launcher], stdout=subprocess.PIPE, text=True, start_new_session=True) as started:
        assert started.stdout is not None
        rank = int(started.stdout.readline())
        try:
            yield started.pid, rank
        finally:
            os.killpg(started.pid, 9)
            # The rank may end after its launcher.
            until = time.monotonic() + 30
            while supervisor.start_ticks(rank) is not None and time.monotonic() < until:
                time.sleep(0.01)


def note(folder: Path, rank: int, **who: Any) -> None:
    """Write the last record of a rank."""
    line = json.dumps({"rank": rank, "step": 7, "boot_id": supervisor.boot_id(), **who})
    (folder / f"rank{rank}.jsonl").write_text(f"no record\n{line}\n[1]\n")


def test_finds_a_running_job_and_its_launcher(tmp_path: Path) -> None:
    with launched(tmp_path) as (launcher, rank):
        note(tmp_path, 0, pid=rank, start=supervisor.start_ticks(rank), job="77")
        state = others_job.state_of(str(tmp_path))
        assert (state["state"], state["job"], state["launcher"]["pid"]) == ("running", "77", launcher)
        assert state["launcher"] == supervisor.identity(launcher)
        assert state["started"] == pytest.approx((tmp_path / "mpirun").stat().st_mtime, abs=5)
    ended = others_job.state_of(str(tmp_path))
    assert ended["state"] == "absent" and str(tmp_path) in ended["why"]


def test_without_a_launcher_the_rank_represents_the_job(tmp_path: Path) -> None:
    with launched(tmp_path, "starter") as (_starter, rank):
        note(tmp_path, 3, pid=rank, start=supervisor.start_ticks(rank))
        assert others_job.state_of(str(tmp_path))["launcher"]["pid"] == rank


@pytest.mark.parametrize(
    "who", [{"start": 1}, {"start": "1"}, {"boot_id": "another"}, {"pid": 0}, {"pid": "x"}, {"pid": None}]
)
def test_another_process_is_not_a_rank(tmp_path: Path, who: dict[str, Any]) -> None:
    note(tmp_path, 0, **{"pid": os.getpid(), "start": supervisor.start_ticks(os.getpid()), **who})
    assert others_job.state_of(str(tmp_path))["state"] == "absent"


def test_a_folder_without_records_has_no_job(tmp_path: Path) -> None:
    (tmp_path / "rank0.jsonl").write_text("half a line")
    assert others_job.state_of(str(tmp_path))["state"] == "absent"
    assert others_job.state_of(str(tmp_path / "none"))["state"] == "absent"


def test_reads_the_processes_only_if_records_are_given(tmp_path: Path) -> None:
    note(tmp_path, 0, pid=os.getpid(), start=supervisor.start_ticks(os.getpid()))
    assert call(training_info, gather=["job"], run_dir=str(tmp_path))["job"] == {"state": "absent"}
    assert (
        call(training_info, gather=["job"], run_dir=str(tmp_path), records=str(tmp_path))["job"]["state"] == "running"
    )
