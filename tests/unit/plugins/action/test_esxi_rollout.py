"""The action of a rollout: its options, and its result from the results of its modules."""

from __future__ import annotations

import time
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from plugins.action import esxi_rollout
from plugins.module_utils.core import observer_clock
from plugins.module_utils.durable.program import Program
from plugins.module_utils.errors import CollectionError
from plugins.module_utils.hosts.rollout import after_canary, plan_hosts, require_positive, require_possible
from plugins.module_utils.maintenance.window_limits import WindowLimits
from plugins.plugin_utils import running_jobs
from tests.unit.simulation.host import Profile
from tests.unit.simulation.world import Cluster


def given(**changed: Any) -> dict[str, Any]:
    validated = ArgumentSpecValidator(esxi_rollout.ARGUMENTS).validate(
        {"cluster": "gpu", "profile": DESIRED, **changed}
    )
    assert not validated.error_messages
    return dict(validated.validated_parameters)


BY_MOVES = {"by": "move", "checkpoint_wait": 3600, "checkpoint_signal": "", "accept_repeat_s": 0.0, "spare": None}
DESIRED = Profile(1, leaves=False).option


def world() -> Cluster:
    """Return a cluster with a host that leaves service, one that is changed in service, and one without work."""
    cluster = Cluster(2, 0, 0)
    cluster.site.hosts["esx3"].is_applied = True
    return cluster


def idle() -> Cluster:
    cluster = Cluster(0)
    cluster.site.hosts["esx1"].is_applied = True
    return cluster


def result(**options: Any) -> dict[str, Any]:
    how = esxi_rollout.options_of(given(**options))
    return esxi_rollout.result_of(plan_hosts(world(), how), how, is_changed=True)


def test_result_groups_hosts_and_plans_a_window() -> None:
    planned = result(accepted_stops=["red_alarm"], max_out_of_service=2, power_off=True)
    assert (planned["hosts"], planned["in_service"], planned["leaving"]) == (
        ["esx1", "esx2", "esx3"],
        ["esx2"],
        ["esx1"],
    )
    assert planned["window"] == {
        "hosts": ["esx1"],
        "reboots": {"esx1": 2},
        "profile": DESIRED,
        "host_profiles": {},
        "maintenance_timeout": 3600,
        "reboot_timeout": 1800,
        "power_off": True,
        "moved_by": "drs",
        "non_disruptive": False,
        "max_out_of_service": 2,
        "accepted": ["red_alarm"],
        "take_over": [],
        "image": {},
        "only_hosts": [],
        "canary": "",
        "settings": "",
        **asdict(WindowLimits()),
        **BY_MOVES,
        "notify": [],
        "requires_ack": False,
        "accept_other_jobs": False,
    }


@pytest.mark.parametrize(
    ("canary", "options", "is_changed", "sentence"),
    [
        ("", {}, True, ""),
        ("esx1", {"continue_after_canary": True}, True, ""),
        ("esx1", {}, False, ""),
        (
            "esx1",
            {},
            True,
            "The profile is active on the canary esx1. Run again with continue_after_canary=true for the",
        ),
        ("esx9", {}, False, "Cluster gpu waits, because the canary esx9 belongs to another cluster. Run again with"),
    ],
)
def test_result_shows_how_to_continue_after_a_canary(
    canary: str, options: dict[str, Any], is_changed: bool, sentence: str
) -> None:
    how = esxi_rollout.options_of(given(canary=canary, **options))

    text = after_canary(plan_hosts(world(), how), how, is_changed=is_changed)

    assert text.startswith(sentence) and bool(text) is bool(sentence)


@pytest.mark.parametrize("name", ["max_out_of_service", "maintenance_timeout", "reboot_timeout", "lock_ttl"])
def test_error_names_the_role_option_out_of_range(name: str) -> None:
    how = esxi_rollout.options_of(given(**{name: 0}))
    with pytest.raises(CollectionError, match=f"gpu: esxi_host_{name} is 0, but must be 1 or more"):
        require_positive(how.change)


@pytest.mark.parametrize(("differs", "is_refused"), [(True, True), (False, False)])
def test_playbook_refusal_applies_only_if_a_host_differs(differs: bool, is_refused: bool) -> None:
    cluster = Cluster(0) if differs else idle()
    how = esxi_rollout.options_of(given(refusal="gpu: the training jobs of w1 are unknown"))
    plan = plan_hosts(cluster, how)
    assert plan["refusals"] == (["gpu: the training jobs of w1 are unknown"] if is_refused else [])
    if is_refused:
        with pytest.raises(CollectionError, match="the training jobs of w1 are unknown"):
            require_possible(plan)


@pytest.mark.parametrize(
    ("window", "named"),
    [
        ({"not_after": "06:00", "requires_ack": True}, "window_not_after, window_requires_ack"),
        ({"max_minutes": 60}, "window_max_minutes"),
        ({"accept_other_jobs": "true", "notify": [{"url": "https://chat"}]}, "accept_other_jobs, window_notify"),
        ({"not_after": "", "accept_other_jobs": "false", "max_minutes": "0"}, ""),
    ],
)
def test_rollout_refuses_limits_that_only_windows_obey(window: dict[str, Any], named: str) -> None:
    job = {"run_dir": "/runs/a", "others": [{"title": "b"}]}
    without, around = (esxi_rollout.options_of(given(window=window, training=each)) for each in ({}, job))

    (refused,) = plan_hosts(world(), without)["refusals"] or [""]

    assert refused.partition(": only a")[0] == (f"Cluster gpu: could not obey {named}" if named else "")
    assert plan_hosts(world(), around)["refusals"] == plan_hosts(idle(), without)["refusals"] == []
    assert (
        esxi_rollout.result_of(plan_hosts(world(), around), around, is_changed=False)["window"].items()
        >= {
            "max_minutes": int(window.get("max_minutes", 0)),
            "accept_other_jobs": window.get("accept_other_jobs") == "true",
            "other_jobs": [{"title": "b"}],
            "ignored_jobs": "",
            "unread_is_idle": True,
        }.items()
    )


class FakeModules:
    """Modules with fixed results."""

    def __init__(self) -> None:
        self.environment: dict[str, str] = {}
        self.results: dict[str, Any] = {
            "cluster_lock": {"changed": True, "warnings": ["the lock of bob was taken over"]},
            "esxi_profile": {"changed": False, "diff": [{"before": {}, "after": {"a": 1}}], "warnings": ["w"]},
            "esxi_power": {"changed": True, "diff": [{"before": {}, "after": {"maintenance": True}}]},
        }

    def here(self, name: str, _options: dict[str, Any]) -> dict[str, Any]:
        return dict(self.results[name])

    planned = here


def test_result_collects_changes_diffs_and_warnings_of_modules() -> None:
    modules: Any = FakeModules()
    one = esxi_rollout.RolloutWorld(modules, "gpu")
    one.here("cluster_lock", {})
    one.planned("esxi_profile", {})
    one.here("esxi_profile", {})
    assert not one.changed, "a lock does not change hosts"
    one.here("esxi_power", {})
    assert one.changed
    assert one.diff == [{"before": {}, "after": {"a": 1}}], "each difference of a profile once"
    assert list(one.warnings) == ["the lock of bob was taken over", "w"]


def test_action_reads_the_jobs_with_the_given_options(monkeypatch: pytest.MonkeyPatch) -> None:
    modules: Any = FakeModules()
    monkeypatch.setattr(running_jobs, "again", lambda *given: {"unread": "", "given": given})
    how = esxi_rollout.options_of(given(job_check={"cluster": "gpu"}))

    answer = esxi_rollout.RolloutWorld(modules, "gpu").jobs_on_workers(how.job_check)

    assert answer["given"] == (modules, {"cluster": "gpu"})


def test_setting_the_clock_does_not_affect_rollout_times(monkeypatch: pytest.MonkeyPatch) -> None:
    system, passed = time.time, list[float]()

    def carried_out(p: Program, _world: Any, how: Any) -> dict[str, Any]:
        began = p.now()
        monkeypatch.setattr(observer_clock.time, "time", lambda: system() + 3600.0)
        passed.append(p.now() - began)
        return plan_hosts(world(), how)

    monkeypatch.setattr(esxi_rollout, "rollout", carried_out)
    modules: Any = FakeModules()
    one: Any = esxi_rollout.RolloutWorld(modules, "gpu")

    esxi_rollout.ActionModule._rollout(None, one, given())

    assert passed == [pytest.approx(0.0, abs=60.0)]


@pytest.mark.parametrize(("is_check", "compared"), [(True, []), (False, [{"cluster": "gpu"}])])
def test_plan_of_a_run_compares_hosts_with_image(is_check: bool, compared: list[Any]) -> None:
    """A run that was killed after it had set the image left the comparison with the earlier image."""
    calls: list[tuple[str, dict[str, Any]]] = []

    class Recorded(FakeModules):
        def here(self, name: str, options: dict[str, Any]) -> dict[str, Any]:
            calls.append((name, options))
            return {"changed": False, "hosts": []}

        def planned(self, _name: str, _options: dict[str, Any]) -> dict[str, Any]:
            return {"changed": False, "hosts": []}

    modules: Any = Recorded()
    action: Any = SimpleNamespace(_task=SimpleNamespace(check_mode=is_check))
    one = esxi_rollout.RolloutWorld(modules, "gpu")

    esxi_rollout.ActionModule._plan(action, one, given(image={"components": {"manager": "2"}}))

    assert [options for name, options in calls if name == "esxi_image"] == compared
