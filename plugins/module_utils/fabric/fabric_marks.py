"""The marks of the collection's objects: the description of a switch or port group, a custom attribute of a host."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..vsphere import custom_fields
from ..vsphere.inventory import Host

# The call that creates an object also writes its description, so a killed run leaves no object without it.
NOTE = "Built by dml.vsphere for cluster "
# Written before a host joins, for the same reason.
ATTRIBUTE = "dml.vsphere.fabric"
PATHS = ("availableField", "customValue")


def note(cluster: str) -> str:
    """Return the description of an object that the collection builds for a cluster."""
    return f"{NOTE}{cluster}"


def is_ours(description: str | None) -> bool:
    """Return whether the description marks an object that this collection created."""
    return (description or "").startswith(NOTE)


def built_on(host: Host | Mapping[str, object], switch: str) -> dict[str, Any] | None:
    """Return the note on a host about a switch: ``joined`` and the port groups of ``adapters``; None without a note."""
    return _all(host).get(switch)


def write(host: Host, switch: str, built: Mapping[str, object] | None) -> None:
    """Write the note of a host about a switch, or remove the note if nothing is left."""
    notes = {name: mark for name, mark in {**_all(host), switch: built}.items() if mark is not None}
    text = json.dumps(notes, sort_keys=True) if notes else ""
    custom_fields.store(host.session, host.ref, host.name, ATTRIBUTE, text)


def other_author(host: Host) -> str:
    """Return the other account that wrote the note of a host last; empty if this account did."""
    return custom_fields.other_author(host.session, host.ref, host.name, ATTRIBUTE)


def _all(host: Host | Mapping[str, object]) -> dict[str, Any]:
    fields, values = ((host.get(path) if isinstance(host, Mapping) else host[path]) for path in PATHS)
    try:
        notes = json.loads(custom_fields.value_of(ATTRIBUTE, fields, values) or "{}")
    except (ValueError, RecursionError):
        return {}
    return {name: mark for name, mark in notes.items() if isinstance(mark, dict)} if isinstance(notes, dict) else {}
