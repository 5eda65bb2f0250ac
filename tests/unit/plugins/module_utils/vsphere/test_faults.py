"""Faults are known by their types, in whatever language the server words them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim, vmodl

from plugins.module_utils.errors import Failed
from plugins.module_utils.vsphere import tasks
from plugins.module_utils.vsphere.faults import is_caused_by, translating_faults

GERMAN = "Der Name »InvalidState« ist bereits vorhanden."


def test_a_fault_of_a_call_keeps_its_type() -> None:
    with pytest.raises(Failed) as caught, translating_faults("gpu", "take its lock"):
        raise vim.fault.DuplicateName(msg=GERMAN)
    assert is_caused_by(caught.value, vim.fault.DuplicateName)
    assert not is_caused_by(caught.value, vim.fault.InvalidState), "a word in a message is not a type"


def test_a_fault_of_a_task_keeps_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    task = SimpleNamespace(_moId="task-1")
    info = SimpleNamespace(state="error", error=vim.fault.DuplicateName(msg=GERMAN))
    monkeypatch.setattr(tasks, "watch", lambda *_args: iter([{"task-1": {"info.state": "error"}}]))
    monkeypatch.setattr(tasks, "read_many", lambda *_args: {"task-1": {"info": info}})
    session: Any = SimpleNamespace(params={"username": "user"})
    (outcome,) = tasks.wait_all(session, [tasks.Started(task, "gpu", "take its lock")], 5)
    assert isinstance(outcome, Failed) and is_caused_by(outcome, vim.fault.DuplicateName)
    assert not is_caused_by(outcome, vmodl.fault.ManagedObjectNotFound)
