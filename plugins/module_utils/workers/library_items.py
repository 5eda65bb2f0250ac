"""The record in a virtual machine of the item of a content library from which it was made."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..vsphere.libraries import LibraryItem

# An advanced setting of a template that was made of an item, and of the workers: the item and its version, as JSON.
RECORD = "dml.vsphere.template"


def record_of(item: LibraryItem) -> str:
    """Return the setting that records an item and its version."""
    known = {"library": item.library, "item": item.name, "id": item.id, "version": item.version}
    return json.dumps(known, sort_keys=True)


def recorded(extra: Mapping[str, str]) -> dict[str, str] | None:
    """Return the item from which a virtual machine was made; None if it has no record, or a damaged one."""
    try:
        found = json.loads(extra.get(RECORD) or "null")
    except (ValueError, RecursionError):
        return None
    keys = ("library", "item", "id", "version")
    return {key: str(found[key]) for key in keys} if isinstance(found, dict) and all(map(found.get, keys)) else None


def drift(name: str, extra: Mapping[str, str], item: LibraryItem | None) -> str:
    """Return a warning if a worker was made of another version of its item; empty if not."""
    made = recorded(extra)
    if item is None or made is None or (made["id"], made["version"]) == (item.id, item.version):
        return ""
    built = f"version {made['version']} of {made['library']}/{made['item']}"
    return f"it was built from {built}, and {item.path} has version {item.version}: to use it, delete {name} first"
