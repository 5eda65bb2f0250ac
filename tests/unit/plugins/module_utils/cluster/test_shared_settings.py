"""Settings that others share: what would change, as which type, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import VmomiSupport, vim

from plugins.module_utils.cluster import shared_settings
from plugins.module_utils.cluster.shared_settings import DrsOptions, VcenterOptions
from plugins.module_utils.errors import Refused
from plugins.module_utils.plan import Plan
from plugins.module_utils.vsphere import tasks

HOT = "vgpu.hotmigrate.enabled"
KINDS = {
    "a.flag": vim.option.BoolOption(supported=True, defaultValue=False),
    "a.number": vim.option.IntOption(min=0, max=9, defaultValue=1),
    "a.long": vim.option.LongOption(min=0, max=9, defaultValue=1),
    "a.text": vim.option.StringOption(defaultValue=""),
}


class FakeSettings:
    """The options of a vCenter."""

    def __init__(self, **values: Any) -> None:
        self.values = {key.replace("__", "."): value for key, value in values.items()}
        self.supportedOption = [SimpleNamespace(key=key, optionType=kind) for key, kind in KINDS.items()]
        self.written: list[Any] = []

    def QueryOptions(self, name: str) -> list[Any]:  # noqa: N802 # as pyVmomi spells it
        if name not in self.values:
            raise vim.fault.InvalidName(name=name)
        return [vim.option.OptionValue(key=name, value=self.values[name])]

    def UpdateOptions(self, changedValue: list[Any]) -> None:  # noqa: N802, N803 # as pyVmomi spells it
        self.written += changedValue


def of_vcenter(settings: FakeSettings, *, allowed: bool = True, **expected: Any) -> tuple[VcenterOptions, Plan]:
    session: Any = SimpleNamespace(server="vcenter.lab", content=SimpleNamespace(setting=settings))
    given = {key.replace("__", "."): value for key, value in expected.items()}
    subject = VcenterOptions(session, given, allowed=allowed)
    return subject, subject.plan(subject.read())


@pytest.mark.parametrize(
    ("key", "given", "planned"),
    [("a.flag", "yes", True), ("a.number", "0x5", 5), ("a.text", 5, "5"), (HOT, "true", True), ("new", 5, 5)],
)
def test_plans_options_with_the_type_on_the_server(key: str, given: Any, planned: Any) -> None:
    _subject, plan = of_vcenter(FakeSettings(), **{key: given})
    assert plan.after == {key: planned}
    assert type(plan.after[key]) is type(planned)


def test_an_option_with_the_desired_value_stays() -> None:
    assert of_vcenter(FakeSettings(a__flag=True), a__flag="true")[1].changes == ()


def test_long_numbers_are_written_as_such() -> None:
    settings = FakeSettings(a__long=1)
    subject, plan = of_vcenter(settings, a__long="5", a__flag=False)
    subject.apply(plan)
    assert {(one.key, one.value, type(one.value)) for one in settings.written} == {
        ("a.long", 5, VmomiSupport.long),
        ("a.flag", False, bool),
    }


def test_without_permission_a_change_is_listed_as_unmet() -> None:
    _subject, plan = of_vcenter(FakeSettings(vgpu__hotmigrate__enabled=False), allowed=False, **{HOT: True})
    (unmet,) = plan.unmet
    assert unmet.startswith(f"{HOT} is false for all of vCenter vcenter.lab and would become true")
    assert "allow_shared_settings: true" in unmet
    assert of_vcenter(FakeSettings(a__flag=True), allowed=False, a__flag=True)[1].unmet == ()


def test_refuses_an_invalid_value() -> None:
    with pytest.raises(Refused, match="'maybe' is not true or false; give it a bool value"):
        of_vcenter(FakeSettings(), a__flag="maybe")


@pytest.mark.parametrize("allowed", [True, False])
def test_keeps_an_option_that_should_be_unset(allowed: bool) -> None:
    settings = FakeSettings(vgpu__hotmigrate__enabled=True, a__number=2)

    _subject, plan = of_vcenter(settings, allowed=allowed, **{HOT: None, "a__number": 1})

    assert [(change.key, change.after) for change in plan.changes] == [("a.number", 1)]
    assert plan.warnings == (f"its option {HOT} stays true: vCenter does not remove options",)
    assert of_vcenter(FakeSettings(), **{HOT: None})[1] == Plan(before={HOT: None}, after={HOT: None})


def test_remembers_the_first_value() -> None:
    settings = FakeSettings(a__number=1)
    subject, _plan = of_vcenter(settings, a__number=2)
    settings.values["a.number"] = 2
    assert subject.read() == {"a.number": 2}
    assert subject.previous == {"a.number": 1}


class FakeCluster:
    """A cluster with options of DRS."""

    def __init__(self, **values: str) -> None:
        made = [vim.option.OptionValue(key=key, value=value) for key, value in values.items()]
        self.values = {"configurationEx": SimpleNamespace(drsConfig=vim.cluster.DrsConfigInfo(option=made))}
        self.sent: dict[str, str] = {}

    def ReconfigureComputeResource_Task(self, spec: Any, modify: bool) -> None:  # noqa: N802 # as pyVmomi spells it
        assert modify
        self.sent = {one.key: one.value for one in spec.drsConfig.option}


def of_drs(monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster, **desired: Any) -> tuple[DrsOptions, Plan]:
    monkeypatch.setattr(shared_settings, "find_cluster", lambda _session, _name, _paths: (cluster, cluster.values))
    monkeypatch.setattr(tasks, "wait", lambda *_args: None)
    session: Any = SimpleNamespace(server="vcenter.lab")
    subject = DrsOptions(session, "gpu", desired, allowed=True)
    return subject, subject.plan(subject.read())


def test_drs_options_become_strings_and_keep_other_options(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(Other="x", VgpuMMAutomationTimeoutSecs="60")
    subject, plan = of_drs(monkeypatch, cluster, VgpuMMAutomationTimeoutSecs=-1, PassthroughDrsAutomation=True)
    assert plan.after == {"VgpuMMAutomationTimeoutSecs": "-1", "PassthroughDrsAutomation": "true"}
    subject.apply(plan)
    assert cluster.sent == {"Other": "x", "VgpuMMAutomationTimeoutSecs": "-1", "PassthroughDrsAutomation": "true"}


def test_removes_a_drs_option_by_an_empty_string(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(Other="x")
    subject, plan = of_drs(monkeypatch, cluster, Other=None)
    subject.apply(plan)
    assert (plan.after, cluster.sent) == ({"Other": None}, {"Other": ""})
    assert of_drs(monkeypatch, FakeCluster(Other=""), Other="")[1].changes == ()
