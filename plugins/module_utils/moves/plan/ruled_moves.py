"""Sequential moves that keep the rules of the cluster and fit memory and CPU of each target; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .fleet import Fleet, Together
from .placement import Infeasible, listed
from .plan import Move
from .search import Search, SingleMoves
from .window import HASTE, Window, plan_window


def keep_rules(fleet: Fleet, plan: Sequence[Move], at: Mapping[str, str], return_home: bool) -> list[Move]:
    """Return the plan if each of its moves is allowed, otherwise another one for its workers; raise ``Infeasible``."""
    refused = next(refusals(fleet, plan, at), None)
    if refused is None:
        return list(plan)
    workers = list(dict.fromkeys(move.worker for move in plan))
    out = _by_hosts(fleet, at, workers) or _searched(fleet, at, workers, refused)
    # On the reversed way, each worker returns to room that no other one has taken since.
    home = [Move(move.worker, move.target, move.source) for move in reversed(out)] if return_home else []
    refused = next(refusals(fleet, [*out, *home], at), None)
    return [*out, *home] if refused is None else _searched(fleet, at, workers, refused, return_home=True)


def _by_hosts(fleet: Fleet, at: Mapping[str, str], workers: Sequence[str]) -> list[Move]:
    """Return moves of workers of several vGPU profiles that empty their hosts one after another; empty without them.

    For many workers, a search over single moves would be given up.
    """
    homes = sorted({at[worker] for worker in workers})
    has_others = any(at[name] in homes for name in at.keys() - set(workers))
    if has_others or not any(room.gpus for room in fleet.hosts.values()):
        return []
    try:
        return [move for change in plan_window(fleet, at, homes, fleet.hosts) for move in change.moves]
    except Infeasible:
        return []


def refusals(fleet: Fleet, plan: Sequence[Move], at: Mapping[str, str]) -> Iterator[str]:
    """Yield why a move of a plan is not allowed."""
    now = dict(at)
    for move in plan:
        reason = Together(fleet, now).refusal(move)
        if reason:
            yield f"{move.worker} -> {move.target}: {reason}"
        now[move.worker] = move.target


def _searched(
    fleet: Fleet, at: Mapping[str, str], workers: Sequence[str], refused: str, *, return_home: bool = False
) -> list[Move]:
    """Return other moves; raise ``Infeasible`` with the reason for which the first plan was refused."""
    window = Window.of(fleet, at, (), fleet.hosts)
    movers = sorted(window.workers.index(worker) for worker in workers)
    kinds = window.worker_kinds, window.host_kinds
    states = SingleMoves(window.places(at), movers, kinds, window.takers, return_home=return_home, oldest_first=True)
    search = Search(states)
    found = search.run(states.start, HASTE)
    if found is not None:
        steps = (node.step for node in found.path())
        return [Move(window.workers[worker], window.hosts[source], window.hosts[to]) for worker, source, to in steps]
    tries = f"none was found within {search.tried} tries, although one may exist"
    outcome = tries if search.is_exhausted else "there is none"
    names = [window.workers[worker] for worker in movers]
    raise Infeasible(
        f"{listed(names)} cannot all move by an order that keeps the rules and the memory of the hosts: {outcome}; "
        f"the one by GPU slots fails at {refused}",
        names,
    )
