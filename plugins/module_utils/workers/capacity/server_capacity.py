"""The server's count of vGPUs and of device classes, with reservations, which vSphere 9.0 introduced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...vsphere.sdk import vim, vmodl
from ...vsphere.session import Session
from ..placement.gpu_slots import Slots, parse

SINCE = (9,)
RESERVATION, UNSEEN = "a reservation", "another user (counted by vCenter)"


@dataclass(frozen=True)
class Capacity:
    """The count of a profile or device class on a host: used, free, total on the empty host, reserved but unused."""

    used: int
    free: int
    total: int
    reserved: int


def read(session: Session, host: object, profiles: Iterable[str], classes: Iterable[str] = ()) -> dict[str, Capacity]:
    """Return the capacity of a host by profile and by device class.

    The result lacks those that the server does not count, which are then counted by their names: all of them before
    9.0, or if the server refuses to count.
    """
    desired, names = sorted(set(profiles)), sorted(set(classes))
    manager = getattr(session.content, "directPathProfileManager", None) if session.api_version >= SINCE else None
    if manager is None or not (desired or names):
        return {}
    kinds = vim.DirectPathProfileManager
    configs = [kinds.VmiopDirectPathConfig(vgpuProfile=profile) for profile in desired]
    backing = vim.vm.device.VirtualPCIPassthrough.DvxBackingInfo
    configs += [kinds.DvxDirectPathConfig(dvxBacking=backing(deviceClass=name)) for name in names]
    queries = [kinds.CapacityQueryByDeviceConfig(deviceConfig=config) for config in configs]
    try:
        results = manager.QueryDirectPathProfileCapacity(kinds.TargetHost(host=host), queries) or []
    except vmodl.MethodFault:
        return {}
    return {
        name: Capacity(result.consumed, result.remaining, result.max, result.unusedReservation)
        for name, result in zip([*desired, *names], results)
        if isinstance(result, kinds.CapacityInfo)
    }


def withheld(slots: Slots, counted: Mapping[str, Capacity]) -> list[tuple[str, str]]:
    """Return holder and profile of each slot that is free according to the host's vGPUs, but not to the server's count.

    A reservation of one profile also reduces the count of the others, so reservations come first, then small profiles.
    """
    holders: list[tuple[str, str]] = []
    for profile in sorted(counted, key=lambda name: (-counted[name].reserved, _gigabytes(name), name)):
        missing = max(slots.free(profile) - counted[profile].free, 0)
        reserved = min(missing, counted[profile].reserved)
        holders += [(RESERVATION, profile)] * reserved + [(UNSEEN, profile)] * (missing - reserved)
        slots = slots.occupy([profile] * missing)
    return holders


def _gigabytes(profile: str) -> int:
    parsed = parse(profile)
    return parsed.gigabytes if parsed else 0
