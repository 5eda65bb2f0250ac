"""The plans that a vMotion test asks for, and their lines."""

from __future__ import annotations

from typing import Any

from plugins.module_utils.trials.steps.opening import plan_lines, plan_options
from tests.unit.simulation.world import SETTINGS

FIRST = {"worker": "w1", "source": "a", "target": "c"}
SECOND = {"worker": "w2", "source": "b", "target": "d"}


def test_plans_waves_only_for_tests_with_the_option() -> None:
    assert "max_moves" not in plan_options(SETTINGS)
    several = {**SETTINGS, "max_moves": 2}
    assert (plan_options(several)["max_moves"], plan_options(several)["stun_budget"]) == (2, 100.0)
    assert "max_moves" not in plan_options({**several, "window": {"hosts": ["esx1"]}})


def test_window_plan_names_its_kind_of_evacuation() -> None:
    window: dict[str, Any] = {**SETTINGS, "window": {"hosts": ["esx1", "esx2"], "non_disruptive": True}}
    assert plan_options(window)["non_disruptive"] is True and plan_options(window)["empty_hosts"] == ["esx1", "esx2"]
    assert plan_options(window, ["esx2"])["empty_hosts"] == ["esx2"]
    assert "non_disruptive" not in plan_options({**SETTINGS, "window": {"hosts": ["esx1"]}})


def test_each_wave_has_its_lines() -> None:
    together = {
        "moves": [{**FIRST, "wave": 1}, {**SECOND, "wave": 1}],
        "waves": [{"wave": 1, "moves": 2, "reason": ""}],
    }
    assert plan_lines(together) == ["1. 2 moves at once", "   w1: a -> c", "   w2: b -> d"]
    waves = [
        {"wave": 1, "moves": 1, "waits": "w2", "reason": "its stun is unknown"},
        {"wave": 2, "moves": 1, "reason": ""},
    ]
    alone = {"moves": [{**FIRST, "wave": 1}, {**SECOND, "wave": 2}], "waves": waves}
    lines = ["1. one move", "   w1: a -> c", "   w2 waits: its stun is unknown", "2. one move", "   w2: b -> d"]
    assert plan_lines(alone) == lines


def test_each_emptied_host_has_its_lines() -> None:
    stages = [{"host": "esx3", "moves": []}, {"host": "esx1", "moves": [FIRST]}]
    assert plan_lines({"stages": stages}) == [
        "1. esx3 is changed, no worker runs on it",
        "2. esx1 is changed",
        "   before: w1: a -> c",
    ]
