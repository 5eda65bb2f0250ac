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
from .search import Node, Search
from .window_search import HASTE, State, Window, WindowStates

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
    window = Window.of(fleet, at, hosts, open_hosts)
    start = Node(State(window.places(at), window.changed))
    states = WindowStates(window, empty_first=True)
    search = Search(states)
    found = search.run(start, HASTE)
    if found is None and not search.is_exhausted:
        states = WindowStates(window)
        search = Search(states)
        found = search.run(start, HASTE)
    if found is None:
        raise _infeasible(search, states, start.state.at)
    if found.moves > sum(place in hosts for place in at.values()):
        found = Search(WindowStates(window)).run(start, 1, found.moves) or found
    plan: list[EmptiedHost] = []
    for node in found.path():
        if isinstance(node.step, int):
            plan.append(EmptiedHost(window.hosts[node.step], ()))
        else:
            worker, source, target = node.step
            move = Move(window.workers[worker], window.hosts[source], window.hosts[target])
            plan[-1] = EmptiedHost(plan[-1].host, (*plan[-1].moves, move))
    return plan


def _infeasible(search: Search, states: WindowStates, at: Sequence[int]) -> Infeasible:
    """Return the error with the workers for which no host was found, each with its present host.

    The search tries only one of several workers that can be exchanged.
    """
    window = states.window
    names = listed(window.hosts[host] for host in sorted(window.changed))
    stuck = states.stuck[min(states.stuck)] if states.stuck else {}
    alike = {window.place_of(worker, at) for worker in stuck}
    named = [worker for worker in range(len(window.workers)) if window.place_of(worker, at) in alike]
    workers = listed(f"{window.workers[worker]} on {window.hosts[at[worker]]}" for worker in named)
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
