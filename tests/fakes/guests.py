"""A machine whose guest hears or not, in the place of what a server pushes about it."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.vsphere import properties, tasks
from plugins.module_utils.workers import worker_power


class FakeGuest:
    """A machine whose guest may hear; ``looks`` are the power states or addresses that the server pushes."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *looks: Any,
        tools: str = worker_power.RUNNING,
        installed: str = "guestToolsUnmanaged",
    ) -> None:
        self.calls, self.looks, self._moId = list[str](), looks, "vm-1"
        self.session, self.ref, self.tools = SimpleNamespace(server="vcenter"), self, tools
        self.name = self.shown = "w1"
        self.recent = [vim.Task("task-7")]
        monkeypatch.setattr(properties, "watch", self.watch)
        self.values = {"recentTask": self.recent, worker_power.INSTALLED: installed}
        monkeypatch.setattr(properties, "read_many", lambda *_: {"vm-1": self.values})
        monkeypatch.setattr(
            tasks, "wait", lambda _session, started, _seconds: self.calls.append(f"wait {started.tried}")
        )
        monkeypatch.setattr(
            tasks, "wait_all", lambda _session, some, _s: self.calls.extend(f"end {one.task._moId}" for one in some)
        )

    def __getitem__(self, key: str) -> Any:
        return {"guest.toolsRunningStatus": self.tools}[key]

    def ShutdownGuest(self) -> None:
        self.calls.append("shut down")

    def PowerOffVM_Task(self) -> str:
        self.calls.append("power off")
        return "task-1"

    def watch(self, _session: Any, refs: Any, paths: Any, _deadline: float) -> Iterator[dict[str, Any]]:
        for look in self.looks:
            yield {ref._moId: {paths[0]: look} for ref in refs}
