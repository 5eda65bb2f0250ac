# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The virtual machines on some hosts, as plain data: whose they are, and what ties them to their host."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..logic.hosts.evacuation import Vm
from ..vsphere import custom_fields
from ..vsphere.properties import id_of, read_many
from ..vsphere.sdk import vim
from ..vsphere.session import Session

PATHS = (
    "name",
    "runtime.host",
    "runtime.powerState",
    "parent",
    "resourcePool",
    "config.annotation",
    "config.hardware.device",
    "config.memoryAllocation.reservation",
    "availableField",
    "customValue",
)
OWNER_LINE = re.compile(r"^\s*owner\s*[:=]\s*(?P<owner>.+?)\s*$", re.IGNORECASE | re.MULTILINE)
LONGEST_OWNER = 80
# With one of these a virtual GPU cannot be moved.
_TIES = re.compile(r"^pciPassthru\d+\.cfg\.enable_(?P<what>uvm|debugging|profiling)$")


def read(session: Session, refs: Sequence[Any], host_names: Mapping[str, str]) -> list[Vm]:
    """The powered-on ones among the virtual machines; ``host_names`` by object id."""
    found = read_many(session, refs, PATHS)
    running = {key: one for key, one in found.items() if one.get("runtime.powerState") == "poweredOn"}
    named = names(session, [one.get(path) for one in running.values() for path in ("parent", "resourcePool")])
    ties = _ties(session, [ref for ref in refs if vgpus(running.get(ref._moId, {}))])
    return [
        Vm(
            key=key,
            name=one["name"],
            host=host_names.get(id_of(one.get("runtime.host")), ""),
            folder=named.get(id_of(one.get("parent")), ""),
            pool=named.get(id_of(one.get("resourcePool")), ""),
            owner=owner_of(one),
            vgpus=vgpus(one),
            fixed=(*_fixed(one), *ties.get(key, ())),
            reserved_mb=int(one.get("config.memoryAllocation.reservation") or 0),
        )
        for key, one in running.items()
    ]


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


def _ties(session: Session, refs: Sequence[Any]) -> dict[str, tuple[str, ...]]:
    """The settings that tie virtual GPUs to their host."""
    found = read_many(session, refs, ("config.extraConfig",))
    return {
        key: tuple(
            f"{option.key}={option.value}"
            for option in values.get("config.extraConfig") or []
            if _TIES.match(option.key) and str(option.value) == "1"
        )
        for key, values in found.items()
    }


def vgpus(one: Mapping[str, Any]) -> tuple[str, ...]:
    """The profiles of the virtual GPUs of a virtual machine."""
    backings = [device.backing for device in _devices(one, vim.vm.device.VirtualPCIPassthrough)]
    vmiop = vim.vm.device.VirtualPCIPassthrough.VmiopBackingInfo
    return tuple(str(backing.vgpu) for backing in backings if isinstance(backing, vmiop))


def _fixed(one: Mapping[str, Any]) -> tuple[str, ...]:
    """Devices of the host itself, in words."""
    kinds = vim.vm.device.VirtualPCIPassthrough
    backings = [device.backing for device in _devices(one, kinds)]
    passed = [str(backing.id) for backing in backings if isinstance(backing, kinds.DeviceBackingInfo)]
    passed += [str(backing.assignedId) for backing in backings if isinstance(backing, kinds.DynamicBackingInfo)]
    cards = _devices(one, vim.vm.device.VirtualSriovEthernetCard)
    return (
        *(f"PCI device {address} in passthrough" for address in passed),
        *("an SR-IOV network card" for _nic in cards),
    )


def _devices(one: Mapping[str, Any], kind: Any) -> list[Any]:
    return [device for device in one.get("config.hardware.device") or [] if isinstance(device, kind)]
