# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The observed host and GPUs of a worker, and vCenter's events about its moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from ...vsphere import properties
from ...vsphere.faults import translating_faults
from ...vsphere.sdk import vim
from ...vsphere.session import Session
from ...workers.capacity import host_capacity as capacity
from ..checks.move_events import KINDS, MOVED, POWER, has_booted

MACHINE = ("runtime.host", "runtime.powerState", "runtime.bootTime", "config.migrateEncryption")


@dataclass(frozen=True)
class Place:
    """The host on which a worker runs, the physical GPUs under it as HOST/ADDRESS, since when it is powered on.

    ``encryption`` is what its moves must have: required, opportunistic (where both hosts can), disabled.
    """

    host: str
    gpus: tuple[str, ...]
    power: str
    powered_on: str | None
    encryption: str

    @property
    def plain(self) -> dict[str, Any]:
        """The place as plain data."""
        return {**asdict(self), "gpus": list(self.gpus)}


def place(session: Session, ref: Any) -> Place:
    """The current host, GPUs and power of the worker, in two reads."""
    values = properties.read_many(session, [ref], MACHINE)[ref._moId]
    host = values["runtime.host"]
    there = properties.read_many(session, [host], ("name", "config.graphicsInfo"))[host._moId]
    under = [address for address, vms in capacity.users(there).items() if ref._moId in vms]
    booted = values.get("runtime.bootTime")
    return Place(
        host=there["name"],
        gpus=tuple(f"{there['name']}/{address}" for address in sorted(under)),
        power="on" if values["runtime.powerState"] == "poweredOn" else "off",
        powered_on=booted.isoformat(timespec="seconds") if booted else None,
        encryption=str(values.get("config.migrateEncryption") or ""),
    )


def events(session: Session, ref: Any, name: str, since: datetime) -> list[dict[str, Any]]:
    """The events about the worker since a time, oldest first."""
    who = vim.event.EventFilterSpec.ByEntity(entity=ref, recursion="self")
    when = vim.event.EventFilterSpec.ByTime(beginTime=since)
    with translating_faults(name, "read its events"):
        found = session.content.eventManager.QueryEvents(
            vim.event.EventFilterSpec(entity=who, time=when, eventTypeId=list(KINDS))
        )
    return [_plain(one) for one in sorted(found or [], key=lambda one: one.key)]


def of_chain(found: Sequence[dict[str, Any]], chain: int) -> list[dict[str, Any]]:
    """The events of one task."""
    return [one for one in found if one["chain"] == chain]


def power_cycled(before: Place, after: Place, found: Sequence[dict[str, Any]]) -> bool:
    """Whether the worker was powered off or booted in between."""
    return has_booted(before.plain, after.plain) or any(one["kind"] in POWER for one in found)


def _plain(event: Any) -> dict[str, Any]:
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
        "text": getattr(reason, "localizedMessage", None) or event.fullFormattedMessage or kind,
    }


def _argument(event: Any, key: str) -> str:
    """The argument of an EventEx by its key; a host is given by its reference or its name."""
    found = next((one.value for one in getattr(event, "arguments", None) or [] if one.key == key), None)
    return str(getattr(found, "name", found) or "")


def _name_of(host: Any) -> str:
    return str(host.name) if host else ""
