"""The changes of a fabric that would interrupt running virtual machines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.fabric import fabric_spec, refusals
from plugins.module_utils.fabric.fabric import Fabric
from plugins.module_utils.plan import Plan
from plugins.module_utils.vsphere import properties

SPEC = fabric_spec.fabric_spec_of(
    {"cluster": "gpu", "switch": "rdma", "mtu": 9000, "uplink": "", "port_groups": [], "adapters": [], "adopt": False}
)
HOST, GROUP = vim.HostSystem("host-1"), vim.dvs.DistributedVirtualPortgroup("dvportgroup-1")
CARDS = vim.vm.device
DVX = CARDS.VirtualPCIPassthrough.DvxBackingInfo(deviceClass="cx7")
PVRDMA, DIRECTPATH = CARDS.VirtualVmxnet3Vrdma(), CARDS.VirtualSriovEthernetCard(dvxBackingInfo=DVX)
PLAIN = CARDS.VirtualVmxnet3()
VLAN, MTU, UPLINK = "VLAN of rdma-vm", "MTU of rdma", "uplink of esx01.lab"


def refused(monkeypatch: pytest.MonkeyPatch, card: Any, *, power: str = "poweredOn") -> list[str]:
    """Return the refusals of changes to VLAN, MTU and uplink while a virtual machine with a card is connected."""
    values = {
        "name": "w1",
        "network": [GROUP],
        "runtime.powerState": power,
        "runtime.host": HOST,
        "config.hardware.device": [card],
    }
    monkeypatch.setattr(properties, "read_linked", lambda *_args: [(None, values)])
    fabric: Any = Fabric(None, SPEC)  # type: ignore[arg-type] # only the machines are read
    fabric.groups = {"rdma-vm": SimpleNamespace(ref=GROUP, name="rdma-vm")}
    fabric.hosts = {"esx01.lab": SimpleNamespace(ref=HOST, name="esx01.lab")}
    plan = Plan(
        before={
            "port_groups.rdma-vm": {"vlan": 216},
            "switch": {"mtu": 9000},
            "hosts.esx01.lab": {"uplinks": ["vmnic0", "vmnic2"], "adapters": {}},
        },
        after={
            "port_groups.rdma-vm": {"vlan": 300},
            "port_groups.rdma-other": {"vlan": 5},
            "switch": {"mtu": 1500},
            "hosts.esx01.lab": {"uplinks": ["vmnic2"], "adapters": {}},
        },
    )
    return list(refusals.interrupted_machines({"machines": fabric._machines()}, SPEC, plan))


@pytest.mark.parametrize(
    ("card", "settings"), [(PVRDMA, [VLAN, MTU, UPLINK]), (DIRECTPATH, [VLAN, MTU, UPLINK]), (PLAIN, [VLAN])]
)
def test_protects_the_network_of_running_machines(
    monkeypatch: pytest.MonkeyPatch, card: Any, settings: list[str]
) -> None:
    assert refused(monkeypatch, card) == [f"w1 runs and uses the {one}: power it off first" for one in settings]


def test_allows_changes_while_machines_are_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(monkeypatch, DIRECTPATH, power="poweredOff") == []
