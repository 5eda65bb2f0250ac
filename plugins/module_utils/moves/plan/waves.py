"""Waves: the moves of a plan that run at the same time, and why a wave is not larger; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from .fleet import Fleet, Together
from .plan import Move
from .ruled_moves import keep_rules, refusals

# After this number of workers that cannot join a wave, no more are tried.
MOST_REFUSED = 64


class Wave(NamedTuple):
    """Moves that run at the same time; ``waits`` is the first worker that could not join them, and why."""

    moves: tuple[Move, ...]
    waits: str = ""
    reason: str = ""


def plan_waves(
    fleet: Fleet, plan: Sequence[Move], at: Mapping[str, str], most: int, *, return_home: bool = False
) -> list[Wave]:
    """Return the waves of a plan, with at most this number of moves; targets may change unless that gives more waves.

    A wave ends before the next one starts. The plan is another one if a move of it breaks a rule, or finds no memory:
    raise ``Infeasible`` without one.
    """
    plan = keep_rules(fleet, plan, at, return_home)
    grouped = list(_grouped(fleet, plan, dict(at), most))
    spread = _spread(fleet, list(dict.fromkeys(move.worker for move in plan)), at, most)
    if spread is None:
        return grouped
    waves = [*spread, *_back(fleet, spread, at, most)] if return_home else spread
    if any(refusals(fleet, [move for wave in waves for move in wave.moves], at)):
        return grouped  # With several vGPU profiles, room for a worker on its first host may not be sure.
    # Its reasons apply to every target of a worker.
    return waves if len(waves) <= len(grouped) else grouped


def _grouped(fleet: Fleet, plan: Sequence[Move], at: dict[str, str], most: int) -> Iterator[Wave]:
    """Yield the moves of a plan in its order: each joins those before it if it can."""
    together, reason = Together(fleet, at), ""
    for move in plan:
        reason = together.refusal(move) if together.moves else ""
        if reason or len(together.moves) == most:
            yield Wave(tuple(together.moves), move.worker if reason else "", reason)
            at = _after(at, together.moves)
            together = Together(fleet, at)
        together.add(move)
    if together.moves:
        yield Wave(tuple(together.moves))


def _spread(fleet: Fleet, workers: Collection[str], at: Mapping[str, str], most: int) -> list[Wave] | None:
    """Return waves in which each worker moves once, straight into free room; None if one finds no room."""
    waiting = sorted(workers, key=lambda worker: -fleet.workers[worker].needs[0])
    waves: list[Wave] = []
    while waiting:
        wave = _next_wave(Together(fleet, at), waiting, most)
        if not wave.moves:
            return None
        waves.append(wave)
        at = _after(at, wave.moves)
        waiting = [worker for worker in waiting if worker not in {move.worker for move in wave.moves}]
    return waves


def _next_wave(together: Together, waiting: Sequence[str], most: int) -> Wave:
    refused: list[tuple[str, str]] = []
    for worker in waiting:
        if len(together.moves) == most or len(refused) == MOST_REFUSED:
            break
        move, reason = _into_room(together, worker)
        if move is not None:
            together.add(move)
        else:
            refused.append((worker, reason))
    is_full = len(together.moves) == most
    # A move that is added later does not change the first refusal: it takes room and frees none.
    return Wave(tuple(together.moves), *(refused[0] if refused and not is_full else ()))


def _into_room(together: Together, worker: str) -> tuple[Move | None, str]:
    """Return the move of a worker into the smallest room that fits, or why no host takes it now."""
    source, reason = together.at[worker], "no other host has room for it until the others have moved"
    for host in together.open_hosts():
        if host != source and host in together.fleet.workers[worker].targets:
            move = Move(worker, source, host)
            reason = together.refusal(move)
            if not reason:
                return move, ""
    return None, reason


def _back(fleet: Fleet, waves: Sequence[Wave], at: Mapping[str, str], most: int) -> Iterator[Wave]:
    """Yield the way home, which is the way out in reverse: no other worker has taken the room of one that returns."""
    moves = [move for wave in waves for move in wave.moves]
    home = [Move(move.worker, move.target, move.source) for move in reversed(moves)]
    return _grouped(fleet, home, _after(at, moves), most)


def _after(at: Mapping[str, str], moves: Sequence[Move]) -> dict[str, str]:
    return {**at, **{move.worker: move.target for move in moves}}
