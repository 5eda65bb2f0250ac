# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An observation finds and judges the moves of others, writes nothing to vCenter, and ends with its time or the job."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.vmotion.test.next_step import kind_of, state_of
from plugins.module_utils.vmotion.test.outcome import outcome
from tests.fakes.trial import Killed, World

OBSERVE = {"observe": {"seconds": 60}, "duration": 600, "drs_override": "", "guest_checks": False}


class Observed(World):
    """Workers that DRS moves; every call that writes to vCenter is an error."""

    def __init__(self, **settings: Any) -> None:
        self.moves_at = [3]
        super().__init__(**{**OBSERVE, **settings})

    def vmotion_plan(self, options: dict[str, Any]) -> dict[str, Any]:
        assert options["empty_hosts"] == []
        return {
            "stages": [],
            "moves": [],
            "not_applicable": {},
            "rdma": {},
            "profile": "",
            "slots": {},
            "at": dict(self.at),
        }

    def training_wait(self, options: dict[str, Any]) -> dict[str, Any]:
        if options["steps"] < 1000:
            return super().training_wait(options)
        self.now += options["timeout"]
        if self.calls["training_wait"] in self.moves_at:
            self._arrive(self._begin("w1", "esx3"))
        return {"failed": True, "msg": "not all ranks have advanced"}

    def cluster_lock(self, _options: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError("an observation takes no lock")

    worker_rules = vmotion = esxi_power = cluster_lock


def test_a_move_of_others_is_found_and_the_job_is_judged_until_the_time_ends() -> None:
    world = Observed()
    state = world.carry_out()
    assert [(move["worker"], move["external"]) for move in state.others] == [("w1", True)]
    assert not state.moves and outcome(state, "/test") == ""
    assert world.calls["continuity_verdict"] >= 10
    assert state.began + 600 <= world.now


def test_an_observation_ends_with_its_job() -> None:
    world = Observed()
    world.moves_at = []

    def end(_options: dict[str, Any]) -> dict[str, Any]:
        world.job = "finished" if world.calls["training_wait"] > 3 else "running"
        return {"job": {"state": world.job, "launcher": None}}

    world.training_job_info = end  # type: ignore[method-assign]
    state = world.carry_out()
    assert world.calls["training_wait"] == 4 and state.is_over


def test_a_breach_ends_the_observation() -> None:
    world = Observed()
    world.verdict.update(verdict="broken", breaches=[{"detail": "rank 1 lost 3 steps"}])
    state = world.carry_out()
    assert "rank 1 lost 3 steps" in outcome(state, "/test") and world.calls["training_wait"] <= 3


@pytest.mark.parametrize("entries", [6, 10, 14, 20])
def test_an_observation_that_was_killed_goes_on(entries: int) -> None:
    world = Observed()
    with pytest.raises(Killed):
        world.carry_out(entries)
    assert outcome(world.carry_out(), "/test") == ""


def test_each_new_move_is_a_line() -> None:
    move = {"worker": "w1", "source": "esx1", "target": "esx3", "chain": 7, "by": "VSPHERE.LOCAL\\admin"}
    state = state_of([])
    lines = kind_of("others").messages({"moves": [move], "power": []}, state)
    assert lines == ["w1: esx1 -> esx3, moved by VSPHERE.LOCAL\\admin"]
    state.others = [move]
    assert kind_of("others").messages({"moves": [move], "power": []}, state) == []
