"""A cluster with hosts, networks and machines as plain data; WorkerCluster reads these from a server."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from pyVmomi import vim

from plugins.module_utils.workers import foreign_disks
from plugins.module_utils.workers.hardware_limits import HardwareLimits, limits_of
from plugins.module_utils.workers.machine import Machine
from plugins.module_utils.workers.networks import Network, Networks
from plugins.module_utils.workers.worker_cluster import WorkerCluster
from plugins.module_utils.workers.worker_identity import WorkerIdentities
from tests import recorded
from tests.fakes import hardware

RDMA_GROUP, MANAGEMENT = "rdma-vm", "VM Network"
KILOBYTES_IN_GB = 2**20


class FakeWorkerCluster(WorkerCluster):
    """The cluster gpu; host-1 is esx1, and so on. ``refresh`` reads nothing and is counted."""

    def __init__(
        self,
        *machines: Machine,
        hosts: int = 2,
        running: Sequence[Machine] = (),
        groups: Mapping[str, Sequence[str]] | None = None,
        **more: Any,
    ) -> None:
        # pylint: disable=super-init-not-called # which would read from a server
        self.session = SimpleNamespace(server="vcenter.lab", api_version=(8, 0, 3), uuid="52 1")  # type: ignore[assignment]
        self.name, self.ref = "gpu", vim.ClusterComputeResource("cluster-1")
        refs = [vim.HostSystem(f"host-{number}") for number in range(1, hosts + 1)]
        self.hosts = {ref._moId: hardware.host(name=f"esx{ref._moId[5:]}", **more) for ref in refs}
        self.values = {"host": refs, "resourcePool": vim.ResourcePool("pool-1"), "datastore": [STORE]}
        self.machines = {one.name: one for one in machines}
        self.spare, self._elsewhere = {}, {}
        self._offered = dict(groups or {})
        self.marks: dict[str, dict[str, Any]] = {}
        self.unconfirmed: set[str] = set()
        self.refreshed: list[set[str]] = []
        self._light, self.identities = [], WorkerIdentities((), ())
        self._running: dict[str, list[Machine]] = {}
        for one in running:
            self._running.setdefault(one.host, []).append(one)
        group = vim.dvs.DistributedVirtualPortgroup("dvpg-1")
        known = [Network(RDMA_GROUP, group, "50 11", "dvpg-1"), Network(MANAGEMENT, vim.Network("network-1"))]
        self.__dict__.update(networks=Networks("gpu", known), hot_migrate=True)

    def refresh(self, names: Iterable[str], _known: object = None) -> None:
        self.refreshed.append(set(names))

    def limits(self, one: Machine, host: str) -> HardwareLimits:
        version = str(one["config.version"])
        option = recorded.config_options().get(version)
        return limits_of(version, option) if option else HardwareLimits()

    def groups(self, host: str) -> list[str]:
        return sorted(self._offered.get(host, []))

    def mark_of(self, vm: Machine) -> dict[str, Any] | None:
        return self.marks.get(vm.name)

    def is_confirmed(self, vm: Machine) -> bool:
        return vm.name in self.marks and vm.name not in self.unconfirmed


STORE = vim.Datastore("datastore-1")


def disk(folder: str, file: str = "", unit: int = 0, *, store: str = "store", **more: Any) -> Any:
    """A disk of 10 GB; its UUID depends on its file."""
    path, sharing = f"[{store}] {folder}/{file or folder + '.vmdk'}", more.pop("sharing", None)
    backing = vim.vm.device.VirtualDisk.FlatVer2BackingInfo(
        fileName=path, uuid=str(uuid.uuid5(uuid.NAMESPACE_URL, path)), sharing=sharing
    )
    options = {"key": 2000 + unit, "controllerKey": 1000, "unitNumber": unit, "capacityInKB": 10 * KILOBYTES_IN_GB}
    return vim.vm.device.VirtualDisk(backing=backing, **{**options, **more})


def record_of(*disks: Any) -> Any:
    """The record of these disks in the advanced settings of a worker."""
    uuids = [one.backing.uuid for one in disks]
    return vim.option.OptionValue(key=foreign_disks.RECORD, value=json.dumps(uuids))


def machine(name: str = "w1", *devices: Any, host: str = "host-1", **more: Any) -> Machine:
    """A virtual machine with 4 CPUs, 8 GB that are reserved, one disk of 10 GB, and these devices."""
    controller = vim.vm.device.ParaVirtualSCSIController(key=1000)
    boot = disk(name)
    values = {
        "runtime__host": vim.HostSystem(host),
        "config__hardware__numCPU": 4,
        "config__hardware__numCoresPerSocket": 1,
        "config__hardware__memoryMB": 8192,
        "config__memoryReservationLockedToMax": True,
        "config__memoryAllocation__reservation": 8192,
        "config__firmware": "efi",
        "config__files__vmPathName": f"[store] {name}/{name}.vmx",
        "parent": vim.Folder("folder-1"),
        "datastore": [STORE],
    }
    read = hardware.vm(name, controller, boot, *devices, **{**values, **more})
    options = read.setdefault("config.extraConfig", [])
    if all(option.key != foreign_disks.RECORD for option in options):
        options.append(record_of(boot))
    session: Any = SimpleNamespace(server="vcenter.lab")
    return Machine(session, vim.VirtualMachine(f"vm-{name}"), read)


def groups_of(machine_: Machine, **groups: int) -> Machine:
    """The machine with device groups of these names and numbers."""
    kind = vim.vm.VirtualDeviceGroups
    made = [kind.VendorDeviceGroup(groupInstanceKey=key, deviceGroupName=name) for name, key in groups.items()]
    return with_values(machine_, {"config.deviceGroups": kind(deviceGroup=made)})


def with_values(machine_: Machine, values: Mapping[str, Any]) -> Machine:
    """The machine with other properties."""
    return Machine(machine_.session, machine_.ref, {**machine_.values, **values})


def rdma_card(key: int = 4001, mac: str = "00:50:56:01:02:04", protocol: str = "rocev2") -> Any:
    """A PVRDMA card on the RDMA port group."""
    port = vim.dvs.PortConnection(switchUuid="50 11", portgroupKey="dvpg-1")
    backing = vim.vm.device.VirtualEthernetCard.DistributedVirtualPortBackingInfo(port=port)
    return vim.vm.device.VirtualVmxnet3Vrdma(key=key, backing=backing, macAddress=mac, deviceProtocol=protocol)


def plain_card(key: int = 4000, mac: str = "00:50:56:01:02:03", network: str = MANAGEMENT) -> Any:
    """A card for management."""
    backing = vim.vm.device.VirtualEthernetCard.NetworkBackingInfo(deviceName=network)
    return vim.vm.device.VirtualVmxnet3(key=key, backing=backing, macAddress=mac)
