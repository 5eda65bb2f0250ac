"""Data centres whose hosts have no RDMA network yet, and a fabric to wish for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyVmomi import vim

from lab.simulator import Simulator
from plugins.module_utils.fabric import fabric_marks
from plugins.module_utils.vsphere import custom_fields, inventory, properties, session, tasks

BARE = """
datacenter: dc1
datastores: [shared]
vcenter_options: {vgpu.hotmigrate.enabled: false}
switches:
  - {name: other, mtu: 1500, uplinks: [], portgroups: [{name: elsewhere}]}
host_defaults:
  hardware: t4_cx5
  reboot_seconds: 1
  vmotion_seconds: 0.2
  vmkernel:
    - {device: vmk0, portgroup: Management Network, address: "10.0.0.{n}", mtu: 1500, services: [management]}
clusters:
  - name: gpu
    drs: {enabled: true, behaviour: partiallyAutomated}
    ha: {enabled: true, admission_control: true, failover_level: 1}
    hosts:
"""
READY = """  - {name: rdma, mtu: 9000, uplinks: [vmnic2], portgroups: [{name: rdma-vm, vlan: 216}]}
"""


def datacentre(*hosts: str, more: str = "", count: int = 3) -> str:
    """Hosts without an RDMA switch: ``count`` equal ones, or those given, each the content of a YAML mapping."""
    lines = [f"      - {{{host}}}" for host in hosts] or [f'      - {{name: "esx%02d.lab", count: {count}}}']
    return BARE + "\n".join(lines) + "\n" + more


def with_switch(*hosts: str, more: str = "", count: int = 3) -> str:
    """The same on a switch that others built."""
    return datacentre(*hosts, more=more, count=count).replace("host_defaults:", f"{READY}host_defaults:", 1)


def addresses(hosts: Sequence[str]) -> dict[str, str]:
    return {host: f"10.216.0.{place}" for place, host in enumerate(hosts, start=1)}


def desired(hosts: Sequence[str] = ("esx01.lab", "esx02.lab", "esx03.lab"), **options: Any) -> dict[str, Any]:
    """A switch with one port group for VMs and one for the PVRDMA tag."""
    adapter = {
        "port_group": "rdma-vmk",
        "device": "vmk1",
        "network": "10.216.0.0/24",
        "addresses": addresses(hosts),
        "services": [],
    }
    return {
        "cluster": "gpu",
        "port_groups": [{"name": "rdma-vmk", "vlan": 216}, {"name": "rdma-vm", "vlan": 216}],
        "adapters": [adapter],
        **options,
    }


def opened(vcenter: Simulator) -> Any:
    """A session with a simulator, as a context."""
    return session.session(
        {"validate_certs": True, "proxy": None, "timeout": 60, "tls_fingerprint": None, **vcenter.connection}
    )


def object_of(one: session.Session, kind: Any, name: str) -> Any:
    """The reference of the one object of a kind with that name."""
    (ref,) = [ref for ref, values in properties.find_all(one, kind, ("name",)) if values["name"] == name]
    return ref


def connect(vcenter: Simulator, machine: str, port_group: str) -> None:
    """Give a virtual machine a PVRDMA adapter on a port group."""
    with opened(vcenter) as one:
        group = object_of(one, vim.dvs.DistributedVirtualPortgroup, port_group)
        port = vim.dvs.PortConnection(switchUuid=group.config.distributedVirtualSwitch.uuid, portgroupKey=group.key)
        backing = vim.vm.device.VirtualEthernetCard.DistributedVirtualPortBackingInfo(port=port)
        card = vim.vm.device.VirtualVmxnet3Vrdma(key=-1, backing=backing, deviceProtocol="rocev2")
        change = vim.vm.device.VirtualDeviceSpec(operation="add", device=card)
        vm = object_of(one, vim.VirtualMachine, machine)
        task = vm.ReconfigVM_Task(vim.vm.ConfigSpec(deviceChange=[change]))
        tasks.wait(one, tasks.Started(task, machine, "connect it"), 30)


def forget(vcenter: Simulator, host: str) -> None:
    """Take the note off a host, so that what is on it counts as built by others."""
    with opened(vcenter) as one:
        (found,) = inventory.find_hosts(one, {"hosts": [host]}).hosts
        custom_fields.store(one, found.ref, host, fabric_marks.ATTRIBUTE, "")
