"""The placement of workers on hosts: one on each host, or several; workers stay on their host if they can."""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, Tuple

from .fewest_moves import one_per_host, several_per_host
from .host_room import IGNORE, PREFER, REQUIRE, Demand, Device, DeviceRequest, HostResources, offered
from .matching import Candidate, match
from .packing import pack

LONGEST = 8
# A reason, with a placeholder for the workers that it concerns.
GAP = "{}"
Reason = Tuple[str, Tuple[str, ...]]
__all__ = [
    "IGNORE",
    "PREFER",
    "REQUIRE",
    "Demand",
    "Device",
    "DeviceRequest",
    "HostResources",
    "Placement",
    "Rules",
    "WorkerToPlace",
    "place",
]


@dataclass(frozen=True)
class WorkerToPlace:
    """A worker to be placed; ``hosts`` are the allowed hosts (None: any), ``at`` is its current host.

    A settled worker runs with the requested GPUs and may stay even if no other worker would fit on its host.
    """

    name: str
    demand: Demand
    hosts: frozenset[str] | None = None
    at: str = ""
    settled: bool = False

    def may(self, host: str) -> bool:
        return self.hosts is None or host in self.hosts


@dataclass(frozen=True)
class Rules:
    """The rules for all workers of a call."""

    apart: bool = True
    same_node: str = PREFER


@dataclass(frozen=True)
class Placement:
    """The host of each worker, and the reason if a worker has none.

    ``moves`` are the hosts that running workers leave to make room for ``makes_room_for``, or to follow the rules.
    """

    where: Mapping[str, str] = field(default_factory=dict)
    refusals: Mapping[str, str] = field(default_factory=dict)
    moves: Mapping[str, str] = field(default_factory=dict)
    makes_room_for: tuple[str, ...] = ()


def place(hosts: Iterable[HostResources], workers: Iterable[WorkerToPlace], rules: Rules | None = None) -> Placement:
    """Return the placement of all workers; as few running workers as possible move, and only to make room."""
    rules, all_hosts = rules or Rules(), sorted(hosts, key=lambda host: host.name)
    ordered = sorted(
        workers, key=lambda worker: (not worker.settled, not worker.at, [-n for n in worker.demand.size], worker.name)
    )
    homes = _homes(all_hosts, ordered, rules)
    placement = _fill(all_hosts, ordered, homes, rules)
    if not placement.refusals:
        return replace(placement, moves=_moves(ordered, placement.where))
    where = _with_moves(all_hosts, ordered, homes, rules, placement.refusals) if homes else {}
    if len(where) < len(ordered):
        return placement
    return Placement(where, moves=_moves(ordered, where), makes_room_for=tuple(sorted(placement.refusals)))


def without_moves(
    hosts: Iterable[HostResources], workers: Iterable[WorkerToPlace], rules: Rules | None = None
) -> Placement:
    """Return the placement without moves of running workers; a refusal names the moves that would make room."""
    everyone, all_hosts = list(workers), list(hosts)
    best = place(all_hosts, everyone, rules)
    if not best.moves:
        return best
    moves = ", ".join(f"{name} from {was} to {best.where[name]}" for name, was in sorted(best.moves.items()))
    pinned = [
        replace(worker, hosts=frozenset({worker.at})) if worker.settled and worker.may(worker.at) else worker
        for worker in everyone
    ]
    placed = place(all_hosts, pinned, rules)
    words = f"all workers find a host if running ones move ({moves}), which allow_moves: true permits"
    refusals = {name: f"{why}; {words}" for name, why in placed.refusals.items()}
    return replace(placed, refusals=refusals)


def _with_moves(
    hosts: Sequence[HostResources],
    ordered: Sequence[WorkerToPlace],
    homes: Mapping[str, str],
    rules: Rules,
    refused: Container[str],
) -> dict[str, str]:
    """Return the hosts of the workers if running workers may move; not all workers are included if they do not fit."""

    def fill(kept: Mapping[str, str]) -> dict[str, str] | None:
        placement = _fill(hosts, ordered, kept, rules)
        return None if placement.refusals else dict(placement.where)

    running = {worker.name for worker in ordered if worker.settled}
    if rules.apart:
        return one_per_host([host for host in hosts if not host.workers], ordered, homes, running, rules.same_node)
    first = [
        host.name
        for host in hosts
        if any(candidate.may(host.name) for candidate in ordered if candidate.name in refused)
    ]
    return several_per_host(homes, running, first, fill) or {}


def _moves(ordered: Sequence[WorkerToPlace], where: Mapping[str, str]) -> dict[str, str]:
    """Return the running workers that move although their current host is allowed, with that host."""
    stayers = [worker for worker in ordered if worker.settled and worker.at and worker.may(worker.at)]
    return {worker.name: worker.at for worker in stayers if where[worker.name] != worker.at}


def _homes(hosts: Sequence[HostResources], ordered: Sequence[WorkerToPlace], rules: Rules) -> dict[str, str]:
    left = {host.name: host for host in hosts}
    homes: dict[str, str] = {}
    for worker in ordered:
        host = left.get(worker.at)
        if host is None or not worker.may(host.name) or (rules.apart and (host.workers or host.name in homes.values())):
            continue
        after = host.take(worker.demand, rules.same_node)
        if after or worker.settled:
            left[worker.at], homes[worker.name] = after or host.occupy(worker.demand, rules.same_node), worker.at
    return homes


def _fill(
    hosts: Sequence[HostResources], ordered: Sequence[WorkerToPlace], homes: Mapping[str, str], rules: Rules
) -> Placement:
    """Return the placement after the workers that do not stay get a host."""
    demands = {worker.name: worker.demand for worker in ordered}
    left = {host.name: host for host in hosts}
    for name, home in homes.items():
        left[home] = left[home].occupy(demands[name], rules.same_node)
    others = [worker for worker in ordered if worker.name not in homes]
    if rules.apart:
        open_ = [host for host in left.values() if not host.workers and host.name not in homes.values()]
        assigned = match(open_, others, rules.same_node)
    else:
        assigned = pack(list(left.values()), others, rules.same_node)
    where = {**homes, **assigned}
    missing = [worker for worker in others if worker.name not in where]
    full, here = _taken(left, assigned, demands, rules) if missing else [], _workers_on(where)
    return Placement(where, {worker.name: why_not(worker, full, here, rules) for worker in missing})


def _workers_on(where: Mapping[str, str]) -> dict[str, list[str]]:
    here: dict[str, list[str]] = {}
    for name, host in where.items():
        here.setdefault(host, []).append(name)
    return here


def _taken(
    left: Mapping[str, HostResources], assigned: Mapping[str, str], demands: Mapping[str, Demand], rules: Rules
) -> list[HostResources]:
    """Return the hosts with all placed workers on them."""
    after = dict(left)
    for name, host in assigned.items():
        after[host] = after[host].occupy(demands[name], rules.same_node)
    return list(after.values())


class RequestedRules(Protocol):
    """The rules for all workers."""

    @property
    def apart(self) -> bool: ...

    @property
    def same_node(self) -> str: ...


def why_not(
    worker: Candidate, hosts: Sequence[HostResources], here: Mapping[str, Sequence[str]], rules: RequestedRules
) -> str:
    """Return one sentence with a reason for each host; ``here`` are the workers of this call on each host."""
    unknown = [
        profile for profile in dict.fromkeys(worker.demand.vgpus) if not any(profile in h.slots.offered for h in hosts)
    ]
    if unknown:
        every = dict.fromkeys(name for host in hosts for name in host.slots.offered)
        near = dict.fromkeys(name for profile in unknown for name in difflib.get_close_matches(profile, every))
        meant = f", did you mean {' or '.join(near)}" if near else ""
        return f"no host offers {' or '.join(unknown)}{meant}; {offers(hosts)}"
    allowed = [host for host in hosts if worker.hosts is None or host.name in worker.hosts]
    if not allowed:
        return f"none of the hosts that it may run on ({_list(sorted(worker.hosts or ()))}) is in the cluster"
    by_reason: dict[str, tuple[list[str], list[str]]] = {}
    for host in allowed:
        reason, who = _reason(worker.demand, host, here.get(host.name, ()), rules)
        names, whom = by_reason.setdefault(reason, ([], []))
        names.append(host.name)
        whom.extend(who)
    return "; ".join(
        f"{_list(names)}: {reason.replace(GAP, _list(whom))}" for reason, (names, whom) in by_reason.items()
    )


def offers(hosts: Sequence[HostResources]) -> str:
    """Return the profiles that each host offers, as text."""
    texts = [f"{_list(names)} offer{_s(names)} {_list(what) or 'none'}" for what, names in offered(hosts).items()]
    return "; ".join(texts)


def _reason(demand: Demand, host: HostResources, here: Sequence[str], rules: RequestedRules) -> Reason:
    if not host.in_service:
        return "out of service", ()
    if rules.apart and (host.workers or here):
        return "taken, and workers are kept apart ({})", (*host.workers, *here)
    groups = [group for group in demand.groups if group not in host.groups]
    if groups:
        return f"no device group {_list(groups)} (offered: {_list(host.groups) or 'none'})", ()
    missing = [profile for profile in demand.vgpus if not host.slots.total(profile)]
    if missing:
        return f"no {_list(dict.fromkeys(missing))} (offered: {_list(host.slots.offered) or 'none'})", ()
    if host.slots.take_all(demand.vgpus) is None:
        return f"no free place for {_list(demand.vgpus)} ({GAP})", _held(host, here)
    return _other_reason(demand, host, here, rules)


def _other_reason(demand: Demand, host: HostResources, here: Sequence[str], rules: RequestedRules) -> Reason:
    if host.free_mb < demand.memory_mb:
        return f"{host.free_mb} MB of memory left, but {demand.memory_mb} MB are to be reserved", ()
    if host.threads < demand.cpus:
        return f"{host.threads} logical CPUs, but {demand.cpus} are requested", ()
    for desired in dict.fromkeys(demand.devices):
        answering = [device for device in host.devices if desired.matches(device)]
        holders = [f"{device.holder} has {device.address}" for device in answering if device.holder]
        if len(answering) - len(holders) < demand.devices.count(desired):
            held = (*holders, *(f"{name} is placed here" for name in here))
            kind = "devices of class" if desired.device_class else "PCI devices"
            return f"not enough free {kind} {desired}" + (" ({})" if held else ""), held
    if rules.same_node == REQUIRE and not host.near(demand):
        return "GPU and RDMA NIC are not on one NUMA node", ()
    return "no room for it next to the others ({})", _held(host, here)


def _held(host: HostResources, here: Sequence[str]) -> tuple[str, ...]:
    """Return the virtual machines that use the GPUs of a host, as text."""
    texts = [f"{name} has {profile}" for name, profile in host.holders] + [f"{name} is placed here" for name in here]
    return tuple(texts) or ("its GPUs are too small or have vGPUs of another size",)


def _list(names: Iterable[str]) -> str:
    """Return the first names and the number of further names, as text."""
    every = list(names)
    more = len(every) - LONGEST
    return ", ".join(every[:LONGEST]) + (f" and {more} more" if more > 0 else "")


def _s(names: Sequence[str]) -> str:
    return "s" if len(names) == 1 else ""
