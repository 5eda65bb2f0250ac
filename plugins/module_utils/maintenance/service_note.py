"""A note on the host itself: the run of this collection that took it out of service, and the boot to end."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from ..vsphere import custom_fields
from ..vsphere.faults import translating_faults
from ..vsphere.host_clocks import server_time
from ..vsphere.inventory import Host
from ..vsphere.sdk import ApiObject, vim
from .service_options import ServiceOptions

ATTRIBUTE = "dml.vsphere.maintenance"
PATHS = ("availableField", "customValue")
EXITED, CHANGED = "ExitMaintenanceModeEvent", custom_fields.CHANGED
ENTERED = ("EnteringMaintenanceModeEvent", "EnteredMaintenanceModeEvent")
# The events of an entry follow its note within this time. vCenter keeps events for longer, by default for 30 days.
ENTRY_SHOWS = timedelta(days=1)
# A note is written after the time in it, on the same clock.
FUTURE = timedelta(minutes=5)
FORMAT = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True)
class ServiceNote:
    """Who took the host out of service and when, and the boot that a reboot by this collection should end.

    ``visiting``: another user took the host out of service, and this collection only reboots it. ``rollout``: a
    rollout took it out, which may return it; without, a person did with esxi_power, and other runs leave it alone.
    """

    by: str
    since: str
    ending_boot: str = ""
    visiting: bool = False
    rollout: bool = False

    def __str__(self) -> str:
        return f"{self.by} since {self.since}"


def note_on(host: Host) -> ServiceNote | None:
    written = custom_fields.value_of(ATTRIBUTE, host["availableField"], host["customValue"])
    just_written = host[ATTRIBUTE]
    return parse(written if just_written is None else just_written)


def our_note(host: Host) -> ServiceNote | None:
    """Return the note of the run that took the host out of service; None if no run of this collection did.

    The note stays if another user returns the host. If a host left maintenance mode since then and is in it
    again, another user took it out of service. A note that another account wrote does not count: each user who may set
    custom attributes can write one, also on a host that a person took out of service.
    """
    note = note_on(host)
    if note is None or note.visiting or is_of_another(host):
        return None
    return None if host.in_maintenance and _may_have_left(host, note) else note


def note_of_a_rollout(host: Host) -> ServiceNote | None:
    """Return the note of the rollout that took the host out of service, if one did."""
    note = our_note(host)
    return note if note and note.rollout else None


def own_note(host: Host, desired: ServiceOptions) -> ServiceNote | None:
    """Return the note on a host that belongs to a rollout, or to a person, as the options request."""
    return note_of_a_rollout(host) if desired.rollout else our_note(host)


def new_note(host: Host, desired: ServiceOptions) -> ServiceNote:
    """Return the note about a host that leaves service now."""
    return ServiceNote(desired.by, now(host), rollout=desired.rollout)


def now(host: Host) -> str:
    """Return the time of the server as text, because notes are compared with the times of the server's events."""
    return server_time(host.session).astimezone(timezone.utc).strftime(FORMAT)


def is_of_another(host: Host) -> bool:
    """Return whether another account wrote the note, according to the latest event about it that vCenter still has."""
    known = host[CHANGED]
    if known is None:
        author = custom_fields.other_author(host.session, host.ref, host.name, ATTRIBUTE)
        known = host.properties[CHANGED] = bool(author)
    return bool(known)


def _may_have_left(host: Host, note: ServiceNote) -> bool:
    """Return whether the host left maintenance mode after its note was written, or whether vCenter no longer knows.

    Without the events of the entry that an old note is about, those of a later exit may be gone too.
    """
    known = host[EXITED]
    if known is None:
        try:
            # The note has whole seconds.
            begin = datetime.strptime(note.since, FORMAT).replace(tzinfo=timezone.utc) + timedelta(seconds=1)
        except ValueError:
            return True
        events = _events_since(host, begin)
        has_left = any(isinstance(event, vim.event.ExitMaintenanceModeEvent) for event in events)
        knows_entry = any(event.createdTime - begin <= ENTRY_SHOWS for event in events)
        is_new = knows_entry or -FUTURE <= server_time(host.session) - begin <= ENTRY_SHOWS
        known = host.properties[EXITED] = has_left or not is_new
    return bool(known)


def _events_since(host: Host, begin: datetime) -> list[ApiObject]:
    """Return the entries and exits of a host; those of the second of a note itself are not certain to follow it."""
    entity = vim.event.EventFilterSpec.ByEntity(entity=host.ref, recursion="self")
    time = vim.event.EventFilterSpec.ByTime(beginTime=begin)
    spec = vim.event.EventFilterSpec(entity=entity, eventTypeId=[EXITED, *ENTERED], time=time)
    with translating_faults(host.name, "look up whether it left maintenance mode"):
        events = host.session.content.eventManager.QueryEvents(spec)
    return [event for event in events or [] if event.createdTime >= begin]


def is_out_of_service(host: Host) -> bool:
    """Return whether the host cannot be used, or a killed run left its note on it."""
    return not host.reachable or host.in_maintenance or note_on(host) is not None


def parse(text: str) -> ServiceNote | None:
    """Return the note in a text; None for a text without a note."""
    try:
        fields: Any = json.loads(text or "null")
        note = ServiceNote(**fields) if fields else None
    except (TypeError, ValueError, RecursionError):
        return None
    # Values other than text were not written by this collection, and contain neither user nor time.
    is_text = note and all(isinstance(value, str) for value in (note.by, note.since, note.ending_boot))
    return note if is_text else None


def write(host: Host, note: ServiceNote) -> None:
    """Write the note before the action that it records: a killed run may leave an extra note, but never omits one."""
    _store(host, json.dumps({key: value for key, value in asdict(note).items() if value}))


def clear(host: Host) -> None:
    if note_on(host) is not None:
        _store(host, "")


def _store(host: Host, text: str) -> None:
    custom_fields.store(host.session, host.ref, host.name, ATTRIBUTE, text)
    host.properties[ATTRIBUTE] = text
    for known in (CHANGED, EXITED):
        host.properties.pop(known, None)
