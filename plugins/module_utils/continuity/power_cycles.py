"""Power cycles: whether a virtual machine with a rank was powered off or reset while the job trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .judged_facts import JobFacts, Move
from .limits import Breach
from .move_windows import moment, move_name, ranks_of
from .observations import evidence_of
from .track import Track


class Power(NamedTuple):
    """The power events of the workers, sorted by their effect on the job."""

    breaches: list[Breach]
    missing: list[str]
    notes: list[str]


def judge_power(facts: JobFacts, moves: Sequence[Move], tracks: Sequence[Track], ended: str) -> Power:
    """Return the power cycles that hit the job, those that may have hit it, and the others."""
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
    event: Mapping[str, object], workers: _Workers, tracks: Sequence[Track], ended: str, found: Power
) -> None:
    worker, at = event.get("worker"), moment(event.get("at"))
    detail = f"{worker} was power-cycled by {event.get('by') or 'an unknown user'} ({event.get('what')})"
    runs = workers.run_ranks(worker)
    if runs is False:
        found.notes.append(f"{detail}; no rank of the job runs on it")
    elif at is not None and tracks and at < min(track.first.at for track in tracks):
        found.notes.append(f"{detail}; that was before the first step")
    elif at is not None and tracks and ended == "finished" and at > max(track.last.at for track in tracks):
        found.notes.append(f"{detail}; that was after the last step")
    elif runs is None:
        found.missing.append(f"power: {detail}, and it is not known whether a rank runs on it")
    else:
        found.breaches.append(Breach("power_cycle", None, None, at, detail))


class _Workers:
    """The workers on which ranks run, from the facts, the moves, and the host names that ranks report.

    vSphere and guests write one name in several ways, so names are compared without case and domain. An empty list of
    ranks in a move shows nothing: a guest whose name differs from that of its machine may have been missed.
    """

    def __init__(self, facts: JobFacts, moves: Sequence[Move], tracks: Sequence[Track]) -> None:
        given = facts.get("ranks")
        known = given.items() if isinstance(given, Mapping) else ()
        listed = [{"worker": name, "ranks": ranks} for name, ranks in known]
        self._ranks: dict[str, frozenset[int]] = {}
        for entry in (*listed, *moves):
            name = _short(entry.get("worker"))
            self._ranks[name] = self._ranks.get(name, frozenset()) | ranks_of(entry)
        self._idle = {_short(name) for name, ranks in known if isinstance(ranks, (list, tuple)) and not ranks}
        hosts = [track.first.identity.get("host") for track in tracks]
        self._hosts = {_short(host) for host in hosts if host}
        placed = {rank for ranks in self._ranks.values() for rank in ranks}
        each_is_placed = {track.rank for track in tracks} <= placed
        each_is_named = all(hosts) and self._hosts <= set(self._ranks)
        self._is_whole = bool(tracks) and (each_is_placed or each_is_named)

    def run_ranks(self, worker: object) -> bool | None:
        """Return whether a rank runs on a worker; None if it is unknown where every rank runs."""
        name = _short(worker)
        if self._ranks.get(name) or name in self._hosts:
            return True
        return False if self._is_whole or name in self._idle else None


def _short(name: object) -> str:
    first, _dot, domain = str(name).lower().partition(".")
    # Addresses of one network share their first part.
    return f"{first}.{domain}" if first.isdigit() else first
