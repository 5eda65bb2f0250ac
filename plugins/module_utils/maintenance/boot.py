# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The settings that a host still runs although others are configured: a note on the host that ends with its boot."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from ..vsphere import custom_fields
from ..vsphere.inventory import Host

# The API reports which options of a kernel module are configured, never which are in use.
ATTRIBUTE = "dml.vsphere.pending"
# More than a clock is corrected in one go where NTP runs, less than the fastest host takes from one boot to the next.
CORRECTION = timedelta(seconds=30)
PATHS = ("availableField", "customValue", "runtime.bootTime", "summary.rebootRequired")


def is_same_boot(first: str | None, second: str | None) -> bool:
    """Return whether two boot times are of the same boot.

    A host calculates its boot time from its clock, so a correction of the clock moves it; a reboot moves it further.
    """
    if not first or not second:
        return first == second
    try:
        return abs(datetime.fromisoformat(first) - datetime.fromisoformat(second)) <= CORRECTION
    except (ValueError, TypeError):  # a note from another author may contain an invalid time
        return first == second


def pending(host: Host) -> dict[str, Any]:
    """Return the settings in use, by subject, for the subjects that changed after the last boot."""
    written = custom_fields.value_of(ATTRIBUTE, host["availableField"], host["customValue"])
    try:
        note = json.loads(host[ATTRIBUTE] or written or "{}")
        was = note.get("was", {}) if is_same_boot(note.get("boot"), host.boot_time) else {}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}  # whoever may set custom attributes may have written anything
    return dict(was) if isinstance(was, dict) else {}


def remember(host: Host, subject: str, was: Any) -> None:
    """Note the settings in use of a subject before a change; the first note since a boot holds."""
    known = pending(host)
    if subject in known:
        return
    note = {"boot": host.boot_time, "was": {**known, subject: was}}
    text = json.dumps(note, sort_keys=True)
    custom_fields.store(host.session, host.ref, host.name, ATTRIBUTE, text)
    # Several subjects of a host are changed between two reads: the next one must see this note or would overwrite it.
    host.properties[ATTRIBUTE] = text


def reboot_due(host: Host) -> bool:
    """Return whether the host itself requires a reboot."""
    return bool(host["summary.rebootRequired"])
