# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An observation finds and judges the moves of others, writes nothing to vCenter, and ends with its time or the job."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plugins.module_utils.vmotion.test.judging import verdict_input, with_earlier
from plugins.module_utils.vmotion.test.next_step import kind_of, state_of
from plugins.module_utils.vmotion.test.outcome import outcome, passed
from plugins.module_utils.vmotion.test.step import RunCommand
from tests.fakes.trial import Killed, World

OBSERVE = {"observe": {"seconds": 60}, "duration": 600, "drs_override": "", "guest_checks": False}


class Observed(World):
    """Workers that DRS moves; every call that writes to vCenter is an error."""

    def __init__(self, **settings: Any) -> None:
        self.moves_at = [3]
        self.asked_at = -1
        self.rolls, self.can_roll, self.answer = 0, True, {"rc": 0}
        self.commands: list[tuple[tuple[str, ...], dict[str, Any]]] = []
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
        if self.calls["training_wait"] == self.asked_at:
            return {"asked": True}
        self.now += options["timeout"]
        if self.calls["training_wait"] in self.moves_at:
            self._arrive(self._begin("w1", "esx3"))
        return {"failed": True, "msg": "not all ranks have advanced"}

    def continuity_verdict(self, options: dict[str, Any]) -> dict[str, Any]:
        files = {} if "folder" in options else {"files": ["/test/verdict-2.json", "/test/timeline-2.html"]}
        return {**self.verdict, **files}

    def roll(self) -> dict[str, Any]:
        self.rolls += 1
        return {"rolled": self.can_roll}

    def run_command(self, command: RunCommand) -> dict[str, Any]:
        self.commands.append((command.words, json.loads(command.text)))
        return dict(self.answer)

    def cluster_lock(self, _options: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError("an observation takes no lock")

    worker_rules = vmotion = esxi_power = cluster_lock


def test_a_move_of_others_is_found_and_the_job_is_judged_until_the_time_ends() -> None:
    world = Observed()
    world.verdict.update(moved="none")
    state = world.carry_out()
    assert [(move["worker"], move["external"]) for move in state.others] == [("w1", True)]
    assert not state.moves and outcome(state, "/test") == ""
    assert passed(state, "/test") == "Continuous; the evidence is in /test."
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


def test_each_new_power_event_is_a_line() -> None:
    event = {"worker": "w1", "at": 5.0, "by": "eve", "what": "VmPoweredOffEvent"}
    state = state_of([])
    assert kind_of("others").messages({"moves": [], "power": [event]}, state) == ["w1: VmPoweredOffEvent, by eve"]
    state.power = [{**event, "at": 5.002}]
    assert kind_of("others").messages({"moves": [], "power": [event]}, state) == []


def test_an_observation_ends_on_request_with_its_verdict() -> None:
    world = Observed()
    world.asked_at, world.moves_at = 5, []
    state = world.carry_out()
    assert world.calls["training_wait"] == 5 and state.is_asked_to_end
    assert state.end is not None and state.end["passed"] and not world.watched


MANY = {"observe": {"seconds": 60, "keep": 600}, "duration": 7200, "drs_override": "", "guest_checks": False}
ROW = {"worker": "w1", "moved": True, "gap_s": 12.0}


def test_old_records_are_dropped_once_they_are_judged_and_their_moves_stay_in_the_verdict() -> None:
    world = Observed(**MANY)
    world.verdict.update(moves=[ROW], notes=["moved by others"])
    state = world.carry_out()
    assert 8 <= world.rolls <= 12 and state.windows == world.rolls
    (window,) = [one for one in state.earlier if one["moves"]]
    assert [move["worker"] for move in window["moves"]] == ["w1"] and window["rows"] == [ROW]
    assert window["files"] == ["verdict-2.json", "timeline-2.html"]
    assert state.others == [] and state.at["w1"] == "esx3", "the next window begins where the move led"
    assert verdict_input(state)["moves"] == []
    merged = with_earlier({**world.verdict, "moves": []}, state)
    assert (merged["windows"], merged["verdict"], len(merged["earlier"])) == (state.windows + 1, "continuous", 1)


def test_a_clock_of_vcenter_that_drifts_over_a_week_was_not_set() -> None:
    class Drifting(Observed):
        def vmotion_info(self, options: dict[str, Any]) -> dict[str, Any]:
            return {**super().vmotion_info(options), "clock_offset_s": self.now / 100}

    state = Drifting(**MANY).carry_out()
    assert state.windows >= 8 and state.server_clock_set_s == 0


def test_a_verdict_has_the_worst_of_its_windows_and_each_sentence_once() -> None:
    state = Observed(**MANY).carry_out()
    state.earlier = [
        {**state.earlier[0], "verdict": "inconclusive", "unproven": ["records: none"], "notes": ["a note"]}
    ] * 2
    merged = with_earlier({"verdict": "continuous", "unproven": [], "notes": ["a note"]}, state)
    assert (merged["verdict"], merged["unproven"], merged["notes"]) == ("inconclusive", ["records: none"], ["a note"])


def test_nothing_is_dropped_while_a_move_has_not_ended() -> None:
    world = Observed(**MANY)
    world.moves_at = []
    world._begin("w1", "esx3")
    world.chains[0]["started"] = 2000.0
    assert world.carry_out().windows <= 1 and world.rolls == 0


def test_without_a_watch_nothing_is_dropped() -> None:
    world = Observed(**MANY)
    world.can_roll = False
    state = world.carry_out()
    assert state.windows == 0 and state.earlier == [] and [one["worker"] for one in state.others] == ["w1"]


HOOKED = {**OBSERVE, "observe": {"seconds": 60, "hook": ["/bin/notify", "--topic"], "stall_seconds": 10}}


def test_the_command_gets_each_stall_once() -> None:
    world = Observed(**HOOKED)
    world.verdict.update(moves=[ROW])
    world.carry_out()
    ((words, content),) = world.commands
    assert words == ("/bin/notify", "--topic") and (content["cluster"], content["verdict"]) == ("gpu", "continuous")
    (event,) = content["events"]
    assert (event["kind"], event["gap_s"], event["move"]["worker"]) == ("stalled", 12.0, "w1")
    assert event["detail"] == "w1 moved from esx1 to esx3, and the job stood still for 12.0 s"


def test_the_command_gets_a_breach_before_the_observation_ends() -> None:
    world = Observed(**HOOKED)
    world.verdict.update(verdict="broken", breaches=[{"kind": "died", "detail": "the job died"}])
    state = world.carry_out()
    ((_words, content),) = world.commands
    assert [(event["kind"], event["detail"]) for event in content["events"]] == [("broken", "the job died")]
    assert state.is_over


def test_a_command_that_fails_is_a_line_and_does_not_end_the_observation() -> None:
    world = Observed(**HOOKED)
    world.verdict.update(moves=[ROW])
    world.answer = {"rc": 3, "msg": "/bin/notify: the command ended with 3: no route"}
    state = world.carry_out()
    assert outcome(state, "/test") == ""
    (entry,) = [entry for entry in world.journal if entry["entry"] == "hook"]
    assert kind_of("hook").messages(entry, state) == ["/bin/notify: the command ended with 3: no route"]


def test_without_a_command_or_below_the_limit_none_is_run() -> None:
    world = Observed(**{**HOOKED, "observe": {"seconds": 60}})
    world.verdict.update(moves=[ROW])
    world.carry_out()
    short = Observed(**HOOKED)
    short.verdict.update(moves=[{**ROW, "gap_s": 9.0}])
    short.carry_out()
    assert world.commands == short.commands == []
