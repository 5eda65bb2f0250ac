"""Moves as a test keeps them, the hosts after them, and the lines of a window by restart."""

from __future__ import annotations

from typing import Any

from plugins.module_utils.trials.evidence.move_lines import hosts_after, observed
from plugins.module_utils.trials.evidence.restart_lines import lines
from tests.unit.simulation.world import World

PLANNED: Any = {"worker": "w1", "source": "esx1", "target": "esx2"}


def test_move_that_was_refused_keeps_its_reason_and_ranks() -> None:
    refused = observed({"msg": "no room"}, PLANNED, {"w1": [2, 3]})

    assert (refused["ok"], refused["said"], refused["ranks"]) == (False, "no room", [2, 3])
    assert observed({}, PLANNED, {})["said"] == "it was not moved"


def test_move_of_vcenter_keeps_its_end_and_ranks() -> None:
    made = {**PLANNED, "ok": True, "completed": 9.0}

    assert observed({"move": made}, PLANNED, {"w1": [2]}) == {**made, "ranks": [2]}


def test_last_completed_move_decides_the_host() -> None:
    home: Any = {"worker": "w1", "target": "esx1", "ok": True, "completed": 9.0}
    away: Any = {"worker": "w1", "target": "esx2", "ok": True, "completed": 5.0}
    failed: Any = {"worker": "w1", "target": "esx3", "ok": False, "completed": 12.0}

    assert hosts_after({"w1": "esx1", "w2": "esx4"}, [home, away, failed]) == {"w1": "esx1", "w2": "esx4"}


def test_restart_shows_its_parts_and_workers_on_other_hosts() -> None:
    facts = World().carry_out()
    facts.at = {"w1": "esx1", "w2": "esx2"}
    facts.restart = {
        "started": {"run": "two"},
        "parts": [["workers off", 12.4]],
        "now_on": {"w1": "esx3", "w2": "esx2"},
    }

    assert list(lines(facts)) == [
        "the job goes on as two",
        "without the job: workers off 12 s",
        "w1 was powered on on esx3, it was on esx1",
    ]
