"""The PCI devices of a host as plain data, with their passthrough and whether they are GPUs."""

from __future__ import annotations

from typing import TypedDict

from ..vsphere import properties
from ..vsphere.inventory import Host
from ..vsphere.sdk import ApiObject
from ..workers.capacity.pci_ids import is_gpu, unsigned

PATHS = ("hardware.pciDevice", "config.pciPassthruInfo", "config.graphicsInfo")


class PassthroughState(TypedDict):
    """The passthrough of a device: whether it is possible, configured, and active since the last boot."""

    capable: bool
    enabled: bool
    active: bool


class DirectPathState(TypedDict):
    """The mode of a device and the modes that it could have, in the names of the API."""

    mode: str
    modes: list[str]


class PciDevice(TypedDict):
    """A PCI device; its IDs are four hexadecimal digits. Only hosts from 9.1 on report ``direct_path``."""

    name: str
    vendor: str
    vendor_id: str
    device_id: str
    gpu: bool
    passthrough: PassthroughState
    direct_path: DirectPathState | None


def devices(host: Host) -> dict[str, PciDevice]:
    """Return every PCI device by address, with its passthrough state."""
    passthrough = {device.id: device for device in host["config.pciPassthruInfo"] or []}
    with_graphics = {gpu.pciId for gpu in host["config.graphicsInfo"] or []}
    devices_of_host = host["hardware.pciDevice"] or []
    return {device.id: _device(device, passthrough.get(device.id), with_graphics) for device in devices_of_host}


def gpus(host: Host) -> dict[str, PciDevice]:
    return {address: device for address, device in devices(host).items() if device["gpu"]}


def passthrough_of(device: PciDevice) -> str:
    """Return the passthrough of a device: off, on, or pending, if the configured value waits for a boot."""
    state = device["passthrough"]
    if state["enabled"] and state["active"]:
        return "on"
    return "pending" if state["enabled"] or state["active"] else "off"


def vms_on_gpus(host: Host) -> dict[str, list[str]]:
    """Return the names of the virtual machines on each GPU by PCI address; without such machines, nothing is read."""
    users = {gpu.pciId: list(gpu.vm or []) for gpu in host["config.graphicsInfo"] or []}
    refs = {ref._moId: ref for vms in users.values() for ref in vms}
    names = properties.read_many(host.session, list(refs.values()), ("name",))
    return {gpu: sorted(names[ref._moId]["name"] for ref in vms if ref._moId in names) for gpu, vms in users.items()}


def _device(device: ApiObject, passthrough: ApiObject, with_graphics: set[str]) -> PciDevice:
    return {
        "name": device.deviceName,
        "vendor": device.vendorName,
        "vendor_id": f"{unsigned(device.vendorId):04x}",
        "device_id": f"{unsigned(device.deviceId):04x}",
        "gpu": is_gpu(device, with_graphics),
        "passthrough": {
            "capable": bool(passthrough and passthrough.passthruCapable),
            "enabled": bool(passthrough and passthrough.passthruEnabled),
            "active": bool(passthrough and passthrough.passthruActive),
        },
        "direct_path": _direct_path(getattr(passthrough, "directPathState", None)),
    }


def _direct_path(state: ApiObject) -> DirectPathState | None:
    return {"mode": state.mode, "modes": list(state.configurableModes or [])} if state else None
