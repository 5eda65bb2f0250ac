# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Whether the datastores have room for the workers to be cloned: a full one stops the machines of all its users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import CollectionError, Refused
from ..vsphere import properties
from ..vsphere.sdk import vim
from . import clone
from .context import Context
from .machine import Machine
from .worker_spec import WorkerSpec

_COMMITTED, _FREE = "summary.storage.committed", "summary.freeSpace"
_GIB, _MIB = 1 << 30, 1 << 20


def refuse_shortage(context: Context) -> None:
    """Refuse a call whose new workers need more space than a datastore, or a datastore cluster, has free."""
    cluster, places = context.cluster, dict[str, Any]()
    new = [one for one in context.specs if one.name not in cluster.machines]
    sources = {one.name: template for one in new if (template := cluster.machines.get(one["template"] or ""))}
    # The size of an item that is not deployed yet is unknown.
    refs = {one.ref._moId: one.ref for one in sources.values() if one.ref._moId}
    committed = properties.read_many(cluster.session, list(refs.values()), (_COMMITTED,)) if refs else {}
    needs: dict[str, dict[str, int]] = {}
    for desired in new:
        template = sources.get(desired.name)
        size = (committed.get(template.ref._moId) or {}).get(_COMMITTED) if template else None
        place = _place(context, desired, template) if template and size is not None else None
        if place is not None:
            places[place._moId] = place
            needs.setdefault(place._moId, {})[desired.name] = _bytes(desired, template, int(size or 0))
    for key, place in places.items():
        _refuse_excess(needs[key], *_free(context, place))


def _free(context: Context, place: Any) -> tuple[str, int | None]:
    """Return the name and the free space of a datastore, or of all datastores of a datastore cluster."""
    session, is_pod = context.cluster.session, isinstance(place, vim.StoragePod)
    values = properties.read_many(session, [place], ("name", "childEntity" if is_pod else _FREE)).get(place._moId) or {}
    if is_pod:
        stores = properties.read_many(session, values.get("childEntity") or [], (_FREE,)).values()
        return str(values.get("name")), sum(int(store.get(_FREE) or 0) for store in stores)
    return str(values.get("name")), values.get(_FREE)


def _place(context: Context, desired: WorkerSpec, template: Machine) -> Any:
    """Return the datastore or datastore cluster of a new worker; None if the plan of the worker will refuse it."""
    try:
        location = context.locations.find(desired, template)
    except CollectionError:
        return None
    return location.pod or location.datastore


def _bytes(desired: WorkerSpec, template: Machine | None, committed: int) -> int:
    """Return the space of a clone, whose disks are as thin as those of its template, with its swap file."""
    memory = int(desired["memory_mb"] or (template["config.hardware.memoryMB"] if template else 0) or 0)
    swap = 0 if desired["reserve_memory"] else memory * _MIB
    return swap + (0 if desired["clone"] == clone.LINKED else committed)


def _refuse_excess(needs: Mapping[str, int], place: str, left: int | None) -> None:
    total = sum(needs.values())
    if left is not None and total > left:
        reason = f"they need {total / _GIB:.1f} GiB, and it has {left / _GIB:.1f} GiB free"
        remedy = "free space, or name another datastore; nothing was changed"
        raise Refused(place, f"hold {', '.join(sorted(needs))}", reason, remedy)
