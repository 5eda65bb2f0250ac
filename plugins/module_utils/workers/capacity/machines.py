"""The resources that virtual machines use on their hosts, why they cannot move, and their owners, as plain data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...vsphere import custom_fields
from ...vsphere.options import extra_config, is_on, vcenter_option
from ...vsphere.properties import Properties, id_of, read_many
from ...vsphere.sdk import ApiObject, vim
from ...vsphere.session import Session
from . import host_capacity, pci_ids
from .place_names import place_names
from .running_vm import HOT_MIGRATE, STOPPED_BY_DRS, Vm

DEVICES, RESERVED_MB = "config.hardware.device", "config.memoryAllocation.reservation"
PATHS = (
    "name",
    "runtime.host",
    "runtime.powerState",
    "parent",
    "resourcePool",
    "config.annotation",
    "config.managedBy",
    DEVICES,
    RESERVED_MB,
    "availableField",
    "customValue",
)
OWNER_LINE = re.compile(r"^[ \t]*owner[ \t]*[:=][ \t]*(?P<owner>\S.*)$", re.IGNORECASE | re.MULTILINE)
LONGEST_OWNER = 80
# The managers of the machines of vCenter: agents and, up to 8.0 U2, vCLS; from 8.0 U3 on, vCLS has the second one.
_AGENTS, _EMBEDDED_VCLS = "com.vmware.vim.eam", "vcls-entity"
# Settings of the vGPU plugin that prevent NVIDIA's driver from migrating a vGPU.
_PLUGIN_FLAG = re.compile(r"^pciPassthru\d+\.cfg\.enable_(uvm|debugging|profiling)$")


@dataclass(frozen=True)
class PassthroughDevice:
    """A PCI device of the host in passthrough to a virtual machine.

    ``address`` is empty if any device of the ``kinds`` matches and the host has not assigned one yet.
    """

    address: str
    kinds: tuple[str, ...] = ()
    label: str = ""
    nvidia: bool = False
    any_of_kind: bool = False

    def __str__(self) -> str:
        return f"PCI device {self.address or ' '.join((*self.kinds, self.label)).strip()} in passthrough"


def read(session: Session, refs: Sequence[ApiObject], host_names: Mapping[str, str]) -> list[Vm]:
    """Return the powered-on virtual machines; ``host_names`` are by object ID."""
    values_by_id = read_many(session, refs, PATHS)
    running = {key: values for key, values in values_by_id.items() if values.get("runtime.powerState") == "poweredOn"}
    named = place_names(session, running.values())
    classes = _classes_of_hosts(session, running.values())
    # Only virtual machines with a vGPU have these settings, so no others are read.
    settings = read_many(session, [ref for ref in refs if vgpus(running.get(ref._moId, {}))], ("config.extraConfig",))
    return [
        Vm(
            key=key,
            name=values["name"],
            host=host_names.get(id_of(values.get("runtime.host")), ""),
            folder=named.get(id_of(values.get("parent")), ""),
            pool=named.get(id_of(values.get("resourcePool")), ""),
            owner=owner_of(values),
            vgpus=vgpus(values),
            fixed=(*fixed(values, classes.get(id_of(values.get("runtime.host")), {})), *_flags(settings.get(key, {}))),
            reserved_mb=reserved_mb(values),
            stopped_by_drs=is_on(extra_config(settings.get(key, {}).get("config.extraConfig")).get(STOPPED_BY_DRS)),
            of_vcenter=is_of_vcenter(values),
        )
        for key, values in running.items()
    ]


def hot_migrate(session: Session) -> bool:
    """Return whether vCenter moves virtual machines with a vGPU while they run; false if it has no such option."""
    return is_on(vcenter_option(session, HOT_MIGRATE))


def is_of_vcenter(values: Properties) -> bool:
    """Return whether vCenter runs the machine for its own services, and moves or stops it when its host is emptied."""
    manager = values.get("config.managedBy")
    return manager is not None and (manager.extensionKey == _AGENTS or manager.type == _EMBEDDED_VCLS)


def owner_of(values: Properties) -> str:
    """Return the custom attribute ``owner`` or, without it, the owner in the annotation."""
    for field in values.get("availableField") or []:
        if field.name.lower() == "owner":
            written = custom_fields.value_of(field.name, values["availableField"], values.get("customValue"))
            if written:
                return written
    note = values.get("config.annotation") or ""
    line = OWNER_LINE.search(note)
    first = note.strip().split("\n", maxsplit=1)[0]
    return line["owner"].rstrip() if line else first if len(first) <= LONGEST_OWNER else ""


def reserved_mb(values: Properties) -> int:
    """Return the memory reservation of a virtual machine."""
    return int(values.get(RESERVED_MB) or 0)


def vgpus(values: Properties) -> tuple[str, ...]:
    """Return the profiles of the vGPUs of a virtual machine, including those in device groups."""
    backings = [device.backing for device in devices(values, vim.vm.device.VirtualPCIPassthrough)]
    vmiop = vim.vm.device.VirtualPCIPassthrough.VmiopBackingInfo
    return tuple(str(backing.vgpu) for backing in backings if isinstance(backing, vmiop))


def passthrough_devices(values: Properties) -> list[PassthroughDevice]:
    """Return the PCI devices in passthrough to a virtual machine."""
    candidates = (
        passthrough_device_of(device.backing) for device in devices(values, vim.vm.device.VirtualPCIPassthrough)
    )
    return [device for device in candidates if device]


def passthrough_device_of(backing: object) -> PassthroughDevice | None:
    """Return the PCI device of a backing; None for a vGPU."""
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


def device_classes(values: Properties) -> tuple[str, ...]:
    """Return the classes of the Enhanced DirectPath devices of a virtual machine, including its network cards."""
    backings = [device.backing for device in devices(values, vim.vm.device.VirtualPCIPassthrough)]
    backings += [card.dvxBackingInfo for card in class_cards(values)]
    kind = vim.vm.device.VirtualPCIPassthrough.DvxBackingInfo
    return tuple(str(backing.deviceClass) for backing in backings if isinstance(backing, kind))


def fixed(values: Properties, classes: Mapping[str, bool] | None = None) -> tuple[str, ...]:
    """Return, as text, the devices of the host that keep a running virtual machine from moving.

    ``classes`` are the device classes of its host, and whether their devices move.
    """
    others = len(devices(values, vim.vm.device.VirtualSriovEthernetCard)) - len(class_cards(values))
    tied = [name for name in device_classes(values) if not (classes or {}).get(name)]
    return (
        *map(str, passthrough_devices(values)),
        *["an SR-IOV network card"] * others,
        *(f"a device of class {name}, for which the host reports no vMotion support" for name in tied),
    )


def class_cards(values: Properties) -> list[ApiObject]:
    """Return the network cards of a virtual machine that are devices of a class; other SR-IOV cards have no class."""
    cards = devices(values, vim.vm.device.VirtualSriovEthernetCard)
    return [card for card in cards if getattr(card, "dvxBackingInfo", None) is not None]


def _classes_of_hosts(session: Session, running: Iterable[Mapping[str, object]]) -> dict[str, dict[str, bool]]:
    """Return the device classes of the hosts with a virtual machine that has such a device, by object ID."""
    hosts = {id_of(values["runtime.host"]): values["runtime.host"] for values in running if device_classes(values)}
    read_hosts = read_many(session, list(hosts.values()), (host_capacity.CLASSES,)) if hosts else {}
    return {key: host_capacity.device_classes(values) for key, values in read_hosts.items()}


def plugin_flags(extra: Mapping[str, str]) -> list[str]:
    """Return the active settings of the vGPU plugin that keep a vGPU from moving."""
    return sorted(key for key, value in extra.items() if _PLUGIN_FLAG.match(key) and is_on(value))


def _flags(values: Properties) -> tuple[str, ...]:
    extra = extra_config(values.get("config.extraConfig"))
    return tuple(f"{key}={extra[key]}" for key in plugin_flags(extra))


def devices(values: Properties, kind: ApiObject) -> list[ApiObject]:
    """Return the devices of a type in a virtual machine."""
    return [device for device in values.get(DEVICES) or [] if isinstance(device, kind)]
