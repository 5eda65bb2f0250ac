"""The alarms and running tasks of a cluster, and its hosts out of service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..vsphere.faults import translating_faults
from ..vsphere.inventory import Host
from ..vsphere.properties import read_many
from ..vsphere.sdk import ApiObject, vim
from ..vsphere.session import Session
from ..workers.capacity import host_capacity as capacity
from . import recent_tasks, service_note
from .cluster_facts import Alarm, OutOfService, RunningTask
from .lock.lock_rules import stamp

# The properties of a host for out_of_service.
PATHS = (*capacity.SERVICE_PATHS, *service_note.PATHS)


def alarms(session: Session, names: Mapping[str, str], states: Iterable[Any]) -> list[Alarm]:
    """Return the red and yellow alarms, each once: a cluster repeats the alarms of its hosts."""
    raised = {state.key: state for state in states if state.overallStatus in {"red", "yellow"}}
    refs = {state.alarm._moId: state.alarm for state in raised.values()}
    titles = read_many(session, list(refs.values()), ("info.name",))
    raised_alarms: list[Alarm] = [
        {
            "object": names.get(state.entity._moId, state.entity._moId),
            "alarm": titles[state.alarm._moId].get("info.name", state.alarm._moId),
            "status": str(state.overallStatus),
            "since": stamp(state.time),
            "acknowledged": bool(state.acknowledged),
        }
        for state in raised.values()
    ]
    return sorted(raised_alarms, key=lambda state: (state["status"], state["object"], state["alarm"]))


def tasks(session: Session, cluster: ApiObject, hosts: Sequence[Host], names: Mapping[str, str]) -> list[RunningTask]:
    noted = {
        host.ref._moId
        for host in hosts
        if (note := service_note.note_on(host)) and note.rollout and not service_note.is_of_another(host)
    }
    tasks = recent_tasks.recent(session, [cluster]) + recent_tasks.recent(session, [host.ref for host in hosts])
    return [
        {
            "object": names.get(task.entity, task.entity),
            "task": task.what,
            "user": task.user,
            "ours": task.entity in noted,
        }
        for task in tasks
        if task.running
    ]


def out_of_service(session: Session, hosts: Sequence[Host]) -> list[OutOfService]:
    """Return the hosts that cannot take virtual machines, with the reason and, if known, the user behind it."""
    return [_described(session, host, why) for host in hosts if (why := capacity.out_of_service(host.properties))]


def _described(session: Session, host: Host, why: str) -> OutOfService:
    note = service_note.note_on(host)
    is_noted = service_note.our_note(host) is not None or bool(note and note.ending_boot and not host.reachable)
    by = str(note) if note and is_noted else _entered_by(session, host) if why == capacity.MAINTENANCE else None
    return {"host": host.name, "why": why, "ours": bool(note and is_noted and note.rollout), "by": by}


def _entered_by(session: Session, host: Host) -> str | None:
    """Return the user who last put a host into maintenance mode, from the events of vCenter."""
    entity = vim.event.EventFilterSpec.ByEntity(entity=host.ref, recursion="self")
    with translating_faults(host.name, "look up who put it into maintenance mode"):
        events = session.content.eventManager.QueryEvents(
            vim.event.EventFilterSpec(entity=entity, eventTypeId=list(service_note.ENTERED))
        )
    named = [event for event in events if event.userName]
    if not named:
        return None
    last = max(named, key=lambda event: event.createdTime)
    return f"{last.userName} since {stamp(last.createdTime)}"
