"""A test, a window or an observation continues with equal settings, except for those that are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.hosts.change_hosts import HostChangeOptions
from plugins.module_utils.hosts.rollout import OPTIONS_OF_WINDOW, RolloutOptions, window_of
from plugins.module_utils.trials.folder import continued_settings as continuing
from plugins.plugin_utils.trial import options_of
from tests.unit.simulation.world import SETTINGS

ONE = Path("/tests/gpu-1")
LIMITS = dict.fromkeys(OPTIONS_OF_WINDOW)
HOW = RolloutOptions(HostChangeOptions("gpu", {"level": 1}), window=LIMITS)
WINDOW = {**window_of({"leaving": ["esx1"], "reboots": {"esx1": 1}}, HOW), "other_jobs": []}
KINDS = {"window": {**SETTINGS, "window": WINDOW}, "observe": {**SETTINGS, "observe": {"seconds": 60}}}
ALLOWED = {
    "test": {*continuing.PRESENT, *continuing.KEPT},
    "window": {*continuing.PRESENT_IN_WINDOW, *continuing.KEPT_IN_WINDOW},
}


def other(value: object) -> Any:
    """Return another value than the given one."""
    return {"other": 1} if isinstance(value, dict) else ["other"] if isinstance(value, list) else "other"


def reason(before: dict[str, Any], requested: dict[str, Any]) -> str:
    """Return why a run is not continued; empty if it is."""
    try:
        continuing.refuse_other(ONE, before, requested)
    except Refused as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", sorted({*options_of()} - {"folder", "dir", "cluster"}))
@pytest.mark.parametrize("before", [SETTINGS, KINDS["window"], KINDS["observe"]], ids=["test", "window", "observation"])
def test_a_run_continues_with_equal_options_only(before: dict[str, Any], name: str) -> None:
    if name in ("window", "observe", "run_dir", "launcher", "kubernetes", "slurm"):
        return
    refused = reason(before, {**before, name: other(before[name])})

    assert (f"{name} was {json.dumps(before[name] or None)} and is" in refused) == (name not in ALLOWED["test"])
    assert bool(refused) == (name not in ALLOWED["test"]), refused


@pytest.mark.parametrize("name", sorted(WINDOW))
def test_a_window_continues_with_equal_settings_only(name: str) -> None:
    requested = {**KINDS["window"], "window": {**WINDOW, name: other(WINDOW[name])}}

    refused = reason(KINDS["window"], requested)

    assert bool(refused) == (name not in ALLOWED["window"]), refused
    assert not refused or (f"{name} was " in refused and continuing.EITHER in refused)
    assert continuing.is_replaced(KINDS["window"], _decided(requested, "new")) == bool(refused)


def _decided(requested: dict[str, Any], decision: str) -> dict[str, Any]:
    return {**requested, "window": {**requested["window"], "settings": decision}}


@pytest.mark.parametrize("decision", ["old", "new"])
def test_a_decision_continues_a_window_with_other_settings(decision: str) -> None:
    requested = _decided({**KINDS["window"], "window": {**WINDOW, "image": {"base_image": "8.0.3"}}}, decision)

    assert reason(KINDS["window"], requested) == ""
    assert continuing.is_replaced(KINDS["window"], requested) == (decision == "new")
    assert not continuing.is_replaced(KINDS["window"], _decided(KINDS["window"], decision)), "nothing differs"


@pytest.mark.parametrize(
    ("named", "is_another"),
    [
        ({"run_dir": "/run/two"}, True),
        ({"launcher": "w2"}, True),
        ({"kubernetes": {"name": "bert"}, "run_dir": ""}, True),
        ({"slurm": {"job": 4711}, "run_dir": ""}, True),
        ({"run_dir": "", "launcher": ""}, False),
        ({"records": "/elsewhere", "user": "anna"}, False),
    ],
)
@pytest.mark.parametrize("kind", ["test", "window", "observe"])
def test_another_job_is_not_taken_for_the_first(kind: str, named: dict[str, Any], is_another: bool) -> None:
    before = SETTINGS if kind == "test" else KINDS[kind]
    requested = {**before, **named}

    refused = reason(before, requested)

    assert ("its job was /run/one on w1 and is " in refused) == is_another, refused
    if kind == "window":
        assert bool(reason(KINDS[kind], _decided(requested, "new"))) == is_another, "a window has one job"
        assert reason(KINDS[kind], _decided(requested, "old")) == ""
        assert ("window_action=end" in refused) == is_another
    else:
        assert (continuing.WITHOUT_JOB in refused) == is_another


@pytest.mark.parametrize(("number", "is_another"), [(4711, False), ("4711_2", False), ("4711_1", True), (4712, True)])
def test_number_of_job_array_names_its_running_task(number: object, is_another: bool) -> None:
    before = {**SETTINGS, "slurm": {"job": "4711_2"}}
    assert bool(reason(before, {**before, "slurm": {"job": number}})) is is_another


def test_window_continues_around_the_attempt_that_it_started() -> None:
    started = {"run_dir": "/runs/one-2", "launcher": "w1", "kubernetes": {}}
    before = {**KINDS["window"], "run_dir": "/runs/one", "launcher": "w1", "restart": {"run": "one"}}
    later = {**before, "run_dir": "/runs/one-2", "restart": {"run": "one-2"}}
    for values, is_another in (
        ({}, True),
        ({"started again": started}, False),
        ({"started again": {"why": "x"}}, True),
    ):
        refused = reason(continuing.with_next_attempt({"start": before, **values}), later)
        assert ("its job was /runs/one on w1 and is /runs/one-2 on w1 now" in refused) == bool(refused) == is_another


def test_identifies_kubernetes_jobs_by_name_and_namespace() -> None:
    before = {**SETTINGS, "kubernetes": {"name": "bert", "names": {"n1": "w1"}, "kubeconfig": "a"}}
    for named, is_same in ({"namespace": "default"}, True), ({"names": {}}, True), ({"namespace": "ml"}, False):
        refused = reason(before, {**before, "kubernetes": {"name": "bert", **named}})
        assert (refused == "") == is_same, refused


def test_refuses_other_settings_than_the_recorded_ones() -> None:
    requested = {"cluster": "gpu", "dir": "/tests", "window": WINDOW, "observe": {}, "run_dir": "", "kubernetes": {}}

    assert reason(KINDS["window"], requested) == ""
    assert "began with other settings" in reason(KINDS["window"], {**requested, "window": {**WINDOW, "canary": "e1"}})


def test_present_settings_take_effect_in_a_continued_run() -> None:
    requested = {**KINDS["window"], "move_timeout": 7, "window": {**WINDOW, "reboot_timeout": 7, "image": 1}}

    settings = continuing.continued(KINDS["window"], requested)

    changed = {**WINDOW, "reboot_timeout": 7}
    assert settings == {**KINDS["window"], "move_timeout": 7, "window": changed}
    assert continuing.continued(SETTINGS, {**SETTINGS, "window": {}})["window"] == {}
