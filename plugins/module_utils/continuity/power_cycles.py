# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Power: whether a virtual machine on which a rank runs was switched off or reset while the job trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .limits import Breach
from .move_windows import moment, move_name, ranks_of
from .observations import evidence_of
from .step_records import Track


class Power(NamedTuple):
    """What the power events of the workers say about the job."""

    breaches: list[Breach]
    missing: list[str]
    notes: list[str]


def judge_power(
    facts: Mapping[str, Any], moves: Sequence[Mapping[str, Any]], tracks: Sequence[Track], ended: str
) -> Power:
    """The power cycles that hit the job, those of which that is not known, and those that did not."""
    found = Power([], [], [])
    for index, observed in enumerate(evidence_of(facts, "vsphere", moves)):
        if observed is not None and observed.get("power_cycled"):
            detail = f"{move_name(moves, index)}: the virtual machine was power-cycled"
            at = moment(moves[index].get("completed"))
            found.breaches.append(Breach("power_cycle", None, None, at, detail))
    workers = _Workers(facts, moves, tracks)
    given = facts.get("power")
    for one in given if isinstance(given, (list, tuple)) else []:
        if isinstance(one, Mapping):
            _judge_event(one, workers, tracks, ended, found)
    return found


def _judge_event(
    event: Mapping[str, Any], workers: _Workers, tracks: Sequence[Track], ended: str, found: Power
) -> None:
    worker, at = event.get("worker"), moment(event.get("at"))
    detail = f"{worker} was power-cycled by {event.get('by') or 'somebody'} ({event.get('what')})"
    runs = workers.run_ranks(worker)
    if runs is False:
        found.notes.append(f"{detail}; no rank of the job runs on it")
    elif at is not None and tracks and at < min(track.lines[0].at for track in tracks):
        found.notes.append(f"{detail}; that was before the first step")
    elif at is not None and tracks and ended == "finished" and at > max(track.lines[-1].at for track in tracks):
        found.notes.append(f"{detail}; that was after the last step")
    elif runs is None:
        found.missing.append(f"power: {detail}, and it is not known whether a rank runs on it")
    else:
        found.breaches.append(Breach("power_cycle", None, None, at, detail))


class _Workers:
    """Which workers have ranks, by what was observed of them, by the moves, and by the names of the ranks' hosts."""

    def __init__(self, facts: Mapping[str, Any], moves: Sequence[Mapping[str, Any]], tracks: Sequence[Track]) -> None:
        given = facts.get("ranks")
        told = given.items() if isinstance(given, Mapping) else ()
        known = [{"worker": worker, "ranks": ranks} for worker, ranks in told]
        every = [one for one in (*known, *moves) if one.get("ranks") is not None]
        self._ranks = {str(one.get("worker")): ranks_of(one) for one in every}
        self._hosts = {_short(line.raw["host"]) for track in tracks for line in track.lines[:1] if line.raw.get("host")}
        heard = {track.rank for track in tracks}
        self._is_whole = bool(heard) and heard <= {rank for ranks in self._ranks.values() for rank in ranks}
        all_named = all(track.lines[0].raw.get("host") for track in tracks)
        alike = any(ranks and _short(worker) in self._hosts for worker, ranks in self._ranks.items())
        # A rank that does not name its host may run anywhere.
        self._named_alike = all_named and alike

    def run_ranks(self, worker: object) -> bool | None:
        """Whether a rank runs on a worker; None where neither moves nor names tell."""
        if str(worker) in self._ranks:
            return bool(self._ranks[str(worker)])
        if _short(worker) in self._hosts:
            return True
        # Where every rank is on a known worker, or guests bear the names of their workers, no rank is on any other.
        return False if self._is_whole or self._named_alike else None


def _short(name: object) -> str:
    return str(name).partition(".")[0].lower()
