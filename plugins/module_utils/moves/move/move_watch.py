"""The observed host and GPUs of a worker, and vCenter's events about its moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from ...continuity.judged_facts import Move, PowerEvent, WorkerPlace
from ...core.names import short_name
from ...vsphere import properties
from ...vsphere.faults import translating_faults, words
from ...vsphere.sdk import ApiObject, vim
from ...vsphere.session import Session
from ...workers import existing_workers
from ...workers.capacity import host_capacity as capacity
from ..checks import move_events
from ..checks.move_events import KINDS, MOVED, POWER, MoveEvent, TimedEvent, has_booted
from ..plan.results import ServerMoves
from . import clock_offset, rolling_moves

MACHINE = ("runtime.host", "runtime.powerState", "runtime.bootTime", "config.migrateEncryption")


@dataclass(frozen=True)
class WorkerRuntime:
    """The host of a worker, its physical GPUs as HOST/ADDRESS, its power state and the time of its last boot.

    ``encryption`` applies to its moves: required, opportunistic (if both hosts support it) or disabled.
    """

    host: str
    gpus: tuple[str, ...]
    power: str
    powered_on: str | None
    encryption: str

    @property
    def plain(self) -> WorkerPlace:
        return {
            "host": self.host,
            "gpus": list(self.gpus),
            "power": self.power,
            "powered_on": self.powered_on,
            "encryption": self.encryption,
        }


def runtime_of(session: Session, ref: ApiObject) -> WorkerRuntime:
    """Return the current host, GPUs and power state of the worker, in two reads."""
    values = properties.read_many(session, [ref], MACHINE)[ref._moId]
    host = values["runtime.host"]
    paths = ("name", "config.graphicsInfo", *capacity.binding_paths(session.api_version))
    facts = properties.read_many(session, [host], paths)[host._moId]
    addresses = [address for address, vms in capacity.users(facts).items() if ref._moId in vms]
    booted = values.get("runtime.bootTime")
    return WorkerRuntime(
        host=facts["name"],
        gpus=tuple(f"{facts['name']}/{address}" for address in sorted(addresses)),
        power="on" if values["runtime.powerState"] == "poweredOn" else "off",
        powered_on=booted.isoformat(timespec="seconds") if booted else None,
        encryption=str(values.get("config.migrateEncryption") or ""),
    )


def chosen(
    session: Session, cluster: str, names: Sequence[str] | None, guests: Sequence[str] = ()
) -> dict[str, ApiObject]:
    """Return the machines of workers of a cluster, by name, and those of guests that are workers of other clusters."""
    refs = existing_workers.worker_refs(session, cluster)
    selected = {name: refs[name] for name in rolling_moves.select_workers(cluster, list(refs), names)}
    others = existing_workers.refs_elsewhere(session, cluster) if guests else {}
    return {**selected, **{name: others[short_name(name)] for name in guests if short_name(name) in others}}


def moves_since(session: Session, refs: Mapping[str, ApiObject], moment: float) -> ServerMoves:
    """Return moves and power changes of workers since a time; all times are on the controller's clock."""
    offset = clock_offset.measure(session)
    begin = datetime.fromtimestamp(moment + offset.seconds, timezone.utc)
    moves, power = list[Move](), list[PowerEvent]()
    for name in refs:
        events: list[TimedEvent] = [
            {**event, "time": offset.on_controller(datetime.fromisoformat(event["at"]))}
            for event in events_since(session, refs[name], name, begin)
        ]
        moves += move_events.moves(name, events)
        power += move_events.power(name, events)
    return {
        "moves": sorted(moves, key=lambda move: move["started"] or 0.0),
        "power": power,
        "clock_offset_s": offset.seconds,
        "places": {name: runtime_of(session, ref).plain for name, ref in refs.items()},
    }


def events_since(session: Session, ref: object, name: str, since: datetime) -> list[MoveEvent]:
    """Return the events about the worker since a time, oldest first."""
    entity = vim.event.EventFilterSpec.ByEntity(entity=ref, recursion="self")
    time = vim.event.EventFilterSpec.ByTime(beginTime=since)
    with translating_faults(name, "read its events"):
        events = session.content.eventManager.QueryEvents(
            vim.event.EventFilterSpec(entity=entity, time=time, eventTypeId=list(KINDS))
        )
    return [_plain(event) for event in sorted(events or [], key=lambda event: event.key)]


def of_chain(events: Sequence[MoveEvent], chain: int) -> list[MoveEvent]:
    return [event for event in events if event["chain"] == chain]


def power_cycled(before: WorkerRuntime, after: WorkerRuntime, events: Sequence[MoveEvent]) -> bool:
    """Return whether the worker was powered off or booted in between."""
    return has_booted(before.plain, after.plain) or any(event["kind"] in POWER for event in events)


def _plain(event: ApiObject) -> MoveEvent:
    kind = getattr(event, "eventTypeId", None) or type(event).__name__.rsplit(".", maxsplit=1)[-1]
    reason = getattr(event, "reason", None)
    return {
        "kind": kind,
        "at": event.createdTime.isoformat(),
        "chain": event.chainId,
        "by": event.userName or "",
        "source": _name_of(getattr(event, "sourceHost", None) or (None if kind in MOVED else event.host)),
        "target": _name_of(getattr(event, "destHost", None) or (event.host if kind in MOVED else None))
        or _argument(event, "destHost"),
        "text": words(reason) if reason is not None else event.fullFormattedMessage or kind,
    }


def _argument(event: object, key: str) -> str:
    """Return the argument of an EventEx with this key; a host is given as its reference or its name."""
    value = next((item.value for item in getattr(event, "arguments", None) or [] if item.key == key), None)
    return str(getattr(value, "name", value) or "")


def _name_of(host: ApiObject) -> str:
    return str(host.name) if host else ""
