"""Workers are built on a segment of NSX, which has a port group of the same name on each switch."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim

from lab.simulator import Simulator
from plugins.module_utils.vsphere import properties
from tests.integration.ansible import AnsibleFor, Start
from tests.integration.workers import DEFAULTS, HOSTS, desired, do, machine, states

SEGMENT = "NSX-train"
OTHER = HOSTS.replace("switches:\n", "switches:\n  - {name: storage, mtu: 9000, uplinks: [vmnic1], portgroups: []}\n")


@pytest.fixture
def place(start: Start) -> Simulator:
    return start(text=OTHER)


def add_segment(place: Simulator) -> None:
    """Add the port groups of a segment to both switches, as NSX does."""
    with machine(place, "debian-12") as vm:
        for ref, _values in properties.find_all(vm.session, vim.dvs.VmwareDistributedVirtualSwitch, ("name",)):
            spec = vim.dvs.DistributedVirtualPortgroup.ConfigSpec(name=SEGMENT, type="ephemeral", backingType="nsx")
            do(vm, ref.AddDVPortgroup_Task([spec]))


def workers(name: str) -> dict[str, Any]:
    return desired(1) | {"defaults": DEFAULTS | {"management_nic": {"portgroup": name}}}


def test_builds_a_worker_on_the_segment_of_one_switch(place: Simulator, ansible_for: AnsibleFor) -> None:
    add_segment(place)
    place.clear()
    ansible = ansible_for(place)
    refused = ansible.module("worker_vm", **workers(SEGMENT))
    assert f"name it with its switch: rdma/{SEGMENT} or storage/{SEGMENT}" in refused.msg
    assert place.writes() == []
    built = ansible.module("worker_vm", **workers(f"storage/{SEGMENT}"))
    assert built.rc == 0, built.out
    assert states(built)["worker01"]["management_nic"]["portgroup"] == f"storage/{SEGMENT}"
    assert not ansible.module("worker_vm", **workers(f"storage/{SEGMENT}")).changed
    moved = ansible.module("worker_vm", check=True, **workers(f"rdma/{SEGMENT}"))
    assert moved.changed
