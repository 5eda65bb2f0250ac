"""The networks of a data centre, of which other clusters may make more meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.fabric import port_groups
from plugins.module_utils.fabric.switch import SwitchLocation
from plugins.module_utils.vsphere import properties
from plugins.module_utils.vsphere.sdk import vim


def test_port_group_made_between_two_reads_counts_as_distributed(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = (vim.Network("network-7"), {"name": "VM Network"})
    made: list[Any] = []

    def read(_session: Any, _refs: Sequence[Any], _link: str, kind: Any, _paths: Sequence[str]) -> list[Any]:
        if kind is vim.Network:
            return [plain, *made]
        made.append((kind("dvportgroup-9"), {"name": "rdma-vm"}))
        return []

    monkeypatch.setattr(properties, "read_linked", read)

    session: Any = SimpleNamespace()
    assert port_groups.read(session, SwitchLocation("dc1", "datacenter-2", None)) == ([], ["VM Network"])
