"""The RDMA devices of a node, read from a made-up sysfs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from roles.training.files.dml_hcas import devices


def put(root: Path, name: str, text: str | int) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def counters_of(root: Path) -> dict[str, Any]:
    (device,) = devices(root)
    return dict(device)


def test_counts_words_of_both_ports_of_a_card(tmp_path: Path) -> None:
    port = "class/infiniband/mlx5_0/ports"
    put(tmp_path, f"{port}/1/gids/0", "fe80:0000:0000:0000:0250:56ff:fe00:0001")
    put(tmp_path, f"{port}/1/gids/3", "0000:0000:0000:0000:0000:ffff:0a00:0001")
    put(tmp_path, f"{port}/1/gid_attrs/types/3", "RoCE v2")
    put(tmp_path, f"{port}/1/counters/port_xmit_data", 100)
    put(tmp_path, f"{port}/2/counters/port_xmit_data", 25)
    (tmp_path / "mlx5_core").mkdir()
    (tmp_path / "class/infiniband/mlx5_0/device").mkdir()
    (tmp_path / "class/infiniband/mlx5_0/device/driver").symlink_to(tmp_path / "mlx5_core")
    assert counters_of(tmp_path) == {"name": "mlx5_0", "driver": "mlx5_core", "gid_index": 3, "sent_bytes": 500}


@pytest.mark.parametrize(("mtu", "size"), [(9000, 4096), (1500, 1024), (600, 512)])
def test_soft_roce_counts_packets(tmp_path: Path, mtu: int, size: int) -> None:
    put(tmp_path, "class/infiniband/rxe0/parent", "eth0")
    put(tmp_path, "class/infiniband/rxe0/ports/1/hw_counters/sent_pkts", 7)
    put(tmp_path, "class/net/eth0/mtu", mtu)
    assert counters_of(tmp_path)["sent_bytes"] == 7 * size


def test_reports_a_device_without_counters(tmp_path: Path) -> None:
    (tmp_path / "class/infiniband/vmw_pvrdma0/ports/1").mkdir(parents=True)
    assert counters_of(tmp_path)["sent_bytes"] is None
    assert devices(tmp_path / "nowhere") == []
