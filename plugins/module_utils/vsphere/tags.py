"""The tags of one category that objects carry; only vCenter's REST API returns tags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from ..errors import Refused
from .rest import Rest

_CARRIED = [{"object_id": {"id": str}, "tag_ids?": [str]}]
_TAGGING = "/api/cis/tagging"


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
    tried, body = f"list the tags of its category {category}", {"category_id": found[category]}
    return set(_act(api, "tag", "list-tags-for-category", body, tried=tried, form=[str]))


def _named(api: Rest, kind: str, one: str) -> Mapping[str, Any]:
    path = f"{kind}/{quote(one, safe=':')}"
    found: Mapping[str, Any] = _get(api, path, tried=f"read its {kind} {one}", form={"name": str})
    return found


def _get(api: Rest, path: str, *, tried: str, form: object) -> Any:
    return api.get(f"{_TAGGING}/{path}", tried=tried, form=form)


def _act(api: Rest, path: str, action: str, body: object, *, tried: str, form: object) -> Any:
    return api.send("POST", f"{_TAGGING}/{path}?action={action}", body, tried=tried, form=form)
