# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""What virtual machines hold of their hosts, what ties them to those, and whose they are, as plain data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...vsphere import custom_fields
from ...vsphere.options import extra_config, is_on, vcenter_option
from ...vsphere.properties import id_of, read_many
from ...vsphere.sdk import vim
from ...vsphere.session import Session
from . import pci_ids
from .running_vm import HOT_MIGRATE, Vm

DEVICES, RESERVED_MB = "config.hardware.device", "config.memoryAllocation.reservation"
PATHS = (
    "name",
    "runtime.host",
    "runtime.powerState",
    "parent",
    "resourcePool",
    "config.annotation",
    DEVICES,
    RESERVED_MB,
    "availableField",
    "customValue",
)
OWNER_LINE = re.compile(r"^\s*owner\s*[:=]\s*(?P<owner>.+?)\s*$", re.IGNORECASE | re.MULTILINE)
LONGEST_OWNER = 80
# Settings of the GPU's plugin with which NVIDIA's driver does not move a virtual GPU.
_PLUGIN_FLAG = re.compile(r"^pciPassthru\d+\.cfg\.enable_(uvm|debugging|profiling)$")


@dataclass(frozen=True)
class PassthroughDevice:
    """A PCI device of its host that a virtual machine has as a whole.

    ``address`` is empty where any device of the ``kinds`` will do and the host has not given one yet.
    """

    address: str
    kinds: tuple[str, ...] = ()
    label: str = ""
    nvidia: bool = False
    any_of_kind: bool = False

    def __str__(self) -> str:
        return f"PCI device {self.address or ' '.join((*self.kinds, self.label)).strip()} in passthrough"


def read(session: Session, refs: Sequence[Any], host_names: Mapping[str, str]) -> list[Vm]:
    """The powered-on ones among the virtual machines; ``host_names`` by object id."""
    found = read_many(session, refs, PATHS)
    running = {key: one for key, one in found.items() if one.get("runtime.powerState") == "poweredOn"}
    named = names(session, [one.get(path) for one in running.values() for path in ("parent", "resourcePool")])
    # Only virtual GPUs have these settings: those of the others, which can be many, are not read.
    settings = read_many(session, [ref for ref in refs if vgpus(running.get(ref._moId, {}))], ("config.extraConfig",))
    return [
        Vm(
            key=key,
            name=one["name"],
            host=host_names.get(id_of(one.get("runtime.host")), ""),
            folder=named.get(id_of(one.get("parent")), ""),
            pool=named.get(id_of(one.get("resourcePool")), ""),
            owner=owner_of(one),
            vgpus=vgpus(one),
            fixed=(*fixed(one), *_flags(settings.get(key, {}))),
            reserved_mb=reserved_mb(one),
        )
        for key, one in running.items()
    ]


def hot_migrate(session: Session) -> bool:
    """Whether this vCenter moves virtual machines with a vGPU while they run; one without the option does not."""
    return is_on(vcenter_option(session, HOT_MIGRATE))


def owner_of(one: Mapping[str, Any]) -> str:
    """The custom attribute that is called owner, else what the annotation says."""
    for field in one.get("availableField") or []:
        if field.name.lower() == "owner":
            written = custom_fields.value_of(field.name, one["availableField"], one.get("customValue"))
            if written:
                return written
    note = one.get("config.annotation") or ""
    line = OWNER_LINE.search(note)
    first = note.strip().split("\n", maxsplit=1)[0]
    return line["owner"] if line else first if len(first) <= LONGEST_OWNER else ""


def names(session: Session, refs: Iterable[Any]) -> dict[str, str]:
    """The names of folders and pools, by object id."""
    by_kind: dict[Any, dict[str, Any]] = {}
    for ref in refs:
        if ref is not None:
            by_kind.setdefault(type(ref), {})[ref._moId] = ref
    return {
        key: values["name"]
        for some in by_kind.values()
        for key, values in read_many(session, list(some.values()), ("name",)).items()
    }


def reserved_mb(one: Mapping[str, Any]) -> int:
    """The memory that a virtual machine has reserved."""
    return int(one.get(RESERVED_MB) or 0)


def vgpus(one: Mapping[str, Any]) -> tuple[str, ...]:
    """The profiles of the virtual GPUs of a virtual machine, those within device groups too."""
    backings = [device.backing for device in devices(one, vim.vm.device.VirtualPCIPassthrough)]
    vmiop = vim.vm.device.VirtualPCIPassthrough.VmiopBackingInfo
    return tuple(str(backing.vgpu) for backing in backings if isinstance(backing, vmiop))


def passthrough_devices(one: Mapping[str, Any]) -> list[PassthroughDevice]:
    """The PCI devices that a virtual machine has as a whole."""
    found = (passthrough_device_of(device.backing) for device in devices(one, vim.vm.device.VirtualPCIPassthrough))
    return [device for device in found if device]


def passthrough_device_of(backing: Any) -> PassthroughDevice | None:
    """The device that a backing stands for; None for a virtual GPU."""
    kinds = vim.vm.device.VirtualPCIPassthrough
    if isinstance(backing, kinds.DeviceBackingInfo):
        return PassthroughDevice(str(backing.id or "").lower(), nvidia=pci_ids.is_nvidia(backing))
    if isinstance(backing, kinds.DynamicBackingInfo):
        allowed = backing.allowedDevice or []
        return PassthroughDevice(
            address=str(backing.assignedId or "").lower(),
            kinds=tuple(pci_ids.kind_of(device) for device in allowed),
            label=str(backing.customLabel or ""),
            nvidia=any(pci_ids.is_nvidia(device) for device in allowed),
            any_of_kind=True,
        )
    return None


def fixed(one: Mapping[str, Any]) -> tuple[str, ...]:
    """The devices, in words, with which a running virtual machine cannot move: those of the host itself."""
    cards = devices(one, vim.vm.device.VirtualSriovEthernetCard)
    return (*map(str, passthrough_devices(one)), *("an SR-IOV network card" for _card in cards))


def plugin_flags(extra: Mapping[str, str]) -> list[str]:
    """The settings of the GPU's plugin that are on and keep a virtual GPU where it is."""
    return sorted(key for key, value in extra.items() if _PLUGIN_FLAG.match(key) and is_on(value))


def _flags(one: Mapping[str, Any]) -> tuple[str, ...]:
    extra = extra_config(one.get("config.extraConfig"))
    return tuple(f"{key}={extra[key]}" for key in plugin_flags(extra))


def devices(one: Mapping[str, Any], kind: Any) -> list[Any]:
    """The devices of a kind that a virtual machine has."""
    return [device for device in one.get(DEVICES) or [] if isinstance(device, kind)]
