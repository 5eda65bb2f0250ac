# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The RDMA counters of a job on nodes and ESXi hosts before and after it, and the bytes that it must have sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .proof import PARAVIRTUAL

Told = Mapping[str, Any]


def counters(
    before: Mapping[str, Sequence[Told]],
    after: Mapping[str, Sequence[Told]],
    *,
    esxi_hosts: Mapping[str, str] | None = None,
    esxi_before: Sequence[Told] = (),
    esxi_after: Sequence[Told] = (),
    neighbours: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """The counters of a job, for ``proof.judge``.

    ``before`` and ``after``: node -> its devices with ``name``, ``driver`` and ``sent_bytes``. ``esxi_before`` and
    ``esxi_after``: entries of esxi_info. ``neighbours``: workers that are not of the job, and their ESXi hosts.
    """
    first, last = ({str(entry["host"]): entry for entry in entries} for entries in (esxi_before, esxi_after))
    found: list[dict[str, Any]] = []
    for node in dict.fromkeys((*before, *after)):
        devices = before.get(node) or ()
        # A node without any device has sent nothing by RDMA that anybody could count.
        found += [] if devices else [_of_guest(node, {}, {})]
        later = {str(device["name"]): device for device in after.get(node, ())}
        own = [device for device in devices if device.get("driver") != PARAVIRTUAL]
        found += [_of_guest(node, device, later.get(str(device["name"]), {})) for device in own]
        host = (esxi_hosts or {}).get(node, "")
        if len(own) < len(devices):
            shown = list(_of_host(node, host, first, last, host in (neighbours or {}).values()))
            found += shown or [_of_guest(node, device, {}) for device in devices if device not in own]
    return found


def least_sent(gradient_bytes: float, steps: int, nodes: int) -> float | None:
    """The bytes that each node sends at least, as an allreduce sends nearly all gradients twice; None if unknown."""
    if gradient_bytes <= 0 or steps <= 0 or nodes < 2:
        return None
    return 2 * (nodes - 1) / nodes * gradient_bytes * steps


def _of_guest(node: str, device: Told, later: Told) -> dict[str, Any]:
    return {
        "node": node,
        "device": str(device["name"]) if device else None,
        "driver": device.get("driver"),
        "source": "guest",
        "shared": False,
        "before": device.get("sent_bytes"),
        "after": later.get("sent_bytes"),
    }


def _of_host(
    node: str, host: str, before: Mapping[str, Told], after: Mapping[str, Told], has_neighbour: bool
) -> Iterator[dict[str, Any]]:
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


def _tagged(entry: Told) -> list[Told]:
    """The devices under the switch of the adapter that is tagged for PVRDMA; all devices if no adapter is known."""
    devices: list[Told] = list(entry.get("rdma_devices") or ())
    tagged = (entry.get("pvrdma") or {}).get("vmk")
    switches = {one["switch"] for one in entry.get("vmkernel") or () if one["device"] == tagged}
    uplinks = {uplink for one in entry.get("switches") or () if one["name"] in switches for uplink in one["uplinks"]}
    return [device for device in devices if device.get("uplink") in uplinks] or devices


def _is_used(device: Told, users: Sequence[Told]) -> bool:
    return any(user["uplink"] in (None, device.get("uplink")) for user in users)


def _sent(device: Told) -> int | None:
    sent: int | None = (device.get("counters") or {}).get("bytes_sent")
    return sent
