"""The names of the folders and resource pools of virtual machines, a different name for each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ...errors import Failed
from ...vsphere.properties import Properties, by_type, id_of, read_many
from ...vsphere.sdk import ApiObject
from ...vsphere.session import Session


def place_names(session: Session, vms: Collection[Properties]) -> dict[str, str]:
    """Return the names of the folders and pools of virtual machines, by object ID."""
    folders, pools = ([vm.get(path) for vm in vms] for path in ("parent", "resourcePool"))
    return {**_names(session, folders), **_names(session, pools)}


def _names(session: Session, refs: Iterable[ApiObject]) -> dict[str, str]:
    """Return the names of objects of a kind; equal names begin with the parents, as far as these differ."""
    tops = {id_of(ref): ref for ref in refs if ref is not None}
    names = _read(session, tops.values(), "name")
    while alike := _alike(names, tops):
        try:
            parents = _read(session, alike.values(), "parent")
            above = _read(session, filter(None, parents.values()), "name")
        except Failed:  # some accounts have no access to the parents
            break
        tops = {key: parents[id_of(top)] for key, top in alike.items() if parents[id_of(top)] is not None}
        names.update({key: f"{above[id_of(top)]}/{names[key]}" for key, top in tops.items()})
    left = _alike(names, names)
    return {key: f"{name} ({key})" if key in left else name for key, name in names.items()}


def _alike(names: Mapping[str, str], tops: Mapping[str, Any]) -> dict[str, Any]:
    counts = Counter(names.values())
    return {key: top for key, top in tops.items() if counts[names[key]] > 1}


def _read(session: Session, refs: Iterable[ApiObject], path: str) -> dict[str, Any]:
    """Return a property of objects of several types, by object ID."""
    return {
        key: values.get(path) for alike in by_type(refs) for key, values in read_many(session, alike, (path,)).items()
    }
