"""The REST session: its token, its errors, its tasks."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.errors import Failed, TimedOut, Unreachable
from plugins.module_utils.vsphere import rest

PARAMS = {"hostname": "vc", "port": 443, "username": "root", "password": "söcret", "timeout": 5}
Exchange = tuple[str, str, Any, dict[str, str]]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Exchange]]:
    """A server that gives the answers in turn; what was asked is in the returned list."""

    def answering(*answers: Any) -> list[Exchange]:
        left, requested = list(answers), list[Exchange]()

        def exchange(
            _self: rest.Rest, verb: str, path: str, body: str | None, headers: dict[str, str]
        ) -> tuple[int, str]:
            requested.append((verb, path, body and json.loads(body), headers))
            answer = left.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(rest.Rest, "_exchange", exchange)
        return requested

    return answering


def session(*version: int) -> Any:
    return SimpleNamespace(server="vc:443", params=PARAMS, api_version=version or (8, 0, 3, 0), exchange=None)


def task(status: str, **more: Any) -> tuple[int, str]:
    return 200, json.dumps({"status": status, **more})


def test_session_logs_in_uses_its_token_logs_out(server: Callable[..., list[Exchange]]) -> None:
    requested = server((201, '"token"'), (200, '{"a": 1}'), (204, ""), (204, ""))
    with rest.opened(session()) as api:
        assert api.get("/api/x", tried="read") == {"a": 1}
        assert api.send("PATCH", "/api/x", {"b": 2}, tried="write") is None
    assert base64.b64decode(requested[0][3]["Authorization"].split()[1]).decode() == "root:söcret"
    assert [(verb, path, body) for verb, path, body, _headers in requested] == [
        ("POST", "/api/session", None),
        ("GET", "/api/x", None),
        ("PATCH", "/api/x", {"b": 2}),
        ("DELETE", "/api/session", None),
    ]
    assert {headers.get("vmware-api-session-id") for *_rest, headers in requested[1:]} == {"token"}
    assert "söcret" not in str(requested[1:])


def test_a_failing_logout_does_not_hide_the_work(server: Callable[..., list[Exchange]]) -> None:
    server((201, '"token"'), (200, "1"), ConnectionResetError("gone"))
    with rest.opened(session()) as api:
        assert api.get("/api/x", tried="read") == 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            (404, '{"error_type": "NOT_FOUND", "messages": []}'),
            "vc:443: could not read x: the server said 404 NOT_FOUND",
        ),
        ((400, '{"messages": [{"id": "i", "default_message": "No."}]}'), "the server said 400 No; do this"),
        ((503, "<html>\nbusy</html>"), "the server said 503 <html> busy</html>; its services are starting or"),
        ((500, ""), "the server said 500 nothing more"),
        ((401, ""), "the server said 401 nothing more; the session ended: run again"),
    ],
)
def test_errors_are_in_the_words_of_the_server(
    answer: tuple[int, str], words: str, server: Callable[..., list[Exchange]]
) -> None:
    server(answer)
    with pytest.raises(Failed) as caught:
        rest.Rest(session()).get("/api/x", tried="read x", remedy="do this")
    assert words in str(caught.value)
    assert ("do this" in str(caught.value)) == (answer[0] in (400, 404))


def test_reports_errors_except_a_missing_optional_resource(server: Callable[..., list[Exchange]]) -> None:
    server((404, "{}"), (403, '{"error_type": "UNAUTHORIZED"}'))
    api = rest.Rest(session())
    assert api.find("/api/x", tried="read x") is None
    with pytest.raises(Failed, match="403 UNAUTHORIZED"):
        api.find("/api/x", tried="read x")


def test_refuses_a_page_instead_of_json(server: Callable[..., list[Exchange]]) -> None:
    server((200, "<html>Welcome</html>"))
    with pytest.raises(Unreachable, match="its answer is not one of vSphere"):
        rest.Rest(session()).get("/api/x", tried="read x")


def test_refuses_a_malformed_token(server: Callable[..., list[Exchange]]) -> None:
    server((200, "{}"))
    with pytest.raises(Failed, match="is not a token"), rest.opened(session()):
        pass


def test_a_broken_connection_is_unreachable(server: Callable[..., list[Exchange]]) -> None:
    server(ConnectionResetError("gone"))
    with pytest.raises(Unreachable, match="ConnectionResetError: gone"):
        rest.Rest(session()).get("/api/x", tried="read x")


def test_waits_for_a_task(server: Callable[..., list[Exchange]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "_POLL_SECONDS", 0)
    requested = server((202, '"task-1"'), task("PENDING"), task("RUNNING"), task("SUCCEEDED", result={"ok": True}))
    assert rest.Rest(session()).task("/api/x", {}, tried="do it", seconds=5, action="commit") == {"ok": True}
    assert [path for _verb, path, *_rest in requested] == [
        "/api/x?action=commit&vmw-task=true",
        *["/api/cis/tasks/task-1"] * 3,
    ]


def test_reports_a_task_that_fails_or_hangs(server: Callable[..., list[Exchange]]) -> None:
    server((202, '"t"'), task("FAILED", error={"error_type": "ERROR", "messages": [{"default_message": "no depot"}]}))
    with pytest.raises(Failed, match="could not do it: the server said ERROR: no depot"):
        rest.Rest(session()).task("/api/x", tried="do it", seconds=5)
    server((202, '"t"'), task("RUNNING"))
    with pytest.raises(TimedOut, match="did not end within 0 s"):
        rest.Rest(session()).task("/api/x", tried="do it", seconds=0.01)
