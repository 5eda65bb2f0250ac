"""Machines that cannot move are shut down by their guests, and powered off only if those do not shut down in time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.maintenance import maintenance_mode
from plugins.module_utils.maintenance.service_options import ServiceOptions
from plugins.module_utils.workers import worker_power
from plugins.module_utils.workers.capacity.running_vm import Vm
from tests.fakes.esxi import FakeHost

VM = Vm("vm-1", "w1", "esx01.lab", fixed=("a GPU in passthrough",))
ON, OFF = "poweredOn", "poweredOff"
LISTENS, DEAF = "guestToolsRunning", "guestToolsNotRunning"


def ended(monkeypatch: pytest.MonkeyPatch, states: list[tuple[str, str]], *faults: Exception, **more: Any) -> list[str]:
    """Empty a host of a machine with these states of its power and tools, one after another; return the calls."""
    calls = list[str]()
    made: Any = FakeHost()

    def call(name: str, *faults: Exception) -> None:
        calls.append(name)
        for fault in faults:
            raise fault

    def watch(_session: Any, refs: Any, *_options: Any, **_more: Any) -> Iterator[Any]:
        for power, tools in states:
            yield {refs[0]._moId: {"runtime.powerState": power, "guest.toolsRunningStatus": tools}}

    made.session.stub = None
    monkeypatch.setattr(vim.VirtualMachine, "ShutdownGuest", lambda _ref: call("ShutdownGuest", *faults))
    monkeypatch.setattr(vim.VirtualMachine, "PowerOffVM_Task", lambda _ref: call("PowerOffVM_Task"))
    monkeypatch.setattr(maintenance_mode.properties, "watch", watch)
    monkeypatch.setattr(maintenance_mode.tasks, "wait_all", lambda *_options: [])
    maintenance_mode.power_off(made, [VM], ServiceOptions("me", power_off=True, **more))
    return calls


def test_guest_whose_tools_ended_first_shuts_down(monkeypatch: pytest.MonkeyPatch) -> None:
    states = [(ON, LISTENS), (ON, DEAF), (ON, DEAF), (OFF, DEAF)]
    assert ended(monkeypatch, states) == ["ShutdownGuest"]


def test_guest_that_hangs_is_powered_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended(monkeypatch, [(ON, LISTENS)] * 3) == ["ShutdownGuest", "PowerOffVM_Task"]


@pytest.mark.parametrize(
    ("fault", "installed", "calls"),
    [
        (vim.fault.ToolsUnavailable(), "guestToolsNotInstalled", ["ShutdownGuest", "PowerOffVM_Task"]),
        # An earlier run, which was killed, may have requested the shutdown: the tools end first.
        (vim.fault.ToolsUnavailable(), "guestToolsUnmanaged", ["ShutdownGuest"]),
        (vim.fault.InvalidPowerState(), "guestToolsUnmanaged", ["ShutdownGuest"]),
    ],
)
def test_only_guest_that_never_had_tools_loses_power(
    fault: Exception, installed: str, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"vm-1": {worker_power.INSTALLED: installed}}
    monkeypatch.setattr(maintenance_mode.properties, "read_many", lambda *_given: values)

    assert ended(monkeypatch, [(ON, DEAF), (OFF, DEAF)], fault) == calls


def test_reports_the_time_that_a_guest_had(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    ticks = iter([100.0, 142.4])
    monkeypatch.setattr(maintenance_mode.time, "monotonic", lambda: next(ticks))

    ended(monkeypatch, [(ON, LISTENS)], report=lambda _target, line: lines.append(line))

    assert lines[-1] == "powers w1 off: its guest still ran after 42 s"
