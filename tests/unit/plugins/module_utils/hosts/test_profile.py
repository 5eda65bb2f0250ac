"""A host profile: several subjects planned and applied as one."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from plugins.module_utils import runner
from plugins.module_utils.hosts.part import PlannedSubject
from plugins.module_utils.hosts.profile import Profile
from plugins.module_utils.plan import REBOOT, Plan
from tests.fakes.module import FakeModule, FakeSubject

HOST: Any = SimpleNamespace(name="esx1")


def set_on(current: Mapping[str, Any]) -> Plan:
    return Plan(current, {**current, "on": True}, needs=frozenset({REBOOT}), why=("it boots with it",))


def set_later(current: Mapping[str, Any]) -> Plan:
    return Plan(current, {**current, "on": True}, needs=frozenset({REBOOT}), later=frozenset({"on"}))


def test_plans_parts_together_with_keys_naming_them() -> None:
    parts = [
        PlannedSubject("a", FakeSubject("esx1", {"on": False}), set_on),
        PlannedSubject("b", FakeSubject("esx1", {"on": True}), set_on),
    ]
    plan = Profile(HOST, parts).plan({"a": {"on": False}, "b": {"on": True}})
    assert [change.key for change in plan.changes] == ["a: on"]
    assert plan.why == ("a: it boots with it", "b: it boots with it")
    assert plan.reboots == 1


def test_only_the_parts_that_are_due_are_applied() -> None:
    now, later, settled = (FakeSubject("esx1", {"on": on}) for on in (False, False, True))
    parts = [
        PlannedSubject("now", now, set_on),
        PlannedSubject("later", later, set_later),
        PlannedSubject("settled", settled, set_on),
    ]
    profile = Profile(HOST, parts)
    result = runner.converge(FakeModule(), runner.Work(subjects=[profile], refresh=lambda _subjects: None))
    assert (now.writes, later.writes, settled.writes) == ([{"on": True}], [], [])
    (host,) = result["hosts"]
    assert (host["changed"], host["reboots"], host["needs"]) == (True, 2, ["reboot"])
