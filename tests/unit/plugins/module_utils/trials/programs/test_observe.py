"""An observation finds and judges the moves of others, writes nothing to vCenter, and ends with its time or the job."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

import pytest

from plugins.module_utils.trials.evidence.outcome import passed
from plugins.module_utils.trials.evidence.verdict_input import verdict_input, with_earlier
from plugins.module_utils.watch import watcher
from tests.fakes.deaths import histories
from tests.unit.simulation.world import World, changed

OBSERVE: dict[str, Any] = {"observe": {"seconds": 60}, "duration": 600, "drs_override": "", "guest_checks": False}


class Observed(World):
    """Workers that DRS moves; every call that writes to vCenter is an error."""

    def __init__(self, deaths: Iterable[int] = (), **settings: Any) -> None:
        self.moves_at = [3]
        self.requested_at = -1
        self.rolls, self.can_roll, self.answer = 0, True, {"rc": 0}
        self.commands: list[tuple[tuple[str, ...], dict[str, Any]]] = []
        super().__init__(deaths, **{**OBSERVE, **settings})

    def wait_for_steps(self, options: dict[str, Any]) -> dict[str, Any]:
        if options["steps"] < 1000:
            return super().wait_for_steps(options)
        if self.calls["wait_for_steps"] == self.requested_at:
            return {"asked": True}
        self.site.pass_time(options["timeout"])
        if self.calls["wait_for_steps"] in self.moves_at:
            self.site.arrive(self.site.move("w1", "esx3", "drs"))
        return {"failed": True, "msg": "not all ranks have advanced"}

    def continuity_verdict(self, options: dict[str, Any]) -> dict[str, Any]:
        files = {} if "folder" in options else {"files": ["/test/verdict-2.json", "/test/timeline-2.html"]}
        return {**self.verdict, **files}

    def roll_records(self) -> bool:
        self.must_be_attended()
        self.rolls += 1
        return self.can_roll

    def run_command(self, words: tuple[str, ...], text: str, seconds: float) -> dict[str, Any]:
        assert seconds == 60.0
        self.effect("command", lambda: self.commands.append((words, json.loads(text))))
        return dict(self.answer)

    def cluster_lock(self, _options: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError("an observation takes no lock")

    worker_rules = vmotion = esxi_power = cluster_lock  # type: ignore[assignment]


def test_judges_moves_by_drs_until_the_time_ends() -> None:
    world = Observed()
    world.verdict.update(moved="none")
    facts = world.carry_out()
    assert [(move["worker"], move["external"]) for move in facts.others] == [("w1", True)]
    assert not facts.moves and world.outcome == "" and world.is_clean
    assert passed(facts, "/test") == "Continuous; the evidence is in /test."
    assert world.calls["continuity_verdict"] >= 7 and facts.began + 600 <= world.site.clock
    assert "w1: esx1 -> esx3, moved by drs" in world.lines


def test_observation_ends_the_same_after_any_death() -> None:
    for world, facts in histories(Observed, Observed.to_the_end, pairs=20):
        assert world.outcome == "" and world.is_clean and facts.is_over
        assert [move["worker"] for move in facts.others] == ["w1"] * len(world.moved)


def test_an_observation_ends_with_its_job() -> None:
    world = Observed()
    world.moves_at = []

    def end(_options: dict[str, Any]) -> dict[str, Any]:
        state = "finished" if world.calls["wait_for_steps"] > 3 else "running"
        return {"job": {"state": state, "launcher": None}}

    facts = changed(world, training_info=end).carry_out()
    assert world.calls["wait_for_steps"] == 4 and facts.is_over


def test_a_breach_ends_the_observation() -> None:
    world = Observed()
    world.verdict.update(verdict="broken", breaches=[{"detail": "rank 1 lost 3 steps"}])
    world.carry_out()
    assert "rank 1 lost 3 steps" in world.outcome and world.calls["wait_for_steps"] == 3


def test_an_observation_ends_on_request_with_its_verdict() -> None:
    world = Observed()
    world.requested_at, world.moves_at = 5, []
    world.carry_out()
    assert world.calls["wait_for_steps"] == 5 and world.outcome == "" and world.is_clean
    assert "ends the observation, as requested" in world.lines


MANY = {"observe": {"seconds": 60, "keep": 600}, "duration": 7200, "drs_override": "", "guest_checks": False}
ROW = {"worker": "w1", "moved": True, "gap_s": 12.0}


def test_verdict_keeps_the_moves_of_dropped_records() -> None:
    world = Observed(**MANY)
    world.verdict.update(moves=[ROW], notes=["moved by others"])
    facts = world.carry_out()
    assert 8 <= world.rolls <= 12 and facts.windows == world.rolls
    (window,) = [one for one in facts.earlier if one["moves"]]
    assert [move["worker"] for move in window["moves"]] == ["w1"] and window["rows"] == [ROW]
    assert window["files"] == ["verdict-2.json", "timeline-2.html"]
    assert facts.others == [] and facts.at["w1"] == "esx3", "the next window begins with the target of the move"
    assert verdict_input(facts)["moves"] == []
    merged = with_earlier({**world.verdict, "moves": []}, facts)
    assert (merged["windows"], merged["verdict"], len(merged["earlier"])) == (facts.windows + 1, "continuous", 1)


def test_clock_drift_over_a_week_counts_as_unset() -> None:
    class Drifting(Observed):
        def vmotion_info(self, options: dict[str, Any]) -> dict[str, Any]:
            return {**super().vmotion_info(options), "clock_offset_s": self.site.clock / 100}

    facts = Drifting(**MANY).carry_out()
    assert facts.windows >= 8 and facts.server_clock_set_s == 0


def test_verdict_takes_worst_window_and_each_sentence_once() -> None:
    facts = Observed(**MANY).carry_out()
    facts.earlier = [
        {**facts.earlier[0], "verdict": "inconclusive", "unproven": ["records: none"], "notes": ["a note"]}
    ] * 2
    merged = with_earlier({"verdict": "continuous", "unproven": [], "notes": ["a note"]}, facts)
    assert (merged["verdict"], merged["unproven"], merged["notes"]) == ("inconclusive", ["records: none"], ["a note"])


def test_drops_no_records_during_a_move() -> None:
    world = Observed(**MANY)
    world.moves_at = []
    world.site.move("w1", "esx3", "drs")
    world.site.moves[0]["started"] = 2000.0
    assert world.carry_out().windows <= 1 and world.rolls == 0


def test_keeps_power_events_that_happen_while_it_reads() -> None:
    """The workers of a large cluster are read one after the other."""

    class Slow(Observed):
        read_at = reset_at = 0.0

        def vmotion_info(self, options: dict[str, Any]) -> dict[str, Any]:
            self.read_at = self.site.clock
            self.site.pass_time(30.0)
            is_read = self.reset_at and options["since"] <= self.reset_at <= self.read_at
            power = [{"worker": "w2", "at": self.reset_at, "by": "eve", "what": "VmResettingEvent"}] if is_read else []
            return {**super().vmotion_info(options), "power": power}

        def roll_records(self) -> bool:
            # It happened right after its worker was read.
            self.reset_at = self.reset_at or self.read_at + 2.0
            return super().roll_records()

    facts = Slow(**MANY).carry_out()

    found = [event for window in facts.earlier for event in window["power"]] + (facts.power or [])
    assert facts.windows > 1 and [event["worker"] for event in found] == ["w2"]


def test_watch_outlasts_long_silences_and_observations() -> None:
    world, given = Observed(), list[dict[str, Any]]()
    changed(world, start_watch=lambda options: given.append(dict(options)) or {}).carry_out()

    of_links = ("nodes", "folder", "tail")
    options = watcher.watch_options(**{key: value for key, value in given[0].items() if key not in of_links})
    state = watcher.WatchState(last=time.monotonic() - 3600)

    assert watcher._reason(options, state, time.monotonic() - 30 * 86400) == ""


def test_without_a_watch_nothing_is_dropped() -> None:
    world = Observed(**MANY)
    world.can_roll = False
    facts = world.carry_out()
    assert facts.windows == 0 and facts.earlier == [] and [one["worker"] for one in facts.others] == ["w1"]


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


def test_command_gets_a_breach_before_the_end() -> None:
    world = Observed(**HOOKED)
    world.verdict.update(verdict="broken", breaches=[{"kind": "died", "detail": "the job died"}])
    facts = world.carry_out()
    ((_words, content),) = world.commands
    assert [(event["kind"], event["detail"]) for event in content["events"]] == [("broken", "the job died")]
    assert facts.is_over


def test_failed_command_does_not_end_the_observation() -> None:
    world = Observed(**HOOKED)
    world.verdict.update(moves=[ROW])
    world.answer = {"rc": 3, "msg": "/bin/notify: the command ended with 3: no route"}
    world.carry_out()
    assert world.outcome == "" and "/bin/notify: the command ended with 3: no route" in world.lines


@pytest.mark.parametrize(("observe", "gap"), [({"seconds": 60}, 12.0), (HOOKED["observe"], 9.0)])
def test_runs_no_command_below_the_limit(observe: dict[str, Any], gap: float) -> None:
    world = Observed(**{**OBSERVE, "observe": observe})
    world.verdict.update(moves=[{**ROW, "gap_s": gap}])
    world.carry_out()
    assert world.commands == []
