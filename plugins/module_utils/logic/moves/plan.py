# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Rolling moves: in which order every worker can move to another host when GPU slots are scarce.

A plan is the shortest there is: by construction for workers of one size that go home again or may go everywhere, by
search for a few workers of any kind. Only for many workers of odd sizes or with odd rules may it be longer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from .displacing import displacing
from .fleet import Fleet, Infeasible, PlacementError, Shortage, listed
from .problem import Problem, Step, Stuck, independent_parts, reachable
from .search import shortest
from .single import assignment, fill_and_return, one_move_each, trips

__all__ = ["Infeasible", "Move", "PlacementError", "Shortage", "plan_moves"]

MOST_WORKERS_TO_IMPROVE = 24


class Move(NamedTuple):
    """One worker goes from one host to another."""

    worker: str
    source: str
    target: str


def plan_moves(  # noqa: PLR0913 - each rule of a move has a name of its own
    slots: Mapping[str, int],
    at: Mapping[str, str],
    *,
    movable: Iterable[str] | None = None,
    demand: Mapping[str, int] | None = None,
    allowed: Mapping[str, Collection[str]] | None = None,
    return_home: bool = False,
    one_per_host: bool = False,
) -> list[Move]:
    """The shortest sequence that moves each movable worker at least once, only ever into slots that are free then.

    ``slots`` are those that a host has in all, ``at`` says where each worker is. Workers that are not ``movable`` stay
    where they are. ``one_per_host`` keeps a worker from going where another one is.
    """
    demands, permits = dict(demand or {}), dict(allowed or {})
    for what, given in (("demand", demands), ("allowed", permits)):
        _chosen(what, given, at)
    fleet = Fleet(
        slots=slots,
        at=at,
        chosen=_chosen("movable", at if movable is None else movable, at),
        demand={worker: demands.get(worker, 1) for worker in at},
        allowed={worker: frozenset(hosts) for worker, hosts in permits.items()},
        return_home=return_home,
        one_per_host=one_per_host,
    )
    fleet.check()
    names = list(slots)
    return [Move(fleet.chosen[worker], names[source], names[target]) for worker, source, target in _steps(fleet)]


def _chosen(what: str, wanted: Iterable[str], at: Mapping[str, str]) -> tuple[str, ...]:
    names = set(wanted)
    unknown = sorted(names.difference(at))
    if unknown:
        raise PlacementError(f"{what} names {listed(unknown)}, but not on which host that is.")
    return tuple(worker for worker in at if worker in names)


def _steps(fleet: Fleet) -> list[Step]:
    problem = fleet.problem()
    steps: list[Step] = []
    failures: list[Stuck] = []
    for part in independent_parts(problem):
        outcome = _outcome(problem.part(part))
        if isinstance(outcome, Stuck):
            failures.append(outcome.renumbered(part))
        else:
            steps += [Step(part[worker], source, target) for worker, source, target in outcome]
    if failures:
        raise fleet.infeasible(
            [fleet.chosen[worker] for stuck in failures for worker in stuck.workers],
            is_together=any(stuck.is_together for stuck in failures),
            is_proven=all(stuck.is_proven for stuck in failures),
        )
    return steps


def _outcome(problem: Problem) -> list[Step] | Stuck:
    try:
        return _solve(problem)
    except Stuck as stuck:
        return stuck


def _solve(problem: Problem) -> list[Step]:
    free = problem.free_at_start()
    homeless = [
        worker
        for worker, home in enumerate(problem.start)
        if problem.return_home and (home not in problem.targets[worker] or free[home] < 0)
    ]
    open_room = sum(free[host] for host in frozenset().union(*problem.targets) if free[host] > 0)
    too_large = [worker for worker, need in enumerate(problem.need) if need > open_room]
    if homeless or too_large:
        raise Stuck(homeless or too_large)
    return (
        _solve_single(problem) if problem.is_single else _searched(problem, problem.fewest_steps, displacing(problem))
    )


def _solve_single(problem: Problem) -> list[Step]:
    reached = reachable(problem)
    if len(reached) < len(problem.workers):
        raise Stuck(sorted(set(problem.workers).difference(reach.worker for reach in reached)))
    if problem.return_home:
        return trips(problem, reached)
    target = assignment(problem)
    # Whoever moves just once fits in with the others in the end: those whom no assignment fits must move twice.
    fewest = len(problem.workers) + target.count(None)
    quick = fill_and_return(problem) if None in target else None
    if quick is not None and len(quick) == fewest:
        return quick
    return _searched(problem, fewest, displacing(problem, one_move_each(problem, target)), quick)


def _searched(problem: Problem, fewest: int, *plans: list[Step] | None) -> list[Step]:
    known = min((plan for plan in plans if plan is not None), key=len, default=None)
    if known is not None and (len(known) == fewest or len(problem.workers) > MOST_WORKERS_TO_IMPROVE):
        return known
    return shortest(problem, known)
