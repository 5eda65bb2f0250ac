"""A requested rolling move with the names of workers and hosts, and the errors that refuse it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from .problem import Problem

MOST_NAMES_SHOWN = 5


class Shortage(NamedTuple):
    """A host that a stuck worker may use: the needed slots, the free slots before any move, and all slots."""

    host: str
    needed: int
    free: int
    slots: int


class PlacementError(ValueError):
    """A placement contains unknown names or impossible numbers."""


class Infeasible(ValueError):
    """No order of moves is possible: ``workers`` cannot move because of the ``shortages`` on these hosts."""

    def __init__(self, message: str, workers: Iterable[str] = (), shortages: Iterable[Shortage] = ()) -> None:
        super().__init__(message)
        self.workers = tuple(workers)
        self.shortages = tuple(shortages)


@dataclass(frozen=True)
class RollingPlacement:
    """A placement of workers on hosts and the rules for moving the chosen ones."""

    slots: Mapping[str, int]
    at: Mapping[str, str]
    chosen: tuple[str, ...]
    demand: Mapping[str, int]
    allowed: Mapping[str, frozenset[str]]
    return_home: bool
    one_per_host: bool

    def guests(self) -> dict[str, list[str]]:
        guests: dict[str, list[str]] = {host: [] for host in self.slots}
        for worker, host in self.at.items():
            guests[host].append(worker)
        return guests

    def check(self) -> None:
        """Refuse invalid numbers, unknown hosts, and hosts whose workers take more slots than they have."""
        for what, numbers, least in (("slots", self.slots, 0), ("demand", self.demand, 1)):
            for name, number in numbers.items():
                if isinstance(number, bool) or not isinstance(number, int) or number < least:
                    raise PlacementError(
                        f"The {what} of {name} is {number!r}: expected a whole number from {least} up."
                    )
        for worker, host in self.at.items():
            unknown = {host, *self.allowed.get(worker, ())}.difference(self.slots)
            if unknown:
                raise PlacementError(
                    f"The worker {worker} is on or may go to {listed(sorted(unknown))}, whose slots are not given."
                )
        for host, guests in self.guests().items():
            self._check_room(host, guests)

    def _check_room(self, host: str, guests: list[str]) -> None:
        used = sum(self.demand[worker] for worker in guests)
        if used > self.slots[host]:
            raise Infeasible(
                f"The host {host} has {_slots(self.slots[host])}, but {listed(guests)} on it take {used}: "
                "correct the slots, the demand or the placement.",
                guests,
                [Shortage(host, used, 0, self.slots[host])],
            )

    def problem(self) -> Problem:
        """Return the placement in numbers: hosts in the order of ``slots``, workers in the order of ``chosen``."""
        room = self._room()
        need = [1 if self.one_per_host else self.demand[worker] for worker in self.chosen]
        if need and min(need) == max(need):
            room = {host: number // need[0] for host, number in room.items()}
            need = [1] * len(need)
        number_of = {host: number for number, host in enumerate(self.slots)}

        @lru_cache(maxsize=None)
        def targets(allowed: frozenset[str] | None, demand: int, units: int) -> frozenset[int]:
            hosts = self.slots if allowed is None else allowed
            return frozenset(number_of[host] for host in hosts if self.slots[host] >= demand and room[host] >= units)

        return Problem(
            tuple(room.values()),
            tuple(number_of[self.at[worker]] for worker in self.chosen),
            tuple(need),
            tuple(targets(self.allowed.get(w), self.demand[w], units) for w, units in zip(self.chosen, need)),
            self.return_home,
        )

    def _room(self) -> dict[str, int]:
        """Return the room on each host for the chosen workers: in workers with one per host, otherwise in slots."""
        chosen = set(self.chosen)
        room = {host: 1 if self.one_per_host else number for host, number in self.slots.items()}
        for worker, host in self.at.items():
            if worker not in chosen:
                room[host] -= 1 if self.one_per_host else self.demand[worker]
        return room

    def infeasible(self, stuck: list[str], is_together: bool, is_proven: bool) -> Infeasible:
        """Return the error that names the workers that cannot move, the shortages and the remedy."""
        guests = self.guests()
        homeless = [worker for worker in stuck if self.return_home and not self._may_return(worker, guests)]
        if homeless:
            return self._homeless(homeless)
        shortages = self._shortages(stuck, guests)
        sizes = sorted({self.demand[worker] for worker in stuck})
        needs = f"{listed(stuck)} cannot {'all ' if is_together else ''}move: "
        if not shortages:
            return Infeasible(f"{needs}there is no other host that may take them. {_remedy(sizes[-1])}", stuck)
        hosts = listed(self._shortage_text(shortage, guests) for shortage in shortages)
        verdict = "no order of moves makes room" if is_proven else "no order of moves that makes room was found"
        return Infeasible(
            f"{needs}a move needs {'' if len(sizes) == 1 else f'{sizes[0]} to '}{_slots(sizes[-1])} free on another "
            f"host, but of those that may take them {hosts}, and {verdict}. {_remedy(sizes[-1])}",
            stuck,
            shortages,
        )

    def _may_return(self, worker: str, guests: Mapping[str, list[str]]) -> bool:
        home = self.at[worker]
        return home in self.allowed.get(worker, (home,)) and not (self.one_per_host and len(guests[home]) > 1)

    def _homeless(self, homeless: list[str]) -> Infeasible:
        worker, home = homeless[0], self.at[homeless[0]]
        is_allowed = home in self.allowed.get(worker, (home,))
        reason = "another worker runs on it too" if is_allowed else "its allowed hosts do not include it"
        return Infeasible(
            f"{listed(homeless)} cannot move and return: {worker} runs on {home} at first, but {reason}. "
            "Change that, or plan without the return.",
            homeless,
        )

    def _shortages(self, stuck: list[str], guests: Mapping[str, list[str]]) -> list[Shortage]:
        needed: dict[str, int] = {}
        for worker in stuck:
            for host in self.allowed.get(worker, self.slots):
                if host != self.at[worker]:
                    needed[host] = min(self.demand[worker], needed.get(host, self.demand[worker]))
        return [
            Shortage(host, needed[host], number - sum(self.demand[worker] for worker in guests[host]), number)
            for host, number in self.slots.items()
            if host in needed
        ]

    def _shortage_text(self, shortage: Shortage, guests: Mapping[str, list[str]]) -> str:
        on_host = guests[shortage.host]
        taken = f" and {listed(on_host)} on it" if self.one_per_host and on_host else ""
        return f"{shortage.host} has {shortage.free} of {shortage.slots} free{taken}"


def listed(names: Iterable[str]) -> str:
    """Return names for a sentence: the first ones, and the number of the others if there are many."""
    shown = list(names)
    if len(shown) > MOST_NAMES_SHOWN + 1:
        shown = [*shown[:MOST_NAMES_SHOWN], f"{len(shown) - MOST_NAMES_SHOWN} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _remedy(demand: int) -> str:
    return (
        f"Add a spare host with {_slots(demand)} of this profile that they may go to, "
        "or power off a worker on one of these hosts."
    )


def _slots(number: int) -> str:
    return "1 GPU slot" if number == 1 else f"{number} GPU slots"
