"""Watched properties come complete: changed parts of a property, under other names, are not requested."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim, vmodl

from plugins.module_utils.errors import Failed, Unreachable
from plugins.module_utils.vsphere import properties, tasks


class Collector:
    """A property collector that notes how it is asked, and answers with one whole property."""

    def __init__(self) -> None:
        self.partial: list[bool] = []
        self.waits: list[int] = []

    def CreatePropertyCollector(self) -> Collector:  # noqa: N802 # as pyVmomi spells it
        return self

    def CreateFilter(self, _spec: Any, partialUpdates: bool) -> None:  # noqa: N802, N803 # as pyVmomi spells it
        self.partial.append(partialUpdates)

    def WaitForUpdatesEx(self, _version: str, options: Any) -> Any:  # noqa: N802 # as pyVmomi spells it
        self.waits.append(options.maxWaitSeconds)
        change = SimpleNamespace(name="config.service", val="whole")
        changed = SimpleNamespace(obj=SimpleNamespace(_moId="host-1"), kind="modify", changeSet=[change])
        return SimpleNamespace(version="1", filterSet=[SimpleNamespace(objectSet=[changed])])

    def DestroyPropertyCollector(self) -> None:  # noqa: N802 # as pyVmomi spells it
        pass


def watching(collector: Collector, seconds: float, timeout: int = 60) -> Iterator[dict[str, Any]]:
    session: Any = SimpleNamespace(
        server="vc",
        params={"timeout": timeout},
        stub=SimpleNamespace(silent=False),
        content=SimpleNamespace(propertyCollector=collector),
    )
    return properties.watch(session, [vim.HostSystem("host-1")], ["config.service"], time.monotonic() + seconds)


def test_requests_whole_properties() -> None:
    collector = Collector()
    assert next(watching(collector, 60)) == {"host-1": {"config.service": "whole"}}
    assert collector.partial == [False]


@pytest.mark.parametrize(("timeout", "longest"), [(1, 1), (5, 2), (60, 10), (3600, 10)])
def test_wait_polls_often_enough_to_keep_the_session(timeout: int, longest: int) -> None:
    collector = Collector()
    next(watching(collector, 7200, timeout))
    assert collector.waits == [longest]


class Losing(Collector):
    """A server of which some answers are lost: it takes their content as delivered, and does not send it again."""

    def __init__(self, *lost: int) -> None:
        super().__init__()
        self.lost, self.is_reported = set(lost), False

    def CreatePropertyCollector(self) -> Collector:  # noqa: N802 # as pyVmomi spells it
        self.is_reported = False
        return self

    def WaitForUpdatesEx(self, version: str, options: Any) -> Any:  # noqa: N802 # as pyVmomi spells it
        update = super().WaitForUpdatesEx(version, options)
        news, self.is_reported = not self.is_reported, True
        if len(self.waits) in self.lost:
            raise ConnectionResetError("reset")
        return update if news else None


@pytest.mark.parametrize("lost", [1, 2])
def test_reads_the_objects_of_a_lost_answer_again(lost: int) -> None:
    collector = Losing(lost)
    seen = watching(collector, 60)
    assert [next(seen), next(seen)] == [{"host-1": {"config.service": "whole"}}] * 2
    assert len(collector.partial) == 2, "the subscription of the lost answer was used again"


def test_reports_a_server_that_is_lost_twice() -> None:
    with pytest.raises(Unreachable, match="wait for changes"):
        next(watching(Losing(1, 2), 60))


class Forgetting(Collector):
    """A server that removes objects: ``states`` are those of tasks, ``gone`` the objects of its later answers."""

    def __init__(self, states: dict[str, str], *gone: Any, faulty: bool = False) -> None:
        super().__init__()
        self.states, self.gone, self.faulty, self.watched = states, list(gone), faulty, list[str]()

    def CreateFilter(self, spec: Any, partialUpdates: bool) -> None:  # noqa: N802, N803 # as pyVmomi spells it
        self.watched = [one.obj._moId for one in spec.objectSet]
        if missing := next((ref for ref in self.gone if self.waits and ref._moId in self.watched), None):
            raise vmodl.fault.ManagedObjectNotFound(obj=missing)

    def WaitForUpdatesEx(self, version: str, options: Any) -> Any:  # noqa: N802 # as pyVmomi spells it
        self.waits.append(options.maxWaitSeconds)
        if not version:
            changed = [self._change(vim.Task(key), state) for key, state in self.states.items() if key in self.watched]
            return SimpleNamespace(version="1", filterSet=[SimpleNamespace(objectSet=changed)])
        if self.faulty:
            raise vmodl.fault.ManagedObjectNotFound(obj=self.gone[0])
        left = [SimpleNamespace(obj=ref, kind="leave", changeSet=[]) for ref in self.gone]
        return SimpleNamespace(version="2", filterSet=[SimpleNamespace(objectSet=left)])

    @staticmethod
    def _change(ref: Any, state: str) -> Any:
        return SimpleNamespace(obj=ref, kind="enter", changeSet=[SimpleNamespace(name="info.state", val=state)])

    def RetrievePropertiesEx(self, specs: Any, _options: Any) -> Any:  # noqa: N802 # as pyVmomi spells it
        refs = [one.obj for one in specs[0].objectSet]
        if missing := next((ref for ref in refs if len(self.waits) > 1 and ref in self.gone), None):
            raise vmodl.fault.ManagedObjectNotFound(obj=missing)
        infos = [vim.TaskInfo(key=ref._moId, state=self.states[ref._moId]) for ref in refs]
        found = [
            SimpleNamespace(obj=ref, missingSet=[], propSet=[SimpleNamespace(name="info", val=info)])
            for ref, info in zip(refs, infos, strict=True)
        ]
        return SimpleNamespace(objects=found, token=None)


def forgetful(collector: Collector) -> Any:
    content = SimpleNamespace(propertyCollector=collector)
    params = {"timeout": 60, "username": "me"}
    return SimpleNamespace(server="vc", params=params, stub=SimpleNamespace(silent=False), content=content)


REBOOT, MACHINE, HOST = vim.Task("task-1"), vim.VirtualMachine("vm-1"), vim.HostSystem("host-1")


@pytest.mark.parametrize("faulty", [False, True])
def test_accepts_an_ended_task_that_vcenter_has_forgotten(faulty: bool) -> None:
    """A busy vCenter keeps the last 200 ended tasks, for ten minutes at most, and a server boots for longer."""
    server = forgetful(Forgetting({"task-1": "success"}, REBOOT, faulty=faulty))
    watched = properties.watch(server, [HOST, REBOOT], {vim.Task: ["info.state"]}, time.monotonic() + 60)

    values = [next(watched), next(watched)]

    assert values[1]["task-1"] == {"info.state": "success"}


def test_a_running_task_that_vanishes_is_an_error() -> None:
    server = forgetful(Forgetting({"task-1": "running"}, REBOOT))
    watched = properties.watch(server, [HOST, REBOOT], {vim.Task: ["info.state"]}, time.monotonic() + 60)
    next(watched)

    with pytest.raises(Failed, match="task-1: could not watch it: it was removed meanwhile"):
        next(watched)


@pytest.mark.parametrize("faulty", [False, True])
def test_only_removable_objects_may_vanish(faulty: bool) -> None:
    def watching_machine(removable: Any) -> Iterator[dict[str, Any]]:
        server = forgetful(Forgetting({}, MACHINE, faulty=faulty))
        return properties.watch(server, [MACHINE], ["name"], time.monotonic() + 60, removable=removable)

    watched = watching_machine(vim.VirtualMachine)

    assert [dict(next(watched)), dict(next(watched))] == [{"vm-1": {}}, {}]
    strict = watching_machine(())
    next(strict)
    with pytest.raises(Failed, match="removed meanwhile"):
        next(strict)


def test_reads_each_task_result_when_it_ends() -> None:
    """The first of many moves may be forgotten before the last one ends."""
    first, last = vim.Task("task-1"), vim.Task("task-2")

    class Moving(Forgetting):
        def WaitForUpdatesEx(self, version: str, options: Any) -> Any:  # noqa: N802 # as pyVmomi spells it
            update = super().WaitForUpdatesEx(version, options)
            if version:
                self.states["task-2"] = "success"
                update.filterSet[0].objectSet.append(self._change(last, "success"))
            return update

    server = forgetful(Moving({"task-1": "success", "task-2": "running"}, first))
    started = [tasks.Started(task, task._moId, "move it") for task in (first, last)]

    assert [info.key for info in tasks.wait_all(server, started, 60)] == ["task-1", "task-2"]


class Vanishing:
    """A property collector on whose server some virtual machines were removed after they had been listed."""

    def __init__(self, *gone: str) -> None:
        self.gone, self.requests = set(gone), list[list[str]]()

    def RetrievePropertiesEx(self, specs: Any, _options: Any) -> Any:  # noqa: N802 # as pyVmomi spells it
        refs = [one.obj for one in specs[0].objectSet]
        self.requests.append([ref._moId for ref in refs])
        if missing := next((ref for ref in refs if ref._moId in self.gone), None):
            raise vmodl.fault.ManagedObjectNotFound(obj=missing)
        found = [
            SimpleNamespace(obj=ref, missingSet=[], propSet=[SimpleNamespace(name="name", val=ref._moId)])
            for ref in refs
        ]
        return SimpleNamespace(objects=found, token=None)


def reading(collector: Vanishing, kind: Any, *keys: str) -> dict[str, Any]:
    session: Any = SimpleNamespace(server="vc", content=SimpleNamespace(propertyCollector=collector))
    return properties.read_many(session, [kind(key) for key in keys], ["name"])


def test_omits_machines_that_vanished_after_the_listing() -> None:
    collector = Vanishing("vm-2", "vm-4")
    assert list(reading(collector, vim.VirtualMachine, "vm-1", "vm-2", "vm-3", "vm-4")) == ["vm-1", "vm-3"]
    assert [len(one) for one in collector.requests] == [4, 3, 2]
    assert reading(Vanishing("vm-1", "vm-2"), vim.VirtualMachine, "vm-1", "vm-2") == {}


@pytest.mark.parametrize(("kind", "keys"), [(vim.VirtualMachine, ["vm-1"]), (vim.HostSystem, ["host-1", "host-2"])])
def test_reports_a_removed_host_or_single_machine(kind: Any, keys: list[str]) -> None:
    with pytest.raises(Failed, match="removed meanwhile"):
        reading(Vanishing(keys[0]), kind, *keys)


@pytest.mark.parametrize("keys", [["vm-1"], ["vm-1", "vm-2"]])
def test_reports_an_answer_without_any_requested_object(keys: list[str]) -> None:
    class Empty(Vanishing):
        def RetrievePropertiesEx(self, specs: Any, _options: Any) -> None:  # noqa: N802 # as pyVmomi spells it
            pass

    with pytest.raises(Failed, match=r"vc: could not read .* its answer names none of them; run again"):
        reading(Empty(), vim.VirtualMachine, *keys)
