# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The tags of one category that objects carry; only vCenter's REST API knows tags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from ..errors import Refused
from .rest import Rest

_BASE = "/api/cis/tagging"
# This form of the API came with that version; an older server knows no such address.
_REMEDY = "look whether it is vCenter 7.0 U2 or later, or choose another way to tell tenants"


def of_machines(api: Rest, category: str, ids: Iterable[str]) -> dict[str, list[str]]:
    """The sorted names of the tags of each virtual machine in a category; one call for each tag in use."""
    known = _in_category(api, category)
    body = {"object_ids": [{"type": "VirtualMachine", "id": one} for one in ids]}
    tried = "read which virtual machines carry which tags"
    answer = api.send("POST", f"{_BASE}/tag-association?action=list-attached-tags-on-objects", body, tried=tried)
    carried = {one["object_id"]["id"]: known & set(one["tag_ids"] or []) for one in answer}
    names = {one: _named(api, "tag", one)["name"] for one in sorted(set().union(*carried.values()))}
    return {machine: sorted(names[one] for one in found) for machine, found in carried.items()}


def _in_category(api: Rest, category: str) -> set[str]:
    """The ids of all tags of a category; its name is unique in a vCenter."""
    listed = api.get(f"{_BASE}/category", tried="list its tag categories", remedy=_REMEDY)
    found = {_named(api, "category", one)["name"]: one for one in listed}
    if category not in found:
        said = f"it has {', '.join(sorted(found)) or 'none'}"
        raise Refused(api.server, f"find its tag category {category}", said, "name one of them, or make it")
    tried = f"list the tags of its category {category}"
    body = {"category_id": found[category]}
    return set(api.send("POST", f"{_BASE}/tag?action=list-tags-for-category", body, tried=tried))


def _named(api: Rest, kind: str, one: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = api.get(f"{_BASE}/{kind}/{quote(one, safe=':')}", tried=f"read its {kind} {one}")
    return found
