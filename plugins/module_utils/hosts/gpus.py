"""The GPUs of a host as plain data: configured and active sharing, by GPU for the settings that can differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..maintenance import boot
from ..vsphere.inventory import Host
from ..vsphere.sdk import ApiObject
from . import pci_devices
from .pci_address import with_domain
from .reading import NUMA, Entry, Group, Reading

PATHS = (
    "config.graphicsConfig",
    "config.sharedPassthruGpuTypes",
    "config.product.version",
    *pci_devices.PATHS,
    *boot.PATHS,
)
TYPES = {"shared": "shared", "shared_direct": "sharedDirect"}
MODES = {"same_size": "sameSize", "mixed_size": "mixedSize"}
MIG = "mig"
POLICY_NOTE = "graphics policy"  # the API does not report the policy in use
_NAMES = {api: name for names in (TYPES, MODES) for name, api in names.items()} | {"multiInstanceGpu": MIG}
_PER_GPU = {"type": "types", "active_type": "active_types", "mode": "modes", "active_mode": "active_modes"}


def facts(host: Host) -> dict[str, Any]:
    """Return the GPUs of a host and their sharing, as the API reports them."""
    gpus, users = pci_devices.gpus(host), pci_devices.vms_on_gpus(host)
    config, info = host["config.graphicsConfig"], {gpu.pciId: gpu for gpu in host["config.graphicsInfo"] or []}
    configured = {device.deviceId: device for device in (config.deviceType if config else None) or []}
    listed = [gpu for gpu in gpus if gpu in info or gpu in configured]
    active_modes = {gpu: name_of(getattr(info.get(gpu), "vgpuMode", None)) for gpu in listed}
    policy = config.sharedPassthruAssignmentPolicy if config else None
    return {
        "default_type": name_of(config.hostDefaultGraphicsType if config else None),
        "policy": policy,
        "active_policy": boot.pending(host).get(POLICY_NOTE, policy),
        "types": {gpu: name_of(getattr(configured.get(gpu), "graphicsType", None)) for gpu in listed},
        "active_types": active_types(info.values(), listed),
        "modes": {gpu: name_of(getattr(configured.get(gpu), "vgpuMode", None)) or active_modes[gpu] for gpu in listed},
        "active_modes": active_modes,
        "gpus": {gpu: _gpu(device, info.get(gpu), users.get(gpu, [])) for gpu, device in gpus.items()},
        "profiles": sorted(host["config.sharedPassthruGpuTypes"] or []),
        "version": host["config.product.version"],
        "in_maintenance": host.in_maintenance,
    }


def active_types(info: Iterable[Any] | None, gpus: Iterable[str]) -> dict[str, str | None]:
    """Return the active graphics type of each of these GPUs; None for a GPU without one."""
    types = {gpu.pciId: name_of(gpu.graphicsType) for gpu in info or []}
    return {gpu: types.get(gpu) for gpu in gpus}


def name_of(api: str | None) -> str | None:
    """Return the collection's name for a type or a mode of the API."""
    return _NAMES.get(api, api) if api else None


def _gpu(device: pci_devices.PciDevice, info: ApiObject, vms: list[str]) -> dict[str, Any]:
    mode = name_of(getattr(info, "vgpuMode", None))
    return {
        **{key: device[key] for key in ("name", "vendor", "vendor_id", "device_id")},
        "memory_mb": info.memorySizeInKB // 1024 if info and info.memorySizeInKB else None,
        "passthrough": pci_devices.passthrough_of(device),
        "direct_path": device["direct_path"],
        "mig": None if mode is None else mode == MIG,
        "vms": vms,
    }


def _read(reading: Reading) -> Entry:
    graphics = {key: value for key, value in facts(reading.host).items() if key not in ("version", "in_maintenance")}
    gpus = [
        {
            "address": address,
            **gpu,
            **{key: graphics[by_gpu].get(address) for key, by_gpu in _PER_GPU.items()},
            "numa_node": reading.numa.get(with_domain(address)),
        }
        for address, gpu in graphics["gpus"].items()
    ]
    return {"gpus": gpus, "graphics": graphics}


def _waiting(entry: Entry) -> Iterator[str]:
    for gpu in entry["gpus"]:
        name = f"{gpu['name']} at {gpu['address']}"
        if gpu["passthrough"] == "pending":
            yield f"the passthrough of {name}"
        elif {gpu["type"], gpu["active_type"]} == {*TYPES}:
            yield f"the graphics type of {name}"


GROUP = Group("gpu", "GPUs and their graphics settings", (*PATHS, NUMA), _read, waiting=_waiting)
