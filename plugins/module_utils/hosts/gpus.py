# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The GPUs of a host as plain data: how they are shared, as configured and as active, by GPU where they can differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..maintenance import boot
from ..vsphere.inventory import Host
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
_OURS = {api: ours for names in (TYPES, MODES) for ours, api in names.items()} | {"multiInstanceGpu": MIG}
_PER_GPU = {"type": "types", "active_type": "active_types", "mode": "modes", "active_mode": "active_modes"}


def facts(host: Host) -> dict[str, Any]:
    """All that the API reports about the GPUs of a host and how they are shared."""
    gpus, users = pci_devices.gpus(host), pci_devices.vms_on_gpus(host)
    config, info = host["config.graphicsConfig"], {one.pciId: one for one in host["config.graphicsInfo"] or []}
    configured = {one.deviceId: one for one in (config.deviceType if config else None) or []}
    listed = [gpu for gpu in gpus if gpu in info or gpu in configured]
    active_modes = {gpu: ours(getattr(info.get(gpu), "vgpuMode", None)) for gpu in listed}
    policy = config.sharedPassthruAssignmentPolicy if config else None
    return {
        "default_type": ours(config.hostDefaultGraphicsType if config else None),
        "policy": policy,
        "active_policy": boot.pending(host).get(POLICY_NOTE, policy),
        "types": {gpu: ours(getattr(configured.get(gpu), "graphicsType", None)) for gpu in listed},
        "active_types": active_types(info.values(), listed),
        "modes": {gpu: ours(getattr(configured.get(gpu), "vgpuMode", None)) or active_modes[gpu] for gpu in listed},
        "active_modes": active_modes,
        "gpus": {gpu: _gpu(device, info.get(gpu), users.get(gpu, [])) for gpu, device in gpus.items()},
        "profiles": sorted(host["config.sharedPassthruGpuTypes"] or []),
        "version": host["config.product.version"],
        "in_maintenance": host.in_maintenance,
    }


def active_types(info: Iterable[Any] | None, gpus: Iterable[str]) -> dict[str, str | None]:
    """The active graphics type of each of these GPUs; None for a GPU without one."""
    shown = {one.pciId: ours(one.graphicsType) for one in info or []}
    return {gpu: shown.get(gpu) for gpu in gpus}


def ours(api: str | None) -> str | None:
    """The collection's word for a type or mode of the API."""
    return _OURS.get(api, api) if api else None


def _gpu(device: Mapping[str, Any], info: Any, vms: list[str]) -> dict[str, Any]:
    mode = ours(getattr(info, "vgpuMode", None))
    return {
        **{key: device[key] for key in ("name", "vendor", "vendor_id", "device_id")},
        "memory_mb": info.memorySizeInKB // 1024 if info and info.memorySizeInKB else None,
        "passthrough": pci_devices.passthrough_of(device),
        "mig": None if mode is None else mode == MIG,
        "vms": vms,
    }


def _read(reading: Reading) -> Entry:
    found = facts(reading.host)
    graphics = {key: value for key, value in found.items() if key not in ("version", "in_maintenance")}
    gpus = [
        {
            "address": address,
            **gpu,
            **{one: graphics[by_gpu].get(address) for one, by_gpu in _PER_GPU.items()},
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
