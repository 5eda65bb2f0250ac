# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The devices that a host offers for the GPUs of a worker."""

from __future__ import annotations

from typing import Any

from ..errors import Refused
from ..vsphere.faults import translating_faults
from . import candidate_hosts, worker_gpus
from .call_cluster import Site


def sources_on(site: Site, host: str) -> worker_gpus.Sources:
    """The devices of a host by address, the kinds that carry a label, and the devices of a device group."""
    return worker_gpus.Sources(
        fixed=lambda address: _fixed(site, host, address),
        kinds=lambda label: candidate_hosts.kinds_of(site.hosts.values(), label),
        group=lambda name: _group(site, host, name),
    )


def _fixed(site: Site, host: str, address: str) -> Any:
    """The backing of a device by its address: a host knows itself by an id that only it tells."""
    offered = site.target(host).pciPassthrough or []
    found = next((one for one in offered if one.pciDevice.id == address), None)
    if found is None:
        raise Refused(host, f"give away its device {address}", "it does not offer it", "set it to passthrough first")
    return worker_gpus.fixed_backing(found)


def _group(site: Site, host: str, name: str) -> list[Any]:
    with translating_faults(host, f"read its device group {name}"):
        offered = site.target(host).vendorDeviceGroupInfo
        group = next(one for one in offered if one.deviceGroupName == name)
        return [one.device for one in group.componentDeviceInfo]
