# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Subject: which PCI devices of a host are given to virtual machines as a whole (DirectPath I/O)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ..errors import Refused
from ..plan import REBOOT, Plan
from ..vsphere.faults import translating_faults
from ..vsphere.inventory import Host
from ..vsphere.sdk import vim
from . import gpus, pci_devices
from .part import Part, PlannedSubject, ProfileContext
from .pci_address import GPUS, pci_address
from .rollback import restoring

PATHS = ("configManager.pciPassthruSystem", "capability.deviceRebindWithoutRebootSupported", *pci_devices.PATHS)
OPTIONS: dict[str, Any] = {
    "devices": {"type": "list", "elements": "str", "default": [GPUS]},
    "enabled": {"type": "bool", "required": True},
}


class Passthrough:
    """Passthrough of the chosen devices of one host: of its GPUs, or of PCI addresses."""

    name = "passthrough"

    def __init__(self, host: Host, devices: Sequence[str] = (GPUS,)) -> None:
        self.host, self.target = host, host.name
        self.all_gpus = GPUS in devices
        self.addresses = tuple(pci_address(one) for one in devices if one != GPUS)

    def read(self) -> dict[str, Any]:
        """The chosen devices: passthrough as configured, and as active since the last boot."""
        self.host.must_answer("read its PCI devices")
        chosen = self._chosen(pci_devices.devices(self.host))
        users = pci_devices.vms_on_gpus(self.host)
        return {
            "enabled": {address: device["passthrough"]["enabled"] for address, device in chosen.items()},
            "active": {address: device["passthrough"]["active"] for address, device in chosen.items()},
            "devices": {address: _described(device, users.get(address, [])) for address, device in chosen.items()},
            "without_reboot": bool(self.host["capability.deviceRebindWithoutRebootSupported"]),
        }

    def apply(self, plan: Plan) -> None:
        """Write the devices that change; whether the host can rebind them without a boot is left to it."""
        before, after = plan.before["enabled"], plan.after["enabled"]
        changing = [address for address in after if after[address] != before[address]]
        wanted = [vim.host.PciPassthruConfig(id=one, passthruEnabled=after[one]) for one in changing]
        with translating_faults(self.target, f"change the passthrough of {', '.join(changing)}"):
            self.host["configManager.pciPassthruSystem"].UpdatePassthruConfig(wanted)
        self.host.settle(
            ("config.pciPassthruInfo",),
            lambda values: all(
                one.passthruEnabled == after[one.id]
                for one in values.get("config.pciPassthruInfo") or []
                if one.id in changing
            ),
        )

    def _chosen(self, devices: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        unknown = [address for address in self.addresses if address not in devices]
        if unknown:
            raise Refused(
                self.target,
                "choose devices for passthrough",
                f"it has no PCI device {', '.join(unknown)}",
                f"choose among {_capable(devices)}",
            )
        return {
            address: device
            for address, device in devices.items()
            if address in self.addresses or (self.all_gpus and device["gpu"])
        }


def plan_passthrough(current: Mapping[str, Any], *, enabled: bool) -> Plan:
    """Give the chosen devices to virtual machines as a whole, or back to the host."""
    if enabled:
        _refuse_impossible(current)
    changing = [address for address, now in current["enabled"].items() if now != enabled]
    waiting = [
        address
        for address, active in current["active"].items()
        if active != enabled and not (current["without_reboot"] and address in changing)
    ]
    verb = "enters" if enabled else "leaves"
    return Plan(
        before=current,
        after={**current, "enabled": dict.fromkeys(current["enabled"], enabled)},
        needs=frozenset({REBOOT}) if waiting else frozenset(),
        why=tuple(f"{_called(current, one)} {verb} passthrough only when the host boots" for one in waiting),
        unmet=_still_used(current, changing) if enabled else (),
    )


def _refuse_impossible(current: Mapping[str, Any]) -> None:
    if not current["devices"]:
        raise Refused("passthrough", "switch it on", "the host has no NVIDIA GPU", "name devices by their PCI address")
    stuck = [address for address, device in current["devices"].items() if not device["capable"]]
    if stuck:
        raise Refused(
            "passthrough",
            "switch it on",
            f"the host says that {', '.join(_called(current, one) for one in stuck)} cannot be passed through",
            "enable VT-d or the AMD IOMMU in its firmware, or choose another device",
        )


def _still_used(current: Mapping[str, Any], changing: Sequence[str]) -> tuple[str, ...]:
    """A GPU that is shared by running virtual machines cannot be taken from them."""
    return tuple(
        f"{', '.join(current['devices'][one]['vms'])} still used {_called(current, one)}: move or power off first"
        for one in changing
        if current["devices"][one]["vms"]
    )


def _described(device: Mapping[str, Any], vms: list[str]) -> dict[str, Any]:
    kept = {key: device[key] for key in ("name", "vendor", "vendor_id", "device_id", "gpu")}
    return {**kept, "capable": device["passthrough"]["capable"], "vms": vms}


def _called(current: Mapping[str, Any], address: str) -> str:
    return f"{current['devices'][address]['name']} at {address}"


def _capable(devices: Mapping[str, dict[str, Any]]) -> str:
    return (
        ", ".join(one for one, device in devices.items() if device["passthrough"]["capable"]) or "none: none is capable"
    )


def _members(host: Host, asked: Mapping[str, Any], _context: ProfileContext) -> Iterator[PlannedSubject]:
    plan = partial(plan_passthrough, enabled=asked["enabled"])
    yield PlannedSubject("passthrough", Passthrough(host, asked["devices"]), plan)


PART = Part(
    key="passthrough",
    module="esxi_passthrough",
    # no_log: the name only sounds like a secret.
    spec={"type": "dict", "no_log": False, "options": OPTIONS},
    members=_members,
    groups=(gpus.GROUP,),
    kept=("graphics",),
    restore=restoring.passthrough,
    restores="passthrough of the named devices",
    calls=("HostSystem.UpdatePassthruConfig",),
    paths=PATHS,
)
