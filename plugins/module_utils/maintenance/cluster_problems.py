# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The alarms and running tasks of a cluster, and its hosts out of service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..vsphere.faults import translating_faults
from ..vsphere.inventory import Host
from ..vsphere.properties import read_many
from ..vsphere.sdk import vim
from ..vsphere.session import Session
from ..workers.capacity import host_capacity as capacity
from . import recent_tasks, service_note
from .cluster_facts import Alarm, OutOfService, RunningTask
from .lock.lock_rules import stamp

ENTERED = ("EnteringMaintenanceModeEvent", "EnteredMaintenanceModeEvent")


def alarms(session: Session, names: Mapping[str, str], states: Iterable[Any]) -> list[Alarm]:
    """The red and yellow alarms among the states, each once: a cluster repeats those of its hosts."""
    raised = {one.key: one for one in states if one.overallStatus in {"red", "yellow"}}
    refs = {one.alarm._moId: one.alarm for one in raised.values()}
    titles = read_many(session, list(refs.values()), ("info.name",))
    found: list[Alarm] = [
        {
            "object": names.get(one.entity._moId, one.entity._moId),
            "alarm": titles[one.alarm._moId].get("info.name", one.alarm._moId),
            "status": str(one.overallStatus),
            "since": stamp(one.time),
            "acknowledged": bool(one.acknowledged),
        }
        for one in raised.values()
    ]
    return sorted(found, key=lambda one: (one["status"], one["object"], one["alarm"]))


def tasks(session: Session, cluster: Any, hosts: Sequence[Host], names: Mapping[str, str]) -> list[RunningTask]:
    """The tasks that run on the cluster and its hosts."""
    noted = {host.ref._moId for host in hosts if service_note.note_on(host)}
    found = recent_tasks.recent(session, [cluster]) + recent_tasks.recent(session, [host.ref for host in hosts])
    return [
        {
            "object": names.get(one.entity, one.entity),
            "task": one.what,
            "user": one.user,
            "ours": one.entity in noted,
        }
        for one in found
        if one.running
    ]


def out_of_service(session: Session, hosts: Sequence[Host]) -> list[OutOfService]:
    """The hosts that cannot take virtual machines, the reason, and who caused it where that is known."""
    return [_described(session, host, why) for host in hosts if (why := capacity.out_of_service(host.properties))]


def _described(session: Session, host: Host, why: str) -> OutOfService:
    note = service_note.note_on(host)
    ours = service_note.our_note(host) is not None or bool(note and note.ending_boot and not host.reachable)
    by = str(note) if note and ours else _entered_by(session, host) if why == capacity.MAINTENANCE else None
    return {"host": host.name, "why": why, "ours": ours, "by": by}


def _entered_by(session: Session, host: Host) -> str | None:
    """The user who last put a host into maintenance mode, from the events of vCenter."""
    entity = vim.event.EventFilterSpec.ByEntity(entity=host.ref, recursion="self")
    with translating_faults(host.name, "look up who put it into maintenance mode"):
        events = session.content.eventManager.QueryEvents(
            vim.event.EventFilterSpec(entity=entity, eventTypeId=list(ENTERED))
        )
    named = [one for one in events if one.userName]
    if not named:
        return None
    last = max(named, key=lambda one: one.createdTime)
    return f"{last.userName} since {stamp(last.createdTime)}"
