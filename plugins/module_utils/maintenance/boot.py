"""The settings that a host uses until its next boot, although others are configured: a note on the host."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from ..vsphere import custom_fields
from ..vsphere.inventory import Host

# The API reports the configured options of a kernel module, but never those in use.
ATTRIBUTE = "dml.vsphere.pending"
# Larger than any single clock correction of NTP, and shorter than the fastest reboot.
CORRECTION = timedelta(seconds=30)
PATHS = ("availableField", "customValue", "runtime.bootTime", "summary.rebootRequired")


def is_same_boot(first: str | None, second: str | None) -> bool:
    """Return whether two boot times are of the same boot.

    A host calculates its boot time from its clock, so a clock correction shifts the boot time; a reboot shifts it more.
    """
    if not first or not second:
        return first == second
    try:
        return abs(datetime.fromisoformat(first) - datetime.fromisoformat(second)) <= CORRECTION
    except (ValueError, TypeError):  # a note from another author may contain an invalid time
        return first == second


def is_older(when: datetime | None, booted: datetime | None) -> bool:
    """Return whether a host booted after a time on the clock of vCenter, which may differ from that of the host."""
    return when is not None and booted is not None and when < booted - CORRECTION


def pending(host: Host) -> dict[str, Any]:
    """Return the settings in use, by subject, for the subjects that changed after the last boot."""
    written = custom_fields.value_of(ATTRIBUTE, host["availableField"], host["customValue"])
    try:
        note = json.loads(host[ATTRIBUTE] or written or "{}")
        was = note.get("was", {}) if is_same_boot(note.get("boot"), host.boot_time) else {}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}  # any user who may set custom attributes may have written it
    return dict(was) if isinstance(was, dict) else {}


def remember(host: Host, subject: str, was: object) -> None:
    """Note a subject's active settings before a change; the first note after a boot stays valid."""
    known = pending(host)
    if subject in known:
        return
    note = {"boot": host.boot_time, "was": {**known, subject: was}}
    _store(host, json.dumps(note, sort_keys=True))


def forget(host: Host, subject: str) -> None:
    """Remove a subject from the note on a host: its settings are in use without a boot."""
    known = pending(host)
    if subject not in known:
        return
    note = {"boot": host.boot_time, "was": {key: value for key, value in known.items() if key != subject}}
    _store(host, json.dumps(note, sort_keys=True) if note["was"] else "")


def _store(host: Host, text: str) -> None:
    custom_fields.store(host.session, host.ref, host.name, ATTRIBUTE, text)
    # Several subjects of a host change between two reads: without this copy, the next one would overwrite the note.
    host.properties[ATTRIBUTE] = text or "{}"


def reboot_due(host: Host) -> bool:
    return bool(host["summary.rebootRequired"])
