"""Content libraries by vCenter's REST API: what is refused, and what a failed deployment says."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.errors import Failed, Refused
from plugins.module_utils.vsphere import libraries, rest

LIBRARY, ITEM = "/api/content/library", "/api/content/library/item"
OVF = libraries.LibraryItem("images", "dlvm", "i1", "ovf", "2", is_subscribed=False, cached=True)
DEPLOY = "/api/vcenter/ovf/library-item/i1?action=deploy"
MESSAGE = {"id": "x", "default_message": "The datastore is full.", "args": []}
ANSWERS: dict[tuple[str, str], Any] = {
    ("POST", "/api/session"): "token",
    ("DELETE", "/api/session"): None,
    ("GET", LIBRARY): ["l1", "l2"],
    ("POST", f"{LIBRARY}?action=find"): ["l1", "l2"],
    ("GET", f"{LIBRARY}/l1"): {"id": "l1", "name": "images", "type": "LOCAL"},
    ("GET", f"{LIBRARY}/l2"): {"id": "l2", "name": "Images", "type": "SUBSCRIBED"},
    ("GET", f"{ITEM}?library_id=l1"): ["i1", "i2"],
    ("GET", f"{ITEM}?library_id=l2"): [],
    ("POST", f"{ITEM}?action=find"): ["i1", "i2"],
    ("GET", f"{ITEM}/i1"): {"id": "i1", "name": "dlvm", "type": "ovf", "content_version": "2", "cached": True},
    ("GET", f"{ITEM}/i2"): {"id": "i2", "name": "disc", "type": "iso", "content_version": "1"},
}


@pytest.fixture
def answers() -> dict[tuple[str, str], Any]:
    return dict(ANSWERS)


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, answers: dict[tuple[str, str], Any]) -> rest.Rest:
    """Return a session with a server that knows these answers."""

    def exchange(_self: rest.Rest, verb: str, path: str, _body: Any, _headers: Any) -> tuple[int, str]:
        return (200, json.dumps(answers[verb, path])) if (verb, path) in answers else (404, "")

    monkeypatch.setattr(rest.Rest, "_exchange", exchange)
    params = {"hostname": "vc", "port": 443, "username": "root", "password": "secret", "timeout": 5}
    session: Any = SimpleNamespace(server="vc:443", params=params, exchange=None)
    return rest.Rest(session)


def test_finds_an_item_by_its_exact_names(api: rest.Rest) -> None:
    assert libraries.find_item(api, "images", "dlvm") == OVF
    assert libraries.names(api) == [("Images", []), ("images", ["dlvm"])]


@pytest.mark.parametrize(
    ("library", "item", "words"),
    [
        ("IMAGES", "dlvm", "it has 0 of that name: Images, images; correct the library"),
        ("images", "deb", "it has 0 of that name; its templates: dlvm; correct the item"),
        ("images", "disc", "its type is iso; name an OVF or a VM template"),
    ],
)
def test_refuses_another_name_or_type(api: rest.Rest, library: str, item: str, words: str) -> None:
    with pytest.raises(Refused) as refused:
        libraries.find_item(api, library, item)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"succeeded": False, "error": {"errors": [{"error": {"messages": [MESSAGE]}}]}}, "The datastore is full"),
        ({"succeeded": False, "error": {"errors": [{"category": "INPUT", "message": MESSAGE}]}}, "datastore is full"),
        ({"succeeded": False}, "the server said nothing more"),
        ({"succeeded": True, "resource_id": {"type": "VirtualApp", "id": "resgroup-1"}}, "it became a VirtualApp"),
    ],
)
def test_a_failed_deployment_shows_its_cause(
    api: rest.Rest, answers: dict[tuple[str, str], Any], answer: dict[str, Any], words: str
) -> None:
    answers["POST", DEPLOY] = answer
    with pytest.raises(Failed) as failed:
        libraries.deploy(api, OVF, {"resource_pool_id": "p"}, {"name": "dml-x"})
    assert words in str(failed.value)


def test_a_patient_session_waits_longer_and_never_shorter(api: rest.Rest) -> None:
    assert [api.patient(seconds)._params["timeout"] for seconds in (3600, 1)] == [3600, 5]
    assert api._params["timeout"] == 5
