"""Observations other than the records: the launcher, the transport, and the vSphere facts of each move."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from .judged_facts import JobFacts, Move
from .limits import Breach
from .move_windows import before_and_after, is_external, moment, move_name

NOT_PROVEN = ("", "unproven")
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


def _listed(value: object) -> list[Any] | None:
    return list(value) if isinstance(value, (list, tuple)) else None
