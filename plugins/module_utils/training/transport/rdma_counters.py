"""The RDMA counters of a job on nodes and ESXi hosts before and after it, and the least bytes that it sends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .proof import PARAVIRTUAL, RdmaCounter

Entry = Mapping[str, Any]


def counters(
    before: Mapping[str, Sequence[Entry]],
    after: Mapping[str, Sequence[Entry]],
    *,
    esxi_hosts: Mapping[str, str] | None = None,
    esxi_before: Sequence[Entry] = (),
    esxi_after: Sequence[Entry] = (),
    neighbours: Mapping[str, str] | None = None,
) -> list[RdmaCounter]:
    """Return the counters of a job, for ``proof.judge``.

    ``before`` and ``after``: node -> its devices with ``name``, ``driver`` and ``sent_bytes``. ``esxi_before`` and
    ``esxi_after``: entries of esxi_info. ``neighbours``: workers that do not belong to the job, and their ESXi hosts.
    """
    first, last = ({str(entry["host"]): entry for entry in entries} for entries in (esxi_before, esxi_after))
    rows: list[RdmaCounter] = []
    for node in dict.fromkeys((*before, *after)):
        devices = before.get(node) or ()
        # A node without a device has no counter of bytes sent with RDMA.
        rows += [] if devices else [_guest_counter(node, {}, {})]
        later = {str(device["name"]): device for device in after.get(node, ())}
        own = [device for device in devices if device.get("driver") != PARAVIRTUAL]
        rows += [_guest_counter(node, device, later.get(str(device["name"]), {})) for device in own]
        host = (esxi_hosts or {}).get(node, "")
        if len(own) < len(devices):
            on_host = list(_host_counters(node, host, first, last, host in (neighbours or {}).values()))
            rows += on_host or [_guest_counter(node, device, {}) for device in devices if device not in own]
    return rows


def least_sent(gradient_bytes: float, steps: int, nodes: int) -> float | None:
    """Return the least bytes that each node sends: an allreduce sends nearly all gradients twice; None if unknown."""
    if gradient_bytes <= 0 or steps <= 0 or nodes < 2:
        return None
    return 2 * (nodes - 1) / nodes * gradient_bytes * steps


def _guest_counter(node: str, device: Entry, later: Entry) -> RdmaCounter:
    return {
        "node": node,
        "device": str(device["name"]) if device else None,
        "driver": device.get("driver"),
        "source": "guest",
        "shared": False,
        "before": device.get("sent_bytes"),
        "after": later.get("sent_bytes"),
    }


def _host_counters(
    node: str, host: str, before: Mapping[str, Entry], after: Mapping[str, Entry], has_neighbour: bool
) -> Iterator[RdmaCounter]:
    if host not in before:
        return
    later = {str(device["device"]): device for device in after.get(host, {}).get("rdma_devices", ())}
    for device in _tagged(before[host]):
        name = str(device["device"])
        yield {
            "node": node,
            "device": f"{name} of {host}",
            "driver": PARAVIRTUAL,
            "source": "host",
            "shared": has_neighbour or _is_used(device, before[host].get("rdma_users") or ()),
            "before": _sent(device),
            "after": _sent(later.get(name, {})),
        }


def _tagged(entry: Entry) -> list[Entry]:
    """Return the devices of the switch whose VMkernel adapter is tagged for PVRDMA; all devices if it is unknown."""
    devices: list[Entry] = list(entry.get("rdma_devices") or ())
    tagged = (entry.get("pvrdma") or {}).get("vmk")
    names = {adapter["switch"] for adapter in entry.get("vmkernel") or () if adapter["device"] == tagged}
    switches = [switch for switch in entry.get("switches") or () if switch["name"] in names]
    uplinks = {uplink for switch in switches for uplink in switch["uplinks"]}
    return [device for device in devices if device.get("uplink") in uplinks] or devices


def _is_used(device: Entry, users: Sequence[Entry]) -> bool:
    return any(user["uplink"] in (None, device.get("uplink")) for user in users)


def _sent(device: Entry) -> int | None:
    sent: int | None = (device.get("counters") or {}).get("bytes_sent")
    return sent
