"""Property values of hosts and virtual machines as a server reports them: GPUs, PCI devices, settings."""

from __future__ import annotations

from typing import Any

from pyVmomi import vim

from plugins.module_utils.workers.placement.place import DeviceRequest

T4, NVSWITCH, NIC = "0000:3b:00.0", "0000:86:00.0", "0000:5e:00.0"
PROFILES = ("grid_t4-16c", "grid_t4-8c")
VGA, BRIDGE, NETWORK = 0x0300, 0x0680, 0x0200
NVIDIA, MELLANOX = 0x10DE, 0x15B3
GIGABYTE_IN_KB = 2**20
PASSTHROUGH = vim.vm.device.VirtualPCIPassthrough


def graphics(address: str = T4, *vms: str, **more: Any) -> Any:
    """One GPU as the host's graphics driver reports it, with the virtual machines on it."""
    given = {"graphicsType": "sharedDirect", "memorySizeInKB": 15 * GIGABYTE_IN_KB, **more}
    refs = [vim.VirtualMachine(key) for key in vms]
    return vim.host.GraphicsInfo(deviceName="NVIDIA Tesla T4", vendorName="NVIDIA", pciId=address, vm=refs, **given)


def pci_device(address: str = T4, kind: int = 0x1EB8, pci_class: int = VGA, vendor: int = NVIDIA) -> Any:
    """One PCI device of a host; its ids are signed, as the API shows them."""
    signed = kind - 0x10000 if kind >= 0x8000 else kind
    return vim.host.PciDevice(
        id=address, vendorId=vendor, deviceId=signed, classId=pci_class, deviceName="a device", vendorName="its vendor"
    )


def passthrough_of(address: str = T4, *, active: bool = True, label: str = "") -> Any:
    """The state of passthrough of one device."""
    return vim.host.PciPassthruInfo(
        id=address, passthruCapable=True, passthruEnabled=True, passthruActive=active, hardwareLabel=label
    )


def host(**more: Any) -> dict[str, Any]:
    """A host in service with one shared T4; dots of property names are written as two underscores."""
    values = {
        "name": "esx1",
        "runtime.connectionState": "connected",
        "runtime.inMaintenanceMode": False,
        "runtime.inQuarantineMode": False,
        "summary.hardware.memorySize": 64 * 2**30,
        "summary.hardware.numCpuThreads": 32,
        "summary.hardware.cpuMhz": 2000,
        "config.graphicsInfo": [graphics()],
        "config.sharedPassthruGpuTypes": list(PROFILES),
    }
    return {**values, **{key.replace("__", "."): value for key, value in more.items()}}


def vgpu(profile: str = "grid_t4-16c", group: int | None = None) -> Any:
    """A virtual GPU; ``group`` is the number of its device group."""
    info = vim.vm.device.VirtualDevice.DeviceGroupInfo(groupInstanceKey=group, sequenceId=0) if group else None
    backing = PASSTHROUGH.VmiopBackingInfo(vgpu=profile)
    return PASSTHROUGH(key=13000, backing=backing, deviceGroupInfo=info)


def passed(address: str = T4, vendor: int = NVIDIA) -> Any:
    """A device of the host by its address."""
    backing = PASSTHROUGH.DeviceBackingInfo(id=address, deviceId="1eb8", systemId="s", vendorId=vendor, deviceName="")
    return PASSTHROUGH(key=13001, backing=backing)


def passed_any(kind: int = 0x1EB8, *, assigned: str | None = None, label: str = "", vendor: int = NVIDIA) -> Any:
    """Any device of a kind, and the one that the host gave of it."""
    allowed = [PASSTHROUGH.AllowedDevice(vendorId=vendor, deviceId=kind)]
    backing = PASSTHROUGH.DynamicBackingInfo(
        allowedDevice=allowed, customLabel=label or None, deviceName="", assignedId=assigned
    )
    return PASSTHROUGH(key=13002, backing=backing)


def sriov_card() -> Any:
    """A network card that is a virtual function of the host's."""
    return vim.vm.device.VirtualSriovEthernetCard(key=4000)


def settings(**values: str) -> list[Any]:
    """Advanced settings of a virtual machine; dots of keys are written as two underscores."""
    return [vim.option.OptionValue(key=key.replace("__", "."), value=value) for key, value in values.items()]


def vm(name: str = "w1", *devices: Any, on: bool = True, **more: Any) -> dict[str, Any]:
    """A virtual machine with devices."""
    values = {
        "name": name,
        "runtime.host": vim.HostSystem("host-1"),
        "runtime.powerState": "poweredOn" if on else "poweredOff",
        "config.hardware.device": list(devices),
        "config.memoryAllocation.reservation": 4096,
    }
    return {**values, **{key.replace("__", "."): value for key, value in more.items()}}


def numa(*nodes: list[str]) -> Any:
    """The PCI devices of each NUMA node."""
    made = [
        vim.host.NumaNode(typeId=index, cpuID=[index], memoryRangeBegin=0, memoryRangeLength=0, pciId=addresses)
        for index, addresses in enumerate(nodes)
    ]
    return vim.host.NumaInfo(type="NUMA", numNodes=len(made), numaNode=made)


def rdma_nic(address: str = NIC) -> dict[str, Any]:
    """The properties of a host with an RDMA device on the NIC at this address."""
    backing = vim.host.RdmaDevice.PnicBacking(pairedUplink="key-vmnic4")
    return {
        "config__network__pnic": [vim.host.PhysicalNic(key="key-vmnic4", pci=address)],
        "config__network__rdmaDevice": [vim.host.RdmaDevice(key="vmrdma0", device="vmrdma0", backing=backing)],
    }


def request(kind: str) -> DeviceRequest:
    """Any GPU of a kind."""
    return DeviceRequest(kind)
