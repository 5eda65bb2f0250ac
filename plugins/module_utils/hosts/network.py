"""The network of a host as plain data: uplinks, RDMA devices, switches, vmkernel adapters and their services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from ..vsphere.escaped_names import plain
from ..vsphere.inventory import Host
from ..vsphere.sdk import ApiObject

# The complete property: its parts depend on the version, and a read with a path that the server does not have fails.
PATHS = ("config.network", "config.virtualNicManagerInfo.netConfig", "config.product.version")

RDMA_COUNTERS, UPLINK_COUNTERS = "esxcli rdma device stats get", "esxcli network nic stats get"
_COUNTERS = {
    name.replace("_", ""): name
    for name in (
        *("packets_received", "packets_sent", "bytes_received", "bytes_sent"),
        *("receive_packets_dropped", "transmit_packets_dropped", "receive_crc_errors"),
        *("multicast_packets_received", "multicast_packets_sent", "multicast_bytes_received", "multicast_bytes_sent"),
        *("broadcast_packets_received", "broadcast_packets_sent", "broadcast_bytes_received", "broadcast_bytes_sent"),
        *("unicast_packets_received", "unicast_packets_sent", "unicast_bytes_received", "unicast_bytes_sent"),
        *("error_packets_received", "error_packets_sent", "error_length_packets_received"),
        *("total_receive_errors", "total_transmit_errors"),
    )
}
DISTRIBUTED, STANDARD = "distributed", "standard"


class Uplink(TypedDict):
    """A physical network card; ``rdma`` is the name of its RDMA device."""

    driver: str
    pci: str | None
    mac: str
    link: bool
    speed_mbps: int
    firmware: str | None
    rdma: str | None


class RdmaDevice(TypedDict):
    """An RDMA device; ``roce`` is None if the host does not report it."""

    uplink: str | None
    driver: str | None
    state: str
    mtu: int
    speed_mbps: int
    roce: bool | None


class VirtualSwitch(TypedDict):
    """A standard or distributed switch with its uplinks on the host; ``lag`` is whether they form a LAG."""

    kind: str
    mtu: int
    uplinks: list[str]
    lag: bool


class VmkernelAdapter(TypedDict):
    """A vmkernel adapter with its switch, its port group and its services."""

    switch: str | None
    port_group: str | None
    mtu: int
    address: str | None
    stack: str
    services: list[str]


class HostNetwork(TypedDict):
    """The network of a host, each kind of object by name."""

    uplinks: dict[str, Uplink]
    rdma: dict[str, RdmaDevice]
    switches: dict[str, VirtualSwitch]
    vmkernel: dict[str, VmkernelAdapter]


def read(host: Host) -> HostNetwork:
    """Return the network of one host: uplinks, RDMA devices, switches and vmkernel adapters."""
    devices = rdma_devices(host)
    return {"uplinks": uplinks(host, devices), "rdma": devices, "switches": switches(host), "vmkernel": vmkernel(host)}


def uplinks(host: Host, devices: Mapping[str, RdmaDevice]) -> dict[str, Uplink]:
    """Return the physical network cards by name, such as vmnic2, each with its RDMA device."""
    by_uplink = {device["uplink"]: name for name, device in devices.items()}
    return {nic.device: _uplink(nic, by_uplink.get(nic.device)) for nic in _network(host, "pnic")}


def rdma_devices(host: Host) -> dict[str, RdmaDevice]:
    """Return the RDMA devices by name, such as vmrdma0, each with its uplink."""
    cards = {nic.key: nic.device for nic in _network(host, "pnic")}
    return {device.device: _rdma_device(device, cards) for device in _network(host, "rdmaDevice")}


def switches(host: Host) -> dict[str, VirtualSwitch]:
    """Return the virtual switches by name, with their uplinks on this host."""
    cards = {nic.key: nic.device for nic in _network(host, "pnic")}
    standard: dict[str, VirtualSwitch] = {
        switch.name: {"kind": STANDARD, "mtu": switch.mtu or 1500, "uplinks": _named(switch.pnic, cards), "lag": False}
        for switch in _network(host, "vswitch")
    }
    distributed: dict[str, VirtualSwitch] = {
        plain(switch.dvsName): {
            "kind": DISTRIBUTED,
            "mtu": switch.mtu or 1500,
            "uplinks": _named(switch.pnic, cards),
            "lag": any(lag.uplinkPort for lag in switch.hostLag or []),
        }
        for switch in _network(host, "proxySwitch")
    }
    return {**standard, **distributed}


def vmkernel(host: Host) -> dict[str, VmkernelAdapter]:
    """Return the vmkernel adapters by device, such as vmk1, each with its switch and its services."""
    distributed = {switch.dvsUuid: plain(switch.dvsName) for switch in _network(host, "proxySwitch")}
    standard = {group.spec.name: group.spec.vswitchName for group in _network(host, "portgroup")}
    services = services_of(host)
    return {
        nic.device: {
            "switch": _switch_of(nic, standard, distributed),
            "port_group": _port_group_of(nic),
            "mtu": nic.spec.mtu or 1500,
            "address": (nic.spec.ip.ipAddress if nic.spec.ip else None) or None,
            "stack": nic.spec.netStackInstanceKey or "defaultTcpipStack",
            "services": services.get(nic.device, []),
        }
        for nic in _network(host, "vnic")
    }


def services_of(host: Host) -> dict[str, list[str]]:
    """Return the services of each vmkernel adapter, such as vmotion."""
    carried: dict[str, list[str]] = {}
    for service in host["config.virtualNicManagerInfo.netConfig"] or []:
        devices = {nic.key: nic.device for nic in service.candidateVnic or []}
        for key in service.selectedVnic or []:
            carried.setdefault(devices.get(key, key), []).append(service.nicType)
    return {device: sorted(names) for device, names in carried.items()}


def switch_with(net: HostNetwork, uplink: str) -> str | None:
    return next((name for name, switch in net["switches"].items() if uplink in switch["uplinks"]), None)


def _network(host: Host, part: str) -> list[ApiObject]:
    return list(getattr(host["config.network"], part, None) or [])


def _uplink(nic: ApiObject, rdma: str | None) -> Uplink:
    return {
        "driver": nic.driver,
        "pci": nic.pci,
        "mac": nic.mac,
        "link": nic.linkSpeed is not None,
        "speed_mbps": nic.linkSpeed.speedMb if nic.linkSpeed else 0,
        "firmware": getattr(nic, "firmwareVersion", None),
        "rdma": rdma,
    }


def _rdma_device(device: ApiObject, cards: Mapping[str, str]) -> RdmaDevice:
    paired = getattr(device.backing, "pairedUplink", None)
    connection, capability = device.connectionInfo, device.capability
    return {
        "uplink": cards.get(paired or "", paired),
        "driver": device.driver,
        "state": connection.state,
        "mtu": connection.mtu,
        "speed_mbps": connection.speedInMbps,
        "roce": bool(capability.roceV1Capable or capability.roceV2Capable),
    }


def _named(keys: Any, cards: Mapping[str, str]) -> list[str]:
    return sorted(cards.get(key, key) for key in keys or [])


def _switch_of(nic: ApiObject, standard: Mapping[str, str], distributed: Mapping[str, str]) -> str | None:
    port = nic.spec.distributedVirtualPort
    return distributed.get(port.switchUuid) if port else standard.get(nic.spec.portgroup or nic.portgroup)


def _port_group_of(nic: ApiObject) -> str | None:
    port = nic.spec.distributedVirtualPort
    return port.portgroupKey if port else (nic.spec.portgroup or nic.portgroup or None)


def rdma_counters(host: Host, device: str) -> dict[str, int]:
    """Return the counters of an RDMA device such as vmrdma0, which show the traffic through it.

    PVRDMA falls back to TCP silently, and the guest cannot detect it: only these counters show it.
    """
    return _counters(host.esxcli.rows("rdma device stats get", device=device))


def uplink_counters(host: Host, uplink: str) -> dict[str, int]:
    """Return the counters of a network card such as vmnic2, which do not include the traffic of its RDMA device."""
    return _counters(host.esxcli.rows("network nic stats get", nicname=uplink))


def _counters(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the numbers of an answer with the collection's names for known fields, and lower-case names for others.

    Over the API, the name of a field consists of the words that the command prints, without blanks: Bytessent,
    ReceiveCRCerrors. Versions differ in capital letters, so the names are compared in lower case.
    """
    row = rows[0] if rows else {}
    numbered = {key.lower(): int(value) for key, value in sorted(row.items()) if str(value).isdigit()}
    return {_COUNTERS.get(key, key): value for key, value in numbered.items()}
