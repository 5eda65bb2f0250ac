"""The descriptions of the REST API judge requests and answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import contract

SOFTWARE = "/api/esx/settings/clusters/domain-c1/software"
APPLY = f"{SOFTWARE}?action=apply&vmw-task=true"
TASKS = "/api/cis/tasks?action=list"
INFO: dict[str, Any] = {
    "status": "RUNNING",
    "service": "s",
    "operation": "apply$task",
    "cancelable": False,
    "description": {"id": "i", "default_message": "m", "args": []},
    "error": {"any": "structure"},
    "user": None,
}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "answer", "problem"),
    [
        ("POST", TASKS, {"filter_spec": {"services": ["s"], "status": ["RUNNING"]}}, 200, {"task-1": INFO}, ""),
        ("POST", APPLY, {"hosts": ["host-1"], "accept_eula": True}, 202, "task-1", ""),
        ("DELETE", "/api/session", None, 204, None, ""),
        ("GET", "/api/cis/tasks?services=s", None, 200, {}, "7.0.3 has no such operation"),
        ("GET", "/api/cis/tasks/task-1?services=s", None, 200, INFO, "9.1.1 has no such operation"),
        ("POST", f"{SOFTWARE}?action=apply", None, 202, "task-1", "8.0.2 has no such operation"),
        ("POST", APPLY, {"host": ["host-1"]}, 202, "task-1", "body.host is not in 8.0.2"),
        ("POST", APPLY, {"hosts": "host-1"}, 202, "task-1", 'body.hosts is not of the type array in 8.0.2: "host-1"'),
        ("POST", APPLY, None, 200, "task-1", "no status 200"),
        ("POST", TASKS, {"filter_spec": {"status": ["DONE"]}}, 200, {}, "status[] is DONE, which 8.0.2 does not know"),
        ("POST", TASKS, None, 200, {"task-1": {**INFO, "service": None}}, "answer.task-1 lacks service"),
        ("GET", "/api/cis/tasks/task-1", None, 200, {**INFO, "status": "SUCCEEDED", "result": {}}, "result lacks"),
        (
            "POST",
            "/api/cis/tagging/tag-association?action=list-attached-tags-on-objects",
            None,
            200,
            [],
            "requires a body",
        ),
        ("GET", f"{SOFTWARE}/compliance", {}, 200, {}, "8.0.2 takes no body"),
    ],
)
def test_exchange_fits_or_names_the_problem(
    method: str, path: str, body: object, status: int, answer: object, problem: str
) -> None:
    sent, received = ("" if one is None else json.dumps(one) for one in (body, answer))

    found = contract.problems({"method": method, "path": path, "body": sent, "status": status, "answer": received})

    assert any(problem in one for one in found) if problem else found == []
