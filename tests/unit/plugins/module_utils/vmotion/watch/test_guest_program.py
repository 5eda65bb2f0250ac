# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The program for a node reports the timers of its ranks, and none of their keys."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from plugins.module_utils.vmotion.watch import guest_program
from tests.reuse import reused


def test_the_environment_of_a_rank_is_reported_without_its_keys(tmp_path: Path) -> None:
    environment = {"HOROVOD_SECRET_KEY": "hush", "NCCL_API_TOKEN": "hush", "HOME": "hush", "NCCL_IB_TIMEOUT": "20"}
    with subprocess.Popen(["sleep", "60"], env={**environment, "PATH": "/usr/bin:/bin"}) as rank:
        (tmp_path / "rank0.jsonl").write_text(json.dumps({"pid": rank.pid}) + "\n")
        try:
            assert guest_program.rank_environment(str(tmp_path)) == {"NCCL_IB_TIMEOUT": "20"}
        finally:
            rank.kill()


def test_a_process_that_got_the_pid_of_a_rank_is_not_read_for_it(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as rank:
        record = {"pid": rank.pid, "start": guest_program.start_ticks(rank.pid)}
        (tmp_path / "rank0.jsonl").write_text(json.dumps(record) + "\n")
        assert guest_program.rank_environment(str(tmp_path)) == {}
        rank.kill()
    with reused(rank.pid):
        assert guest_program.rank_environment(str(tmp_path)) is None


def test_rdma_devices_are_listed(tmp_path: Path) -> None:
    assert guest_program.rdma_devices(str(tmp_path / "none")) == []
    (tmp_path / "mlx5_1").mkdir()
    (tmp_path / "mlx5_0").mkdir()
    assert guest_program.rdma_devices(str(tmp_path)) == ["mlx5_0", "mlx5_1"]
