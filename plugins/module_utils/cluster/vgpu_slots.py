# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The used and free slots for virtual GPUs of a cluster, by profile and host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..vsphere.fleet import Host
from ..workers.capacity import host_capacity as capacity
from ..workers.capacity.running_vm import Vm
from ..workers.placement.gpu_slots import Slots


def by_profile(hosts: Sequence[Host], vms: Sequence[Vm]) -> list[dict[str, Any]]:
    """The slots of each profile that a host in service offers."""
    there = {host.name: _of_host(host, vms) for host in hosts if capacity.in_service(host.properties)}
    profiles = sorted({profile for slots in there.values() for profile in slots.offered})
    return [_profile(profile, there) for profile in profiles]


def _of_host(host: Host, vms: Sequence[Vm]) -> Slots:
    return capacity.slots(host.properties, {vm.key: vm.vgpus for vm in vms if vm.host == host.name})


def _profile(profile: str, there: dict[str, Slots]) -> dict[str, Any]:
    hosts = [
        {"host": name, "used": _used(slots, profile), "free": slots.free(profile)}
        for name, slots in there.items()
        if slots.total(profile)
    ]
    return {
        "profile": profile,
        "used": sum(one["used"] for one in hosts),
        "free": sum(one["free"] for one in hosts),
        "hosts": hosts,
    }


def _used(slots: Slots, profile: str) -> int:
    return sum(gpu.used.count(profile) for gpu in slots.gpus)
