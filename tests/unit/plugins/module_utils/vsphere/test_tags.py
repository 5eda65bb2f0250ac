"""The tags of virtual machines by vCenter's REST API."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.vsphere import rest, tags

TEAM, GREEN = "urn:vmomi:InventoryServiceCategory:1:GLOBAL", "urn:vmomi:InventoryServiceTag:2:GLOBAL"
CARRIED = [{"object_id": {"type": "VirtualMachine", "id": "vm-1"}, "tag_ids": [GREEN, "other"]}]
ANSWERS: dict[tuple[str, str], Any] = {
    ("POST", "/api/session"): "token",
    ("GET", "/api/cis/tagging/category"): [TEAM],
    ("GET", f"/api/cis/tagging/category/{TEAM}"): {"name": "team"},
    ("POST", "/api/cis/tagging/tag?action=list-tags-for-category"): [GREEN],
    ("POST", "/api/cis/tagging/tag-association?action=list-attached-tags-on-objects"): CARRIED,
    ("GET", f"/api/cis/tagging/tag/{GREEN}"): {"name": "green"},
    ("DELETE", "/api/session"): None,
}


@pytest.fixture
def requested(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Return the requests to a server that knows these addresses alone."""
    requests = list[tuple[str, str]]()

    def exchange(_self: rest.Rest, verb: str, path: str, _body: Any, _headers: Any) -> tuple[int, str]:
        requests.append((verb, path))
        return (200, json.dumps(ANSWERS[verb, path])) if (verb, path) in ANSWERS else (404, "")

    monkeypatch.setattr(rest.Rest, "_exchange", exchange)
    return requests


@pytest.fixture
def session() -> Any:
    params = {"hostname": "vc", "port": 443, "username": "root", "password": "secret", "timeout": 5}
    return SimpleNamespace(server="vc:443", params=params, exchange=None)


def test_reads_the_tags_of_one_category(requested: list[tuple[str, str]], session: Any) -> None:
    with rest.opened(session) as api:
        assert tags.vm_tags(api, "team", ["vm-1"]) == {"vm-1": ["green"]}
    assert requested == list(ANSWERS)


@pytest.mark.usefixtures("requested")
def test_a_category_that_is_not_there_is_refused(session: Any) -> None:
    with rest.opened(session) as api, pytest.raises(Refused, match="it has team"):
        tags.vm_tags(api, "squad", ["vm-1"])
