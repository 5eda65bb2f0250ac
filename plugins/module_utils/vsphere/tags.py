# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The tags of one category that objects carry; only vCenter's REST API returns tags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from ..errors import Refused
from .rest import Rest

_CARRIED = [{"object_id": {"id": str}, "tag_ids?": [str]}]
_NEW, _OLD = "/api/cis/tagging", "/rest/com/vmware/cis/tagging"


def vm_tags(api: Rest, category: str, ids: Iterable[str]) -> dict[str, list[str]]:
    """Return the sorted names of the tags of each virtual machine in a category; one call for each tag in use."""
    known = _in_category(api, category)
    body = {"object_ids": [{"type": "VirtualMachine", "id": one} for one in ids]}
    tried = "read which virtual machines carry which tags"
    answer = _act(api, "tag-association", "list-attached-tags-on-objects", body, tried=tried, form=_CARRIED)
    carried = {one["object_id"]["id"]: known & set(one.get("tag_ids") or []) for one in answer}
    names = {one: _named(api, "tag", one)["name"] for one in sorted(set().union(*carried.values()))}
    return {machine: sorted(names[one] for one in found) for machine, found in carried.items()}


def _in_category(api: Rest, category: str) -> set[str]:
    """Return the ids of all tags of a category; its name is unique in a vCenter."""
    listed = _get(api, "category", tried="list its tag categories", form=[str])
    found = {_named(api, "category", one)["name"]: one for one in listed}
    if category not in found:
        reason = f"it has {', '.join(sorted(found)) or 'none'}"
        raise Refused(api.server, f"find its tag category {category}", reason, "name one of them, or create it")
    tried, action = f"list the tags of its category {category}", "list-tags-for-category"
    if api.old:
        return set(_act(api, f"tag/{_id(found[category])}", action, None, tried=tried, form=[str]))
    return set(_act(api, "tag", action, {"category_id": found[category]}, tried=tried, form=[str]))


def _named(api: Rest, kind: str, one: str) -> Mapping[str, Any]:
    its_id = _id(one) if api.old else quote(one, safe=":")
    found: Mapping[str, Any] = _get(api, f"{kind}/{its_id}", tried=f"read its {kind} {one}", form={"name": str})
    return found


def _id(one: str) -> str:
    return f"id:{quote(one, safe=':')}"


def _get(api: Rest, path: str, *, tried: str, form: object) -> Any:
    """Return the answer to a read; the older form of the API wraps it."""
    if api.old:
        return api.get(f"{_OLD}/{path}", tried=tried, form={"value": form})["value"]
    return api.get(f"{_NEW}/{path}", tried=tried, form=form)


def _act(api: Rest, path: str, action: str, body: object, *, tried: str, form: object) -> Any:
    """Return the answer to an action that reads; the older form of the API marks actions with a tilde."""
    if api.old:
        answer = api.send("POST", f"{_OLD}/{path}?~action={action}", body, tried=tried, form={"value?": form})
        return answer.get("value") or []
    return api.send("POST", f"{_NEW}/{path}?action={action}", body, tried=tried, form=form)
