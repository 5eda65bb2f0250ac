"""A vCenter in memory with virtual machines: reads as the house's code reads, writes that are logged."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from pyVmomi import vim

from tests import recorded
from tests.fakes.calling import over
from tests.fakes.worker_cluster import disk

OFFERED = ("grid_t4-16c", "grid_t4-8c")
GIGABYTE = 2**20


class FakeVcenter:
    """One cluster of hosts with a T4 each, one RDMA port group, one template; ``bare`` before that was prepared."""

    def __init__(self, hosts: int = 3, *, bare: bool = False) -> None:
        self.bare = bare
        self.writes: list[tuple[str, str]] = []
        self.deaf: set[str] = set()
        self.faults: dict[str, Exception] = {}
        self.silent = False
        self.numbers = itertools.count(1)
        self.hosts = [vim.HostSystem(f"host-{number}") for number in range(1, hosts + 1)]
        self.group = vim.dvs.DistributedVirtualPortgroup("dvpg-1")
        self.switch = vim.dvs.VmwareDistributedVirtualSwitch("dvs-1")
        self.store, self.pool = vim.Datastore("datastore-1"), vim.ResourcePool("pool-1")
        self.folder = vim.Folder("folder-1")
        self.fields = FakeFields(self)
        self.machines: list[FakeVm] = []
        self.template = self.add("golden", template=True)
        content = SimpleNamespace(customFieldsManager=self.fields, setting=self)
        self.session = SimpleNamespace(server="vcenter.lab:443", uuid="52 1", api_version=(8, 0, 3, 0), content=content)

    def add(self, name: str, **more: Any) -> FakeVm:
        """A new virtual machine on the first host."""
        self.machines.append(FakeVm(self, name, **more))
        return self.machines[-1]

    def named(self, name: str) -> FakeVm:
        return next(vm for vm in self.machines if vm.name == name)

    def write(self, call: str, name: str) -> bool:
        """Log a write, raise the fault planned for it; whether it is kept."""
        self.writes.append((call, name))
        if call in self.faults:
            raise self.faults[call]
        return call not in self.deaf

    def QueryOptions(self, name: str) -> list[Any]:
        raise vim.fault.InvalidName(name=name)

    def values(self, ref: Any) -> dict[str, Any]:
        """All properties of an object."""
        if isinstance(ref, FakeVm):
            return ref.values()
        if isinstance(ref, vim.HostSystem):
            return self._host(ref)
        if isinstance(ref, vim.dvs.DistributedVirtualPortgroup):
            return {"name": "rdma-vm", "key": "dvpg-1", "config.distributedVirtualSwitch": self.switch}
        names = {"dvs-1": {"name": "rdma", "uuid": "50 11"}, "cluster-1": self._cluster()}
        return dict(names.get(ref._moId, {"name": ref._moId}))

    def all(self, kind: Any) -> list[Any]:
        """Every object of a kind."""
        kinds: dict[Any, Sequence[Any]] = {
            vim.ClusterComputeResource: [vim.ClusterComputeResource("cluster-1")],
            vim.VirtualMachine: self.machines,
            vim.HostSystem: self.hosts,
        }
        return list(kinds.get(kind, ()))

    def _cluster(self) -> dict[str, Any]:
        return {
            "name": "gpu",
            "host": self.hosts,
            "network": [] if self.bare else [self.group],
            "datastore": [self.store],
            "resourcePool": self.pool,
            "environmentBrowser": SimpleNamespace(QueryConfigOptionEx=_config_option),
        }

    def _host(self, ref: Any) -> dict[str, Any]:
        here = [vim.VirtualMachine(vm.ref) for vm in self.machines if vm.on and vm.host == ref and vm.profiles]
        info = vim.host.GraphicsInfo(
            deviceName="NVIDIA Tesla T4",
            vendorName="NVIDIA",
            pciId="0000:3b:00.0",
            graphicsType="basic" if self.bare else "sharedDirect",
            memorySizeInKB=15 * GIGABYTE,
            vm=here,
        )
        return {
            "name": f"{ref._moId}.lab",
            "runtime.connectionState": "connected",
            "summary.hardware.memorySize": 64 * 2**30,
            "summary.hardware.numCpuThreads": 32,
            "summary.hardware.cpuMhz": 2000,
            "config.graphicsInfo": [info],
            "config.sharedPassthruGpuTypes": [] if self.bare else list(OFFERED),
        }


def _config_option(spec: Any) -> Any:
    return recorded.config_options()[spec.key]


class FakeFields:
    """The custom attributes of the vCenter."""

    def __init__(self, vcenter: FakeVcenter) -> None:
        self.vcenter, self.field = vcenter, list[Any]()

    def AddCustomFieldDef(self, name: str, moType: Any) -> Any:  # noqa: N803 # as pyVmomi spells it
        self.field.append(SimpleNamespace(name=name, key=100 + len(self.field), managedObjectType=moType))
        return self.field[-1]

    def SetField(self, entity: Any, key: int, value: str) -> None:
        if self.vcenter.write("SetField", entity.name):
            entity.marks = {**entity.marks, key: value}


class FakeVm:
    """One virtual machine."""

    def __init__(self, vcenter: FakeVcenter, name: str, *, template: bool = False, on: bool = False) -> None:
        self.vcenter, self.name, self.template, self.on = vcenter, name, template, on
        self.ref = self._moId = f"vm-{next(vcenter.numbers)}"
        self.host, self.version, self.memory, self.cpus, self.annotation = vcenter.hosts[0], 1, 4096, 2, ""
        self.cores, self.locked, self.latency = 1, False, "normal"
        self.extra: dict[str, str] = {}
        self.marks: dict[int, str] = {}
        card = vim.vm.device.VirtualEthernetCard.NetworkBackingInfo(deviceName="somewhere")
        self.devices: list[Any] = [
            vim.vm.device.ParaVirtualSCSIController(key=1000),
            disk(name),
            vim.vm.device.VirtualVmxnet3(key=4000, backing=card, macAddress="00:50:56:80:00:01"),
        ]

    @property
    def profiles(self) -> list[str]:
        """The profiles of its virtual GPUs."""
        kind = vim.vm.device.VirtualPCIPassthrough
        return [device.backing.vgpu for device in self.devices if isinstance(device, kind)]

    def values(self) -> dict[str, Any]:
        """Its properties, as a server would copy them out."""
        return {
            "name": self.name,
            "runtime.host": self.host,
            "runtime.powerState": "poweredOn" if self.on else "poweredOff",
            "config.template": self.template,
            "config.version": "vmx-20",
            "config.changeVersion": str(self.version),
            "config.annotation": self.annotation,
            "config.firmware": "efi",
            "config.hardware.numCPU": self.cpus,
            "config.hardware.numCoresPerSocket": self.cores,
            "config.hardware.memoryMB": self.memory,
            "config.hardware.device": copy.deepcopy(self.devices),
            "config.memoryReservationLockedToMax": self.locked,
            "config.memoryAllocation.reservation": self.memory if self.locked else 0,
            "config.latencySensitivity": vim.LatencySensitivity(level=self.latency),
            "config.files.vmPathName": f"[store] {self.name}/{self.name}.vmx",
            "config.extraConfig": [vim.option.OptionValue(key=key, value=value) for key, value in self.extra.items()],
            "guest.ipAddress": "10.0.0.9" if self.on and not self.vcenter.silent else None,
            "parent": self.vcenter.folder,
            "datastore": [self.vcenter.store],
            "customValue": self.customValue,
        }

    @property
    def customValue(self) -> list[Any]:  # as pyVmomi spells it
        return [vim.CustomFieldsManager.StringValue(key=key, value=value) for key, value in self.marks.items()]

    def CloneVM_Task(self, folder: Any, name: str, spec: Any) -> Any:
        if not self.vcenter.write("CloneVM_Task", name):
            return SimpleNamespace(result=self)
        made = self.vcenter.add(name)
        made.host = spec.location.host
        made.extra = {one.key: one.value for one in spec.config.extraConfig}
        return SimpleNamespace(result=made)

    def ReconfigVM_Task(self, spec: Any) -> Any:
        if self.vcenter.write("ReconfigVM_Task", self.name):
            if spec.changeVersion != str(self.version):
                raise vim.fault.ConcurrentAccess(msg="stale")
            self._take(spec)
        return SimpleNamespace(result=None)

    def PowerOnVM_Task(self) -> Any:
        self.on = self.vcenter.write("PowerOnVM_Task", self.name) or self.on
        return SimpleNamespace(result=None)

    def PowerOffVM_Task(self) -> Any:
        self.on = not self.vcenter.write("PowerOffVM_Task", self.name) and self.on
        return SimpleNamespace(result=None)

    def RelocateVM_Task(self, spec: Any) -> Any:
        if self.vcenter.write("RelocateVM_Task", self.name):
            self.host = spec.host
        return SimpleNamespace(result=None)

    def Destroy_Task(self) -> Any:
        if self.vcenter.write("Destroy_Task", self.name):
            self.vcenter.machines.remove(self)
        return SimpleNamespace(result=None)

    def _take(self, spec: Any) -> None:
        self.version += 1
        self.cpus, self.memory = spec.numCPUs or self.cpus, spec.memoryMB or self.memory
        self.cores = spec.numCoresPerSocket or self.cores
        self.locked = self.locked or bool(spec.memoryReservationLockedToMax)
        self.annotation = self.annotation if spec.annotation is None else spec.annotation
        for option in spec.extraConfig:
            self.extra.pop(option.key, None)
            self.extra.update({option.key: option.value} if option.value else {})
        for change in spec.deviceChange:
            self.devices = [one for one in self.devices if one.key != change.device.key]
            if change.operation != "remove":
                change.device.key = max(abs(change.device.key), 1) if change.operation == "edit" else self._key()
                if change.fileOperation == "create":
                    change.device.backing = disk(self.name, f"{self.name}_{change.device.key}.vmdk").backing
                self.devices.append(change.device)

    def _key(self) -> int:
        return max(device.key for device in self.devices) + 1


call = partial(over, "worker_vm")
