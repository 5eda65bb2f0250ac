# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The plan of a maintenance window: the order of the hosts, and the moves that empty each of them; pure.

A worker that moves to a host whose change is done, or that needs none, does not move again. Each move keeps the rules
of the cluster, and fits GPU slots, memory and CPU of its target. The plan has the fewest moves, unless the search for a
shorter one was given up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from .fleet import Fleet
from .placement import Infeasible, listed
from .plan import Move
from .window_search import HASTE, State, Window, WindowSearch, steps_of, window_of

MOST_REASONS = 8


class EmptiedHost(NamedTuple):
    """A host that leaves service, and the moves that empty it before."""

    host: str
    moves: tuple[Move, ...]


def plan_window(
    fleet: Fleet, at: Mapping[str, str], hosts: Sequence[str], open_hosts: Collection[str]
) -> list[EmptiedHost]:
    """Return the hosts in the order of their changes, each with the moves that empty it; raise ``Infeasible``.

    ``open_hosts`` are those in service; another one takes workers after its change. The targets of a worker in the
    fleet are the hosts that it may use once they are in service.
    """
    window, start = window_of(fleet, at, set(hosts), open_hosts)
    search = WindowSearch(window, empty_first=True)
    found = search.run(start, HASTE)
    if found is None and not search.is_exhausted:
        search = WindowSearch(window)
        found = search.run(start, HASTE)
    if found is None:
        raise _infeasible(search, window, start)
    fewest = sum(place in set(hosts) for place in at.values())
    if found.moves > fewest:
        found = WindowSearch(window).run(start, 1, found.moves) or found
    plan, now = [], dict(at)
    for host, moves in steps_of(found):
        named = [(window.workers[worker], window.hosts[target]) for worker, target in moves]
        plan.append(EmptiedHost(window.hosts[host], tuple(Move(name, now[name], target) for name, target in named)))
        now.update(named)
    return plan


def _infeasible(search: WindowSearch, window: Window, start: State) -> Infeasible:
    """Return the error with the workers for which no host was found, each with its present host.

    The search tries only one of several workers that can be exchanged.
    """
    names = listed(window.hosts[host] for host in sorted(window.changed))
    stuck = search.stuck[min(search.stuck)] if search.stuck else {}
    alike = {window.place_of(worker, start) for worker in stuck}
    named = [worker for worker in range(len(window.workers)) if window.place_of(worker, start) in alike]
    workers = listed(f"{window.workers[worker]} on {window.hosts[start.at[worker]]}" for worker in named)
    reasons = sorted(set().union(*stuck.values()))
    more = [f"{len(reasons) - MOST_REASONS} more"] if len(reasons) > MOST_REASONS else []
    missing = ", ".join([*reasons[:MOST_REASONS], *more]) or "no other host in service"
    reason = f"no other host has room for {workers} ({missing})"
    remedy = "free a slot, add a spare host, or leave a host out"
    if search.is_exhausted:
        return Infeasible(
            f"no order that empties {names} was found within {search.tried} tries, although one may exist: in the best "
            f"one, {reason}; {remedy}"
        )
    return Infeasible(f"no order empties {names}: {reason}; {remedy}")
