# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The tags of virtual machines by both forms of vCenter's REST API: below /api since 7.0 U2, below /rest before."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.vsphere import rest, tags

OLD, NEW = (7, 0, 1, 0), (7, 0, 2, 0)
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
ANSWERS_BEFORE: dict[tuple[str, str], Any] = {
    ("POST", "/rest/com/vmware/cis/session"): {"value": "token"},
    ("GET", "/rest/com/vmware/cis/tagging/category"): {"value": [TEAM]},
    ("GET", f"/rest/com/vmware/cis/tagging/category/id:{TEAM}"): {"value": {"name": "team"}},
    ("POST", f"/rest/com/vmware/cis/tagging/tag/id:{TEAM}?~action=list-tags-for-category"): {"value": [GREEN]},
    ("POST", "/rest/com/vmware/cis/tagging/tag-association?~action=list-attached-tags-on-objects"): {"value": CARRIED},
    ("GET", f"/rest/com/vmware/cis/tagging/tag/id:{GREEN}"): {"value": {"name": "green"}},
    ("DELETE", "/rest/com/vmware/cis/session"): None,
}


def served(monkeypatch: pytest.MonkeyPatch, answers: dict[tuple[str, str], Any]) -> list[tuple[str, str]]:
    """A server that knows these addresses alone, and what it was asked."""
    requested = list[tuple[str, str]]()

    def exchange(_self: rest.Rest, verb: str, path: str, _body: Any, _headers: Any) -> tuple[int, str]:
        requested.append((verb, path))
        return (200, json.dumps(answers[verb, path])) if (verb, path) in answers else (404, "")

    monkeypatch.setattr(rest.Rest, "_exchange", exchange)
    return requested


def session(version: tuple[int, ...]) -> Any:
    params = {"hostname": "vc", "port": 443, "username": "root", "password": "secret", "timeout": 5}
    return SimpleNamespace(server="vc:443", params=params, api_version=version, exchange=None)


@pytest.mark.parametrize(("version", "answers"), [(NEW, ANSWERS), (OLD, ANSWERS_BEFORE)])
def test_sends_each_version_the_form_that_it_supports(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...], answers: dict[tuple[str, str], Any]
) -> None:
    requested = served(monkeypatch, answers)
    with rest.opened(session(version)) as api:
        assert tags.vm_tags(api, "team", ["vm-1"]) == {"vm-1": ["green"]}
    assert requested == list(answers)


@pytest.mark.parametrize(("version", "answers"), [(NEW, ANSWERS), (OLD, ANSWERS_BEFORE)])
def test_a_category_that_is_not_there_is_refused(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...], answers: dict[tuple[str, str], Any]
) -> None:
    served(monkeypatch, answers)
    with rest.opened(session(version)) as api, pytest.raises(Refused, match="it has team"):
        tags.vm_tags(api, "squad", ["vm-1"])
