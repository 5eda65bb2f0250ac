"""Subject: the PCI devices of a host that are passed through to virtual machines (DirectPath I/O)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ..errors import Refused
from ..plan import REBOOT, Plan, State
from ..vsphere.faults import translating_faults
from ..vsphere.inventory import Host
from ..vsphere.sdk import vim
from . import gpus, pci_devices
from .part import Part, PlannedSubject, ProfileContext
from .pci_address import GPUS, pci_address
from .pci_devices import PciDevice
from .rollback import restoring

PATHS = ("configManager.pciPassthruSystem", "capability.deviceRebindWithoutRebootSupported", *pci_devices.PATHS)
OPTIONS: dict[str, Any] = {
    "devices": {"type": "list", "elements": "str", "default": [GPUS]},
    "enabled": {"type": "bool", "required": True},
}


class Passthrough:
    """Passthrough of the chosen devices of one host: its GPUs, or devices by PCI address."""

    name = "passthrough"

    def __init__(self, host: Host, devices: Sequence[str] = (GPUS,)) -> None:
        self.host, self.target = host, host.name
        self.all_gpus = GPUS in devices
        self.addresses = tuple(pci_address(device) for device in devices if device != GPUS)

    def read(self) -> State:
        """Return the passthrough of the chosen devices, as configured and as active since the last boot."""
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
        """Write the devices that change; the host decides whether it can rebind them without a boot."""
        before, after = plan.before["enabled"], plan.after["enabled"]
        changing = [address for address in after if after[address] != before[address]]
        configs = [vim.host.PciPassthruConfig(id=address, passthruEnabled=after[address]) for address in changing]
        with translating_faults(self.target, f"change the passthrough of {', '.join(changing)}"):
            self.host["configManager.pciPassthruSystem"].UpdatePassthruConfig(configs)
        self.host.settle(
            ("config.pciPassthruInfo",),
            lambda values: all(
                device.passthruEnabled == after[device.id]
                for device in values.get("config.pciPassthruInfo") or []
                if device.id in changing
            ),
        )

    def _chosen(self, devices: Mapping[str, PciDevice]) -> dict[str, PciDevice]:
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


def plan_passthrough(current: State, *, enabled: bool) -> Plan:
    """Return the plan that passes the chosen devices through to virtual machines, or back to the host."""
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
        why=tuple(f"{_label(current, address)} {verb} passthrough only when the host boots" for address in waiting),
        unmet=_still_used(current, changing) if enabled else (),
    )


def _refuse_impossible(current: State) -> None:
    if not current["devices"]:
        raise Refused("passthrough", "switch it on", "the host has no NVIDIA GPU", "name devices by their PCI address")
    stuck = [address for address, device in current["devices"].items() if not device["capable"]]
    if stuck:
        labels = ", ".join(_label(current, address) for address in stuck)
        raise Refused(
            "passthrough",
            "switch it on",
            f"the host reports that {labels} cannot be passed through",
            "enable VT-d or the AMD IOMMU in its firmware, or choose another device",
        )


def _still_used(current: State, changing: Sequence[str]) -> tuple[str, ...]:
    """Return the reasons why the change must wait: running virtual machines share a GPU that changes."""
    users = {address: vms for address in changing if (vms := current["devices"][address]["vms"])}
    return tuple(
        f"{_label(current, address)} is in use by {', '.join(vms)}: move the virtual machines or power them off first"
        for address, vms in users.items()
    )


def _described(device: PciDevice, vms: list[str]) -> dict[str, object]:
    kept = {key: device[key] for key in ("name", "vendor", "vendor_id", "device_id", "gpu")}
    return {**kept, "capable": device["passthrough"]["capable"], "vms": vms}


def _label(current: State, address: str) -> str:
    return f"{current['devices'][address]['name']} at {address}"


def _capable(devices: Mapping[str, PciDevice]) -> str:
    addresses = [address for address, device in devices.items() if device["passthrough"]["capable"]]
    return ", ".join(addresses) or "none: none is capable"


def _members(host: Host, requested: State, _context: ProfileContext) -> Iterator[PlannedSubject]:
    plan = partial(plan_passthrough, enabled=requested["enabled"])
    yield PlannedSubject("passthrough", Passthrough(host, requested["devices"]), plan)


PART = Part(
    key="passthrough",
    module="esxi_passthrough",
    # no_log is set, because Ansible takes the name of the option for that of a secret.
    spec={"type": "dict", "no_log": False, "options": OPTIONS},
    members=_members,
    groups=(gpus.GROUP,),
    kept=("graphics",),
    restore=restoring.passthrough,
    restores="passthrough of the named devices",
    calls=("HostSystem.UpdatePassthruConfig",),
    paths=PATHS,
)
