"""Observations other than the records: the launcher, the transport, each move in vSphere, and power cycles."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from .judged_facts import JobFacts, Move
from .limits import Breach
from .move_windows import before_and_after, is_external, moment, move_name, ranks_of
from .step_records import Track

NOT_PROVEN = ("", "unproven")
NO_RANK = "no rank of the job runs on it"
# The identity of a process.
LAUNCHER = ("host", "pid", "start", "boot_id")


def evidence_of(facts: JobFacts, name: str, moves: Sequence[Move]) -> list[Mapping[str, object] | None]:
    """Return the observations of a kind, one for each move, None for a missing one."""
    given = facts.get(name)
    each = list(given) if isinstance(given, (list, tuple)) else []
    each += [None] * len(moves)
    return [observed if isinstance(observed, Mapping) else None for observed in each[: len(moves)]]


def fact_breaches(facts: JobFacts, moves: Sequence[Move]) -> Iterator[Breach]:
    """Yield the breaches that no step record shows."""
    for key, was, became in _launcher_pairs(facts):
        if was != became:
            yield Breach("identity", None, None, None, f"launcher: {key} {was} became {became}")
    yield from _transport_breaches(facts, moves)
    pods = facts.get("pods")
    yield from (
        Breach("identity", None, None, None, str(reported)) for reported in (pods if isinstance(pods, list) else ())
    )
    given = facts.get("checksums")
    known = given.items() if isinstance(given, Mapping) else ()
    parameters = {str(whose): str(checksum) for whose, checksum in known if checksum is not None}
    if len(set(parameters.values())) > 1:
        result = ", ".join(f"{whose} {one[:12]}" for whose, one in sorted(parameters.items()))
        yield Breach("parameters", None, None, None, f"the ranks ended with different parameters: {result}")


def _transport_breaches(facts: JobFacts, moves: Sequence[Move]) -> Iterator[Breach]:
    """Yield the changes of the verified transport, during a move or between two moves."""
    known: dict[str, tuple[str, str]] = {}
    for index, observed in enumerate(evidence_of(facts, "transport", moves)):
        name = move_name(moves, index)
        for whose, old, new in _transports(observed):
            if old is not None and new is not None and old != new:
                detail = f"{name}: the transport{whose} was {old} before and is {new} after"
                yield Breach("transport", None, None, moment(moves[index].get("completed")), detail)
            first = old if old is not None else new
            earlier = known.get(whose) or known.get("") or (next(iter(known.values()), None) if not whose else None)
            if first is not None and earlier and earlier[0] != first:
                detail = f"{name}: the transport{whose} was {earlier[0]} after {earlier[1]} and is {first} now"
                yield Breach("transport", None, None, moment(moves[index].get("started")), detail)
            last = new if new is not None else old
            if last is not None:
                known[whose] = (last, name)


def missing_facts(facts: JobFacts, moves: Sequence[Move], require: Collection[str]) -> Iterator[str]:
    """Yield the required observations that are missing or incomplete."""
    jump = moment(facts.get("server_clock_set_s"))
    if jump and "vsphere" in require:
        yield f"vsphere: vCenter's clock was set by {jump:.0f} s: its events may be missing, or have the wrong time"
    for name in sorted(require):
        if facts.get(name) is None:
            yield name
        elif name == "launcher":
            seen = {key for key, _old, _new in _launcher_pairs(facts)}
            if lacking := [key for key in LAUNCHER if key not in seen]:
                yield f"launcher: not observed both before and after: {', '.join(lacking)}"
        elif name in ("transport", "vsphere"):
            yield from _missing_of_moves(facts, moves, name)


def _missing_of_moves(facts: JobFacts, moves: Sequence[Move], name: str) -> Iterator[str]:
    missing = _missing_transport if name == "transport" else _missing_vsphere
    for index, observed in enumerate(evidence_of(facts, name, moves)):
        # This test had no reason to observe anything before a move that another user started.
        if not is_external(moves[index]) and not (_was_refused(moves[index]) and _stayed_on(facts, name)):
            yield from (f"{name}: {move_name(moves, index)}: {what}" for what in missing(observed, moves[index]))


def _was_refused(move: Move) -> bool:
    """Return whether a move never started, so that there is nothing to compare before and after it."""
    return not move.get("ok") and moment(move.get("started")) is None


def _stayed_on(facts: JobFacts, name: str) -> bool:
    """Return whether power events, which show that the worker stayed on, are known if this observation needs them."""
    return name == "transport" or facts.get("power") is not None


def _launcher_pairs(facts: JobFacts) -> Iterator[tuple[str, str, str]]:
    before, after = before_and_after(facts.get("launcher"))
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key, old in before.items():
            if old is not None and after.get(key) is not None:
                yield key, str(old), str(after[key])


def _transports(observed: Mapping[str, object] | None) -> Iterator[tuple[str, str | None, str | None]]:
    before, after = before_and_after(observed)
    if before and after and isinstance(before, Mapping) and isinstance(after, Mapping):
        for who in sorted({*before, *after}, key=str):
            yield f" of {who}", _proven(before.get(who)), _proven(after.get(who))
    else:
        yield "", _proven(before), _proven(after)


def _proven(transport: object) -> str | None:
    return transport if isinstance(transport, str) and transport not in NOT_PROVEN else None


def _missing_transport(observed: Mapping[str, object] | None, _move: Move) -> Iterator[str]:
    for whose, old, new in _transports(observed):
        when = [name for name, value in (("before", old), ("after", new)) if value is None]
        if when:
            yield f"the transport{whose} {' and '.join(when)} was not verified"


def _missing_vsphere(observed: Mapping[str, object] | None, move: Move) -> Iterator[str]:
    observed = observed or {}
    if observed.get("power_cycled") is None:
        yield "power cycles not observed"
    if not move.get("ok"):
        return  # a failed move need not leave the traces of a move
    if observed.get("hot_migration") is None:
        yield "hot migration event not observed"
    if None in before_and_after(observed.get("host")):
        yield "host not observed before and after"
    gpus_before, gpus_after = (_listed(one) for one in before_and_after(observed.get("gpus")))
    if gpus_before is None or gpus_after is None:
        yield "GPUs not observed before and after"
    elif len(gpus_before) != len(gpus_after):
        yield f"{len(gpus_before)} GPUs observed before and {len(gpus_after)} after"


def _listed(value: object) -> list[object] | None:
    return list(value) if isinstance(value, (list, tuple)) else None


class Power(NamedTuple):
    """The power events of the workers, sorted by their effect on the job."""

    breaches: list[Breach]
    missing: list[str]
    notes: list[str]


def judge_power(facts: JobFacts, moves: Sequence[Move], tracks: Sequence[Track], ended: str) -> Power:
    """Return the power cycles that hit the job, those that may have hit it, and the others."""
    found, workers = Power([], [], []), _Workers(facts, moves, tracks)
    for index, observed in enumerate(evidence_of(facts, "vsphere", moves)):
        if observed is not None and observed.get("power_cycled"):
            detail = f"{move_name(moves, index)}: the virtual machine was power-cycled"
            at = moment(moves[index].get("completed"))
            if workers.run_ranks(moves[index].get("worker")) is False:
                found.notes.append(f"{detail}; {NO_RANK}")
            else:
                found.breaches.append(Breach("power_cycle", None, None, at, detail))
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
        found.notes.append(f"{detail}; {NO_RANK}")
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
