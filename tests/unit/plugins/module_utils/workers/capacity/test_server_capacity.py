"""The server's count of vGPUs: its queries, its answers, and the slots that it withholds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim, vmodl

from plugins.module_utils.workers.capacity import server_capacity
from plugins.module_utils.workers.capacity.server_capacity import Capacity
from plugins.module_utils.workers.placement.gpu_slots import PhysicalGpu, Slots

HOST = vim.HostSystem("host-1")
EMPTY = Slots((PhysicalGpu("0000:3b:00.0", "NVIDIA Tesla T4", 16.0),), ("grid_t4-16c", "grid_t4-8c"))

pytestmark = pytest.mark.skipif(
    not hasattr(vim, "DirectPathProfileManager"), reason="this pyVmomi is older than the manager"
)


class FakeManager:
    """A manager that counts grid_t4-8c and no other profile."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.fault, self.requests = fault, list[tuple[Any, list[str]]]()

    def QueryDirectPathProfileCapacity(self, target: Any, queries: list[Any]) -> list[Any]:  # noqa: N802 # its name
        if self.fault:
            raise self.fault
        self.requests.append((target.host, [query.deviceConfig.vgpuProfile for query in queries]))
        kinds = vim.DirectPathProfileManager
        return [
            kinds.CapacityInfo(consumed=1, remaining=2, max=4, unusedReservation=1)
            if query.deviceConfig.vgpuProfile == "grid_t4-8c"
            else kinds.CapacityUnknown(querySpec=query)
            for query in queries
        ]


def session(manager: Any, *version: int) -> Any:
    return SimpleNamespace(api_version=version, content=SimpleNamespace(directPathProfileManager=manager))


def test_requests_all_profiles_of_a_host_once() -> None:
    manager = FakeManager()
    found = server_capacity.read(session(manager, 9, 0, 0, 0), HOST, ["grid_t4-8c", "grid_t4-16c"])
    assert manager.requests == [(HOST, ["grid_t4-16c", "grid_t4-8c"])]
    assert found == {"grid_t4-8c": Capacity(used=1, free=2, total=4, reserved=1)}


def test_returns_nothing_if_the_server_does_not_count() -> None:
    manager = FakeManager()
    assert server_capacity.read(session(manager, 8, 0, 3, 0), HOST, ["grid_t4-8c"]) == {}
    assert server_capacity.read(session(manager, 9, 1, 0, 0), HOST, []) == {}
    assert server_capacity.read(session(None, 9, 1, 0, 0), HOST, ["grid_t4-8c"]) == {}
    assert manager.requests == []
    refusing = FakeManager(vmodl.fault.NotSupported())
    assert server_capacity.read(session(refusing, 9, 1, 0, 0), HOST, ["grid_t4-8c"]) == {}


@pytest.mark.parametrize(
    ("counted", "holders"),
    [
        ({}, []),
        ({"grid_t4-8c": Capacity(0, 2, 2, 0), "grid_t4-16c": Capacity(0, 1, 1, 0)}, []),
        ({"grid_t4-8c": Capacity(0, 1, 2, 1), "grid_t4-16c": Capacity(0, 0, 1, 0)}, [("a reservation", "grid_t4-8c")]),
        ({"grid_t4-16c": Capacity(0, 0, 1, 1)}, [("a reservation", "grid_t4-16c")]),
        ({"grid_t4-16c": Capacity(1, 0, 1, 0)}, [("another user (counted by vCenter)", "grid_t4-16c")]),
        ({"grid_t4-16c": Capacity(0, 9, 9, 0)}, []),
    ],
)
def test_names_a_holder_for_slots_counted_by_vcenter(
    counted: dict[str, Capacity], holders: list[tuple[str, str]]
) -> None:
    assert server_capacity.withheld(EMPTY, counted) == holders
