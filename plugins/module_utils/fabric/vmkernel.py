"""The vmkernel adapters of a fabric on its hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import StillDiffers
from ..hosts import network
from ..plan import State
from ..vsphere.faults import translating_faults
from ..vsphere.inventory import Host
from ..vsphere.properties import Properties
from ..vsphere.sdk import ApiObject, vim
from . import fabric_marks

PVRDMA_TAG = 'config.option["Net.PVRDMAVmknic"].value'
# The properties that vCenter pushes when they change.
PUSHED = network.PATHS[:2]
PATHS = (
    *network.PATHS,
    *fabric_marks.PATHS,
    PVRDMA_TAG,
    "vm",
    "configManager.networkSystem",
    "configManager.virtualNicManager",
)


def facts(host: Host, switch: str, groups: Mapping[str, str]) -> dict[str, Any]:
    """Return the network of a host; ``groups`` maps keys to names, so that each adapter names its port group."""
    net = network.read(host)
    ips = {nic.device: nic.spec.ip for nic in getattr(host["config.network"], "vnic", None) or []}
    adapters = {
        device: {
            **adapter,
            "port_group": groups.get(adapter["port_group"] or "", adapter["port_group"]),
            "netmask": (ips[device].subnetMask if ips[device] else "") or "",
            "dhcp": bool(ips[device] and ips[device].dhcp),
        }
        for device, adapter in net["vmkernel"].items()
    }
    built = fabric_marks.built_on(host, switch)
    return {**net, "vmkernel": adapters, "built": built, "tagged": host[PVRDMA_TAG] or ""}


def devices_on_group(net: Mapping[str, Any], switch: str, port_group: str) -> list[str]:
    """Return the devices of a host on a port group of the switch, sorted by number."""
    devices = [
        device
        for device, adapter in net["vmkernel"].items()
        if (adapter["switch"], adapter["port_group"]) == (switch, port_group)
    ]
    return sorted(devices, key=number)


def next_devices(net: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names that the host gives to new adapters: those with the lowest free numbers."""
    taken, count = set(net["vmkernel"]), 0
    while True:
        if f"vmk{count}" not in taken:
            yield f"vmk{count}"
        count += 1


def number(device: str) -> int:
    digits = device.removeprefix("vmk")
    return int(digits) if digits.isdigit() else 0


def put(host: Host, port: object, before: Mapping[str, Any] | None, after: State) -> None:
    """Create or change one adapter; ``port`` is its place on the switch."""
    spec = _spec(port, after)
    system = host["configManager.networkSystem"]
    if before is None:
        with translating_faults(host.name, f"add a vmkernel adapter on {after['port_group']}"):
            device = str(system.AddVirtualNic(portgroup="", nic=spec))
    else:
        device = before["device"]
        if any(before[key] != value for key, value in after.items() if key != "services"):
            with translating_faults(host.name, f"change {device}"):
                system.UpdateVirtualNic(device=device, nic=spec)
    _services(host, device, (before or {}).get("services", []), after.get("services"))


def remove(host: Host, devices: Sequence[str]) -> None:
    """Remove adapters, and check that they are gone; the notes of a host are removed later."""
    for device in devices:
        with translating_faults(host.name, f"remove {device}"):
            host["configManager.networkSystem"].RemoveVirtualNic(device)

    def gone(values: Properties) -> bool:
        return not set(devices) & {nic.device for nic in values["config.network"].vnic or []}

    if devices and not host.settle(("config.network",), gone):
        raise StillDiffers(
            host.name,
            f"remove {', '.join(devices)}",
            "the server accepted it, yet the host still shows it",
            "look at the host's log (hostd.log) and run again",
        )


def _spec(port: object, after: State) -> ApiObject:
    if after["address"] == "dhcp":
        ip = vim.host.IpConfig(dhcp=True)
    else:
        ip = vim.host.IpConfig(dhcp=False, ipAddress=after["address"], subnetMask=after["netmask"])
    return vim.host.VirtualNic.Specification(mtu=after["mtu"], ip=ip, distributedVirtualPort=port)


def _services(host: Host, device: str, before: Sequence[str], after: Sequence[str] | None) -> None:
    if after is None:
        return
    nics = host["configManager.virtualNicManager"]
    for service in sorted(set(after) - set(before)):
        with translating_faults(host.name, f"let {device} carry {service}"):
            nics.SelectVnicForNicType(nicType=service, device=device)
    for service in sorted(set(before) - set(after)):
        with translating_faults(host.name, f"stop {device} from carrying {service}"):
            nics.DeselectVnicForNicType(nicType=service, device=device)
