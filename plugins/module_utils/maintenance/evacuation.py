"""Whether hosts of a cluster can be emptied: which virtual machines move where, which must be off, which block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import FrozenSet, Tuple

from ..workers.capacity.running_vm import HOT_MIGRATE, STOPPED_BY_DRS, Vm
from ..workers.placement.gpu_slots import Slots, parse
from ..workers.placement.seating import GuestToSeat, seat

DRS, MODULE = "drs", "module"
FULLY_AUTOMATED = "fullyAutomated"
# Cluster option that makes DRS move virtual machines with a vGPU off a host that enters maintenance mode.
VGPU_BY_DRS = "VgpuMMAutomationTimeoutSecs"


@dataclass(frozen=True)
class FreeCapacity:
    """The free capacity of a host for virtual machines of other hosts."""

    name: str
    in_service: bool = True
    slots: Slots = field(default_factory=Slots)
    free_mb: int | None = None


@dataclass(frozen=True)
class VmHostRule:
    """A rule that the server enforces: the virtual machines of these keys only on these hosts."""

    name: str
    vms: frozenset[str]
    hosts: frozenset[str]


@dataclass(frozen=True)
class AntiAffinityRule:
    """A rule that keeps the virtual machines of these keys on different hosts."""

    name: str
    vms: frozenset[str]


@dataclass(frozen=True)
class EvacuationCluster:
    """A cluster as the planner uses it; ``drs`` is empty if DRS is off."""

    name: str
    rooms: tuple[FreeCapacity, ...]
    vms: tuple[Vm, ...] = ()
    must_run: tuple[VmHostRule, ...] = ()
    apart: tuple[AntiAffinityRule, ...] = ()
    drs: str = FULLY_AUTOMATED
    vgpu_by_drs: bool = False
    hot_migrate: bool = False


@dataclass(frozen=True)
class EvacuationMove:
    """A virtual machine that leaves, and a host with room for it."""

    vm: Vm
    to: str


@dataclass(frozen=True)
class Blocker:
    """A virtual machine that keeps a host from being emptied, and why."""

    vm: Vm
    why: str

    def __str__(self) -> str:
        return f"{self.vm.name} ({self.vm.whose}) {self.why}"


@dataclass(frozen=True)
class HostEvacuation:
    """The consequences of emptying one host."""

    moves: tuple[EvacuationMove, ...] = ()
    power_off: tuple[Vm, ...] = ()
    blocks: tuple[Blocker, ...] = ()


@dataclass(frozen=True)
class _Filled:
    """A host with the total vGPUs and memory of the virtual machines that move to it.

    Its vGPUs are placed together: if placed one after another, a small one could take the GPU that a large one needs.
    """

    room: FreeCapacity
    vgpus: tuple[str, ...] = ()
    reserved_mb: int = 0

    def with_one(self, vgpus: tuple[str, ...], reserved_mb: int) -> _Filled | None:
        """Return the host with one more virtual machine on it; None if the machine does not fit."""
        if not vgpus and not reserved_mb:
            return self
        all_vgpus, all_mb = tuple(sorted((*self.vgpus, *vgpus))), self.reserved_mb + reserved_mb
        if self.room.free_mb is not None and self.room.free_mb < all_mb:
            return None
        return (
            None if self.room.slots.take_all(all_vgpus) is None else replace(self, vgpus=all_vgpus, reserved_mb=all_mb)
        )

    @property
    def free_mb(self) -> int:
        """Return the memory that is left; 0 if it is unknown."""
        return (self.room.free_mb or 0) - self.reserved_mb

    @property
    def profiles(self) -> set[str]:
        """Return the profiles of all vGPUs on the host."""
        return {*self.vgpus, *(profile for gpu in self.room.slots.gpus for profile in gpu.used)}


# A host, and a virtual machine (vGPUs, memory, and the rules that keep it apart), in the search for places.
_Seats = Tuple[_Filled, FrozenSet[int]]
_Kind = Tuple[Tuple[str, ...], int, FrozenSet[int]]


def plan(
    cluster: EvacuationCluster, leaving: Iterable[str], *, power_off: bool = False, moved_by: str = DRS
) -> dict[str, HostEvacuation]:
    """Return a verdict for each of the hosts that leave service together.

    Each host that can leave reduces the room for the next one; a host that cannot leave takes no room.
    """
    names = list(leaving)
    placing = _Placing(cluster, frozenset(names), power_off, moved_by)
    verdicts = {name: placing.empty(name) for name in names}
    return {name: verdict if verdict.blocks else placing.as_placed(verdict) for name, verdict in verdicts.items()}


class _Placing:
    """Finds places one after another, and rearranges earlier ones if that makes room for another machine."""

    def __init__(self, cluster: EvacuationCluster, leaving: frozenset[str], power_off: bool, moved_by: str) -> None:
        self.cluster, self.power_off, self.moved_by = cluster, power_off, moved_by
        serving = (room for room in cluster.rooms if room.in_service and room.name not in leaving)
        self.open = {room.name: _Filled(room) for room in serving}
        self.before = {vm.key: vm.host for vm in cluster.vms}
        self.leaving: list[Vm] = []
        self.rooms, self.where = dict(self.open), dict(self.before)

    def empty(self, host: str) -> HostEvacuation:
        """Return the evacuation of a host, and reserve the places of its virtual machines if it can be emptied."""
        there = (vm for vm in self.cluster.vms if vm.host == host and not vm.of_vcenter)
        mine = sorted(there, key=_largest_first)
        off = tuple(vm for vm in mine if vm.fixed and self.power_off)
        staying = {vm.key: why for vm in mine if vm not in off and (why := self._must_stay(vm))}
        movers = [vm for vm in mine if vm not in off and vm.key not in staying]
        rooms, where = dict(self.rooms), dict(self.where)
        homeless = self._place_all(movers)
        moves = tuple(EvacuationMove(vm, self.where[vm.key]) for vm in movers if vm.key not in homeless)
        blocks = tuple(
            Blocker(vm, staying.get(vm.key) or homeless[vm.key])
            for vm in mine
            if vm.key in staying or vm.key in homeless
        )
        if blocks:
            self.rooms, self.where = rooms, where
        else:
            self.leaving += movers
        return HostEvacuation(moves, off, blocks)

    def as_placed(self, verdict: HostEvacuation) -> HostEvacuation:
        return replace(verdict, moves=tuple(EvacuationMove(move.vm, self.where[move.vm.key]) for move in verdict.moves))

    def _place_all(self, movers: Sequence[Vm]) -> dict[str, str]:
        """Place the machines, the largest first because they fit in the fewest places; return why others have none."""
        without = [vm for vm in movers if not self._place(vm)]
        seats = self._seats([*self.leaving, *movers]) if without else None
        if seats is None:
            return {vm.key: self._no_place(vm) for vm in without}
        self.rooms, self.where = dict(self.open), dict(self.before)
        for vm in (*self.leaving, *movers):
            self._put(vm, seats[vm.key])
        return {}

    def _seats(self, vms: Sequence[Vm]) -> dict[str, str] | None:
        """Return a host for each machine, planned from scratch: only machines that stay occupy the open hosts."""
        groups = {vm.key: self._groups(vm.key) for vm in vms}
        there = {name: frozenset[int]() for name in self.open}
        for key, host in self.before.items():
            if host in there:
                there[host] |= self._groups(key)
        rooms = {name: (_Filled(replace(filled.room, name="")), there[name]) for name, filled in self.open.items()}
        guests = [
            GuestToSeat(vm.key, (vm.vgpus, vm.reserved_mb, groups[vm.key]), frozenset(self._tied(vm))) for vm in vms
        ]
        return seat(rooms, guests, _take)

    def _groups(self, key: str) -> frozenset[int]:
        """Return the anti-affinity rules of the machine, by number: names may repeat."""
        return frozenset(number for number, group in enumerate(self.cluster.apart) if key in group.vms)

    def _must_stay(self, vm: Vm) -> str:
        if vm.fixed:
            return f"cannot move because of {' and '.join(vm.fixed)}: power_off: true would power it off"
        if vm.vgpus and not self.cluster.hot_migrate:
            return f"has a vGPU and the vCenter option {HOT_MIGRATE} is false: set it with shared_settings"
        return self._left_by_drs(vm) if self.moved_by == DRS else ""

    def _left_by_drs(self, vm: Vm) -> str:
        """Return why DRS would not move the machine; empty if it would."""
        either = "move it by hand, or choose moved_by: module"
        if self.cluster.drs != FULLY_AUTOMATED:
            mode = f"is {self.cluster.drs}" if self.cluster.drs else "is off"
            return f"stays because DRS of cluster {self.cluster.name} {mode}: {either}"
        if vm.stopped_by_drs:
            return f"would be powered off by DRS, as its setting {STOPPED_BY_DRS} says: remove it, or {either}"
        if vm.left_by_drs:
            return f"stays because it has a separate automation level in DRS: {either}"
        if vm.vgpus and not self.cluster.vgpu_by_drs:
            return f"has a vGPU, and DRS moves it only with the cluster option {VGPU_BY_DRS} at -1: {either}"
        return ""

    def _place(self, vm: Vm) -> bool:
        """Place a virtual machine; return whether a host has room for it."""
        fitting = [name for name in self._allowed(vm) if self.rooms[name].with_one(vm.vgpus, vm.reserved_mb)]
        if fitting:
            self._put(vm, max(fitting, key=lambda name: self._attraction(name, vm)))
        return bool(fitting)

    def _put(self, vm: Vm, host: str) -> None:
        self.rooms[host] = self.rooms[host].with_one(vm.vgpus, vm.reserved_mb) or self.rooms[host]
        self.where[vm.key] = host

    def _attraction(self, name: str, vm: Vm) -> tuple[bool, int]:
        """Prefer hosts that already use the profile, which keeps GPUs free for other sizes; then those with memory."""
        filled = self.rooms[name]
        return bool(vm.vgpus) and not filled.profiles.isdisjoint(vm.vgpus), filled.free_mb

    def _tied(self, vm: Vm) -> set[str]:
        """Return the open hosts that the host rules allow."""
        return set(self.open).intersection(*(rule.hosts for rule in self.cluster.must_run if vm.key in rule.vms))

    def _allowed(self, vm: Vm) -> list[str]:
        names = self._tied(vm)
        for group in self.cluster.apart:
            if vm.key in group.vms:
                names -= {self.where[other] for other in group.vms - {vm.key} if other in self.where}
        return sorted(names)

    def _no_place(self, vm: Vm) -> str:
        if not self.rooms:
            return f"has nowhere to go: no other host of cluster {self.cluster.name} is in service"
        ties = [rule.name for rule in self.cluster.must_run if vm.key in rule.vms]
        ties += [group.name for group in self.cluster.apart if vm.key in group.vms]
        if ties and not self._allowed(vm):
            return f"has nowhere to go: the rule {' and '.join(ties)} allows no other host in service"
        among = f" that the rule {' and '.join(ties)} allows" if ties else ""
        if vm.vgpus:
            return f"has nowhere to go: no other host in service{among} has a free {' and '.join(vm.vgpus)}"
        return f"has nowhere to go: no other host in service{among} has {vm.reserved_mb} MB of memory unreserved"


def _largest_first(vm: Vm) -> tuple[int, int, str]:
    """Return a sort key. The server assigns vGPUs in the order of arrival, and large ones fit on fewer GPUs."""
    gigabytes = sum(profile.gigabytes for profile in map(parse, vm.vgpus) if profile)
    return -gigabytes, -len(vm.vgpus), vm.name


def _take(state: _Seats, kind: _Kind) -> _Seats | None:
    """Return a host and the rules of its machines after one more machine; None if that machine does not fit."""
    (filled, there), (vgpus, reserved_mb, groups) = state, kind
    after = None if there & groups else filled.with_one(vgpus, reserved_mb)
    return (after, there | groups) if after else None


def as_dict(verdict: HostEvacuation) -> dict[str, list[Mapping[str, str]]]:
    return {
        "moves": [{"vm": entry.vm.name, **_owners(entry.vm), "to": entry.to} for entry in verdict.moves],
        "power_off": [{"vm": vm.name, **_owners(vm), "why": " and ".join(vm.fixed)} for vm in verdict.power_off],
        "blocked": [{"vm": entry.vm.name, **_owners(entry.vm), "why": entry.why} for entry in verdict.blocks],
    }


def _owners(vm: Vm) -> dict[str, str]:
    return {"folder": vm.folder, "pool": vm.pool, "owner": vm.owner}
