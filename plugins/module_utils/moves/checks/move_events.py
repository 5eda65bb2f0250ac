"""Moves of a worker, from any user, read from the events of vCenter; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, TypedDict

from ...continuity.judged_facts import Move, PowerEvent, WorkerPlace

HOT = "VmBeingHotMigratedEvent"
# Encrypted moves, the default if both hosts support encryption, have an EventEx of this type instead.
HOT_ENCRYPTED = "com.vmware.vc.vm.VmHotMigratingWithEncryptionEvent"
BEGAN = (HOT, HOT_ENCRYPTED, "VmEmigratingEvent", "VmBeingMigratedEvent", "VmBeingRelocatedEvent")
MOVED = ("VmMigratedEvent", "DrsVmMigratedEvent", "VmRelocatedEvent")
FAILED = ("VmFailedMigrateEvent", "VmRelocateFailedEvent")
POWER = ("VmPoweredOffEvent", "VmResettingEvent", "VmStartingEvent", "VmPoweredOnEvent", "VmGuestRebootEvent")
CYCLE_SECONDS = 60.0
KINDS = (*BEGAN, *MOVED, *FAILED, *POWER)


class MoveEvent(TypedDict):
    """An event about a worker; ``chain`` is the number that a task's events share."""

    kind: str
    at: str
    chain: int
    by: str
    source: str
    target: str
    text: str


class TimedEvent(MoveEvent):
    """An event with its time on the controller's clock."""

    time: float


def moves(worker: str, events: Iterable[TimedEvent]) -> list[Move]:
    """Return the moves in the order of their start, one for each chain of events."""
    chains: dict[int, list[TimedEvent]] = {}
    for event in events:
        if event["kind"] not in POWER:
            chains.setdefault(event["chain"], []).append(event)
    return [_move(worker, chain) for chain in chains.values()]


def power(worker: str, events: Iterable[TimedEvent]) -> list[PowerEvent]:
    """Return each power cycle of the worker or boot of its guest, with its time, user and events.

    The events of one cycle, such as off and on, follow each other within a minute and differ in kind.
    """
    cycles: list[list[TimedEvent]] = []
    for event in events:
        if event["kind"] in POWER:
            last = cycles[-1] if cycles else []
            goes_on = last and event["time"] - last[-1]["time"] <= CYCLE_SECONDS
            if goes_on and event["kind"] not in {earlier["kind"] for earlier in last}:
                last.append(event)
            else:
                cycles.append([event])
    return [
        {
            "worker": worker,
            "at": cycle[0]["time"],
            "by": _first(cycle, "by"),
            "what": ", ".join(str(event["kind"]) for event in cycle),
        }
        for cycle in cycles
    ]


def moves_of_others(every: Iterable[Move], own: Iterable[Move], ranks: Mapping[str, Sequence[int]]) -> list[Move]:
    """Return the moves that others started, ready for the verdict, with the ranks on their workers."""
    chains = {move.get("chain") for move in own}
    others = [move for move in every if move["chain"] not in chains]
    return [{**move, "external": True, "ranks": list(ranks.get(move["worker"], []))} for move in others]


def is_hot(kinds: Collection[str]) -> bool | None:
    """Return True if an event reports a hot migration; None if none does, because no event reports the opposite."""
    return True if {HOT, HOT_ENCRYPTED} & set(kinds) else None


def is_encrypted(kinds: Collection[str]) -> bool | None:
    """Return whether a hot migration was encrypted; None if no event reports one."""
    return HOT_ENCRYPTED in kinds if is_hot(kinds) else None


def has_booted(before: WorkerPlace, after: WorkerPlace) -> bool:
    """Return whether a worker is off or was powered on between two readings.

    vCenter forgets the boot time of a machine when the machine moves: a missing time has no meaning.
    """
    earlier, later = before["powered_on"], after["powered_on"]
    return after["power"] != "on" or (earlier is not None and later is not None and earlier != later)


def _move(worker: str, chain: Sequence[TimedEvent]) -> Move:
    end = next((event for event in chain if event["kind"] in (*MOVED, *FAILED)), None)
    is_ok = end is not None and end["kind"] in MOVED
    source, target = _first(chain, "source"), _first(chain, "target")
    first, kinds = chain[0], {event["kind"] for event in chain}
    return {
        "worker": worker,
        "source": source,
        "target": target,
        "started": first["time"],
        "completed": end["time"] if end else None,
        "ok": is_ok,
        "said": end["text"] if end and not is_ok else "",
        "by": _first(chain, "by"),
        "chain": first["chain"],
        "events": list(chain),
        "vsphere": {
            # Storage-only relocations have no such event either.
            "hot_migration": is_hot(kinds),
            "encrypted": is_encrypted(kinds),
            "power_cycled": False,
            "host": {"before": source, "after": target if is_ok else source},
        },
    }


def _first(chain: Iterable[TimedEvent], key: Literal["by", "source", "target"]) -> str:
    return next((str(event[key]) for event in chain if event.get(key)), "")
