"""Moves that run at the same time, and the reasons that keep another one from joining them; pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ...workers.placement.gpu_slots import Slots
from .plan import Move

# The number of moves that vCenter runs at once on a host, by the speed of its vMotion link in Mb/s; others wait:
# https://docs.vmware.com/en/VMware-vSphere/6.7/com.vmware.vsphere.vcenterhost.doc/GUID-25EA5833-03B5-4EDD-A167-87578B8009B3.html
MOVES_BY_LINK = ((10_000, 8), (1_000, 4))
RESOURCES = ("GPU slots", "MB of memory", "MHz of CPU")


def most_moves(megabits: int | None) -> int:
    """Return the number of moves that vCenter runs at once on a host; one if the speed of its link is not known."""
    return next((most for speed, most in MOVES_BY_LINK if (megabits or 0) >= speed), 1)


@dataclass(frozen=True)
class MovingWorker:
    """A worker: its needs, its job, and its expected stun in seconds by target host, None if unknown.

    VMware's stuns are published for one virtual machine with a vGPU at a time, so such a worker moves ``alone``: its
    two hosts have no other move meanwhile. ``targets`` are the hosts that it may use. ``profiles`` are those of its
    vGPUs, if the workers have several profiles and it will move.
    """

    needs: tuple[int, int, int]
    targets: Collection[str]
    stun_s: Mapping[str, float | None] = field(default_factory=dict)
    job: str = ""
    alone: bool = False
    profiles: tuple[str, ...] = ()


@dataclass(frozen=True)
class GpuRoom:
    """The GPUs of a host with the vGPUs that stay there.

    The host chooses the GPU of a worker that arrives. A GPU of equal sizes has vGPUs of one size, so two small ones may
    use one GPU or two, and a large one then fits or not: it fits if it does so after each choice.
    """

    slots: Slots
    _known: dict[tuple[tuple[str, ...], tuple[str, ...]], bool] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def takes(self, profiles: tuple[str, ...], there: Iterable[str]) -> bool:
        """Return whether vGPUs of these profiles fit beside those of the workers there, whichever GPUs these use."""
        key = profiles, tuple(sorted(there))
        if key not in self._known:
            layouts = self.slots.layouts(key[1]) or [self.slots.occupy(key[1])]
            self._known[key] = all(layout.take_all(profiles) is not None for layout in layouts)
        return self._known[key]


@dataclass(frozen=True)
class HostRoom:
    """The room of a host for the workers of the fleet, including those on it, and the most moves at once.

    If the workers have several vGPU profiles, the number of slots is only the most that may fit, and ``gpus`` decides.
    """

    has: tuple[float, float, float]
    moves: int = 1
    gpus: GpuRoom | None = None


@dataclass(frozen=True)
class Fleet:
    """The workers and hosts of a cluster, and the rules of moves at the same time.

    ``budget_s`` is the time that a job waits for its stunned workers: they wait for each other, so their stuns add up.
    The workers of each set in ``apart`` are never on one host.
    """

    workers: Mapping[str, MovingWorker]
    hosts: Mapping[str, HostRoom]
    budget_s: float = math.inf
    apart: tuple[frozenset[str], ...] = ()
    one_per_host: bool = False
    rank: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Rank the hosts: those that fewer workers may use come first."""
        desired = Counter(host for worker in self.workers.values() for host in worker.targets)
        ranked = sorted(self.hosts, key=lambda host: desired[host])
        object.__setattr__(self, "rank", {host: number for number, host in enumerate(ranked)})

    def without(self, hosts: Collection[str]) -> Fleet:
        """Return the fleet whose workers move to none of these hosts."""
        kept = {name: replace(one, targets=set(one.targets) - set(hosts)) for name, one in self.workers.items()}
        return replace(self, workers=kept) if hosts else self

    def has_gpus(self, host: str, worker: str, there: Iterable[str]) -> bool:
        """Return whether the GPUs of a host take a worker of one of several profiles beside the workers there."""
        gpus, profiles = self.hosts[host].gpus, self.workers[worker].profiles
        if gpus is None or not profiles:
            return True
        return gpus.takes(profiles, (profile for other in there for profile in self.workers[other].profiles))


class Together:
    """Moves that run at the same time, beginning with workers on these hosts.

    A host loses the room of a worker when its move starts, and the host that it leaves gains nothing.
    """

    def __init__(self, fleet: Fleet, at: Mapping[str, str]) -> None:
        self.fleet, self.at = fleet, at
        self.moves: list[Move] = []
        self._taken: dict[str, list[int]] = {host: [0, 0, 0] for host in fleet.hosts}
        self._there: dict[str, set[str]] = {host: set() for host in fleet.hosts}
        self._of_host: Counter[str] = Counter()
        self._alone: set[str] = set()
        self._stuns: dict[str, list[tuple[str, float | None]]] = {}
        for worker, host in at.items():
            self._arrives(worker, host)

    def add(self, move: Move) -> None:
        worker = self.fleet.workers[move.worker]
        self.moves.append(move)
        self._arrives(move.worker, move.target)
        self._of_host.update((move.source, move.target))
        self._alone.update((move.source, move.target) if worker.alone else ())
        self._stuns.setdefault(worker.job, []).append((move.worker, worker.stun_s.get(move.target)))

    def open_hosts(self) -> list[str]:
        """Return the hosts with a free slot, the fullest first."""
        free = {host: room.has[0] - self._taken[host][0] for host, room in self.fleet.hosts.items()}
        hosts = [host for host in free if free[host] > 0 and not (self.fleet.one_per_host and self._there[host])]
        return sorted(hosts, key=lambda host: (free[host], self.fleet.rank[host]))

    def refusal(self, move: Move) -> str:
        """Return why a move cannot join; empty if it can."""
        return next(self._refusals(move), "")

    def _refusals(self, move: Move) -> Iterator[str]:
        if any(other.worker == move.worker for other in self.moves):
            yield f"{move.worker} moves before"
        yield from self._by_stun(move)
        yield from self._by_hosts(move)
        yield from self._by_room(move)
        yield from self._by_rules(move)

    def _by_hosts(self, move: Move) -> Iterator[str]:
        worker = self.fleet.workers[move.worker]
        for host in (move.source, move.target):
            others, most = self._of_host[host], self.fleet.hosts[host].moves
            if others and (worker.alone or host in self._alone):
                yield f"{host} has a move already, and a vGPU moves alone over the links of its hosts"
            elif others >= most:
                yield f"the vMotion link of {host} allows {most} at a time"

    def _by_stun(self, move: Move) -> Iterator[str]:
        worker = self.fleet.workers[move.worker]
        stuns = [*self._stuns.get(worker.job, []), (move.worker, worker.stun_s.get(move.target))]
        unknown = next((name for name, stun in stuns if stun is None), None)
        if len(stuns) > 1 and unknown is not None:
            yield f"the stun of {unknown} is unknown"
        elif len(stuns) > 1:
            total = sum(stun or 0.0 for _name, stun in stuns)
            if total > self.fleet.budget_s:
                sums = " + ".join(f"{stun:.0f} s of {name}" for name, stun in stuns)
                yield f"their stuns add up to {total:.0f} s ({sums}), over the budget of {self.fleet.budget_s:.0f} s"

    def _by_room(self, move: Move) -> Iterator[str]:
        needs, host = self.fleet.workers[move.worker].needs, move.target
        if self.fleet.one_per_host and self._there[host]:
            yield f"{host} has another worker until the others have moved"
        for what, has, taken, need in zip(RESOURCES, self.fleet.hosts[host].has, self._taken[host], needs):
            if need > has - taken:
                yield f"{host} has {max(has - taken, 0):.0f} {what} free until the others have moved, it needs {need}"
        if not self.fleet.has_gpus(host, move.worker, self._there[host] - {move.worker}):
            profiles = ", ".join(self.fleet.workers[move.worker].profiles)
            yield f"{host} may have no GPU for {profiles} beside its vGPUs until the others have moved"

    def _by_rules(self, move: Move) -> Iterator[str]:
        if move.target not in self.fleet.workers[move.worker].targets:
            yield f"a rule keeps it off {move.target}"
        for names in self.fleet.apart:
            others = sorted((names & self._there[move.target]) - {move.worker}) if move.worker in names else ()
            if others:
                yield f"a rule keeps it apart from {others[0]}, which uses {move.target} until the others have moved"

    def _arrives(self, worker: str, host: str) -> None:
        taken, there = self._taken[host], self._there[host]
        there.add(worker)
        for index, need in enumerate(self.fleet.workers[worker].needs):
            taken[index] += need
