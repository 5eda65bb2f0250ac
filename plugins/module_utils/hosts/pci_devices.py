# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The PCI devices of a host as plain data: which are GPUs, and which are given to virtual machines as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..vsphere import properties
from ..vsphere.inventory import Host
from ..workers.capacity.pci_ids import is_gpu, unsigned

PATHS = ("hardware.pciDevice", "config.pciPassthruInfo", "config.graphicsInfo")


def devices(host: Host) -> dict[str, dict[str, Any]]:
    """Every PCI device by its address, with its state of passthrough."""
    passthrough = {one.id: one for one in host["config.pciPassthruInfo"] or []}
    known = {one.pciId for one in host["config.graphicsInfo"] or []}
    return {one.id: _device(one, passthrough.get(one.id), known) for one in host["hardware.pciDevice"] or []}


def gpus(host: Host) -> dict[str, dict[str, Any]]:
    """The NVIDIA GPUs among the devices."""
    return {address: device for address, device in devices(host).items() if device["gpu"]}


def passthrough_of(device: Mapping[str, Any]) -> str:
    """Whether a device is given to virtual machines as a whole: off, pending (it is or was, until a boot), or on."""
    state = device["passthrough"]
    if state["enabled"] and state["active"]:
        return "on"
    return "pending" if state["enabled"] or state["active"] else "off"


def vms_on_gpus(host: Host) -> dict[str, list[str]]:
    """By PCI address, the names of the virtual machines that use a GPU; they are asked for only where there are any."""
    used = {one.pciId: list(one.vm or []) for one in host["config.graphicsInfo"] or []}
    refs = {ref._moId: ref for users in used.values() for ref in users}
    named = properties.read_many(host.session, list(refs.values()), ("name",))
    return {gpu: sorted(named[ref._moId]["name"] for ref in users if ref._moId in named) for gpu, users in used.items()}


def _device(device: Any, passthrough: Any, with_graphics: set[str]) -> dict[str, Any]:
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
    }
