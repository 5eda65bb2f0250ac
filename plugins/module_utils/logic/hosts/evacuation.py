# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Whether hosts of a cluster can be emptied: which virtual machines move where, which must be off, which block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..placement.gpu_slots import Slots

DRS, MODULE = "drs", "module"
FULLY_AUTOMATED = "fullyAutomated"
# Cluster option that makes DRS move virtual machines with a vGPU off a host that enters maintenance mode.
VGPU_BY_DRS = "VgpuMMAutomationTimeoutSecs"
HOT_MIGRATE = "vgpu.hotmigrate.enabled"


@dataclass(frozen=True)
class Vm:
    """A powered-on virtual machine, and what ties it to its host; names may repeat, keys do not."""

    key: str
    name: str
    host: str
    folder: str = ""
    pool: str = ""
    owner: str = ""
    vgpus: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    reserved_mb: int = 0
    left_by_drs: bool = False

    @property
    def whose(self) -> str:
        """Where it lies and who owns it, for people to read."""
        parts = [("folder", self.folder), ("pool", self.pool), ("owner", self.owner)]
        return ", ".join(f"{label} {value}" for label, value in parts if value) or "owner unknown"


@dataclass(frozen=True)
class Room:
    """What a host has left for virtual machines of other hosts."""

    name: str
    in_service: bool = True
    slots: Slots = field(default_factory=Slots)
    free_mb: int | None = None


@dataclass(frozen=True)
class MustRun:
    """A rule that the server enforces: the virtual machines of these keys only on these hosts."""

    name: str
    vms: frozenset[str]
    hosts: frozenset[str]


@dataclass(frozen=True)
class Apart:
    """A rule that keeps the virtual machines of these keys on different hosts."""

    name: str
    vms: frozenset[str]


@dataclass(frozen=True)
class Cluster:
    """A cluster as the planner sees it; ``drs`` is empty where DRS is off."""

    name: str
    rooms: tuple[Room, ...]
    vms: tuple[Vm, ...] = ()
    must_run: tuple[MustRun, ...] = ()
    apart: tuple[Apart, ...] = ()
    drs: str = FULLY_AUTOMATED
    vgpu_by_drs: bool = False
    hot_migrate: bool = False


@dataclass(frozen=True)
class Move:
    """A virtual machine that leaves, and a host that has room for it."""

    vm: Vm
    to: str


@dataclass(frozen=True)
class Block:
    """A virtual machine that keeps a host from being emptied, and why."""

    vm: Vm
    why: str

    def __str__(self) -> str:
        return f"{self.vm.name} ({self.vm.whose}) {self.why}"


@dataclass(frozen=True)
class Verdict:
    """What emptying one host means."""

    moves: tuple[Move, ...] = ()
    power_off: tuple[Vm, ...] = ()
    blocks: tuple[Block, ...] = ()


def plan(
    cluster: Cluster, leaving: Iterable[str], *, power_off: bool = False, moved_by: str = DRS
) -> dict[str, Verdict]:
    """A verdict for each of the hosts that leave service together: what one takes is not there for the next."""
    names = list(leaving)
    placing = _Placing(cluster, frozenset(names), power_off, moved_by)
    return {name: placing.empty(name) for name in names}


class _Placing:
    """Finds places one after another; the largest claims come first, because they have the fewest places."""

    def __init__(self, cluster: Cluster, leaving: frozenset[str], power_off: bool, moved_by: str) -> None:
        self.cluster, self.power_off, self.moved_by = cluster, power_off, moved_by
        self.rooms = {room.name: room for room in cluster.rooms if room.in_service and room.name not in leaving}
        self.where = {vm.key: vm.host for vm in cluster.vms}

    def empty(self, host: str) -> Verdict:
        mine = sorted((vm for vm in self.cluster.vms if vm.host == host), key=lambda vm: (-len(vm.vgpus), vm.name))
        off = tuple(vm for vm in mine if vm.fixed and self.power_off)
        moves: list[Move] = []
        blocks: list[Block] = []
        for vm in mine:
            if vm in off:
                continue
            why = self._must_stay(vm)
            to = None if why else self._place(vm)
            if to:
                moves.append(Move(vm, to))
            else:
                blocks.append(Block(vm, why or self._no_place(vm)))
        return Verdict(tuple(moves), off, tuple(blocks))

    def _must_stay(self, vm: Vm) -> str:
        if vm.fixed:
            return f"cannot move because of {' and '.join(vm.fixed)}: power_off: true would power it off"
        if vm.vgpus and not self.cluster.hot_migrate:
            return f"has a vGPU and the vCenter option {HOT_MIGRATE} is false: set it with shared_settings"
        return self._left_by_drs(vm) if self.moved_by == DRS else ""

    def _left_by_drs(self, vm: Vm) -> str:
        """Why DRS would not move it."""
        either = "move it by hand, or choose moved_by: module"
        if self.cluster.drs != FULLY_AUTOMATED:
            mode = f"is {self.cluster.drs}" if self.cluster.drs else "is off"
            return f"stays because DRS of cluster {self.cluster.name} {mode}: {either}"
        if vm.left_by_drs:
            return f"stays because it has an automation level of its own in DRS: {either}"
        if vm.vgpus and not self.cluster.vgpu_by_drs:
            return f"has a vGPU, and DRS moves it only with the cluster option {VGPU_BY_DRS} at -1: {either}"
        return ""

    def _place(self, vm: Vm) -> str | None:
        fitting = {name: after for name in self._allowed(vm) if (after := _with(self.rooms[name], vm))}
        if not fitting:
            return None
        chosen = max(sorted(fitting), key=lambda name: self._attraction(name, vm))
        self.rooms[chosen] = fitting[chosen]
        self.where[vm.key] = chosen
        return chosen

    def _attraction(self, name: str, vm: Vm) -> tuple[bool, int]:
        """Hosts that use the profile already, so that empty GPUs stay free for other sizes; then those with memory."""
        room = self.rooms[name]
        used = {profile for gpu in room.slots.gpus for profile in gpu.used}
        return bool(used & set(vm.vgpus)), room.free_mb or 0

    def _allowed(self, vm: Vm) -> list[str]:
        names = set(self.rooms)
        for rule in self.cluster.must_run:
            if vm.key in rule.vms:
                names &= rule.hosts
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


def _with(room: Room, vm: Vm) -> Room | None:
    """The host with the virtual machine on it; None when it does not fit."""
    slots = room.slots.take_all(vm.vgpus)
    if slots is None or (room.free_mb is not None and room.free_mb < vm.reserved_mb):
        return None
    return replace(room, slots=slots, free_mb=None if room.free_mb is None else room.free_mb - vm.reserved_mb)


def as_dict(verdict: Verdict) -> dict[str, list[Mapping[str, str]]]:
    """A verdict as plain data."""
    return {
        "moves": [{"vm": one.vm.name, **_owners(one.vm), "to": one.to} for one in verdict.moves],
        "power_off": [{"vm": vm.name, **_owners(vm), "why": " and ".join(vm.fixed)} for vm in verdict.power_off],
        "blocked": [{"vm": one.vm.name, **_owners(one.vm), "why": one.why} for one in verdict.blocks],
    }


def _owners(vm: Vm) -> dict[str, str]:
    return {"folder": vm.folder, "pool": vm.pool, "owner": vm.owner}
