# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Several moves at once in a vMotion test: started, made and judged together, and none twice after a kill."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.vmotion.test.judging import verdict_input
from plugins.module_utils.vmotion.test.outcome import outcome
from plugins.module_utils.vmotion.test.steps.moves_plan import plan_call, plan_lines
from tests.fakes.trial import SETTINGS, Killed, World

TCP = {"w1": "tcp", "w2": "tcp"}
WHOLE = 40  # entries of a complete test are fewer


def at_once(**settings: Any) -> World:
    return World(max_moves=2, **settings)


def kinds(world: World) -> list[str]:
    return [str(entry["entry"]) for entry in world.journal]


def test_two_moves_are_begun_made_and_judged_together() -> None:
    world = at_once()
    state = world.carry_out()
    wave = ["hold", "guests", "begin", "begin", "move", "move", "advance", "look", "job", "others", "judge", "over"]
    start = kinds(world).index("managers") + 1
    assert kinds(world)[start : start + len(wave)] == wave
    assert world.calls["vmotion"] == 1
    assert [(move["worker"], move["wave"], move["looks"]) for move in state.moves] == [("w1", 1, 2), ("w2", 1, 2)]
    assert verdict_input(state)["facts"]["transport"] == [{"before": TCP, "after": TCP}] * 2
    assert outcome(state, "/test") == ""


def test_each_round_has_waves_of_its_own() -> None:
    state = at_once(rounds=3).carry_out()
    assert [move["wave"] for move in state.moves] == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("entries", range(3, WHOLE))
def test_a_controller_that_is_killed_after_any_entry_moves_no_worker_twice(entries: int) -> None:
    world = at_once()
    try:
        world.carry_out(entries)
    except Killed:
        state = world.carry_out()
    else:
        assert kinds(world)[-1] == "end"
        return
    assert sorted(one["worker"] for one in world.chains) == ["w1", "w2"]
    assert sorted((move["worker"], move["ok"]) for move in state.moves) == [("w1", True), ("w2", True)]
    assert verdict_input(state)["facts"]["transport"] == [{"before": TCP, "after": TCP}] * 2
    assert state.others == [], "a move of the test is not one of others"
    assert outcome(state, "/test") == ""
    assert not world.lock


@pytest.mark.parametrize("when", ["before", "under way", "after"])
@pytest.mark.parametrize("second", ["", "before", "under way"])
def test_a_wave_that_a_kill_divided_is_looked_up_and_completed(when: str, second: str) -> None:
    world = at_once()
    for moment in (when, second):
        world.dies_in_move = moment
        if moment:
            with pytest.raises(Killed):
                world.carry_out()
    state = world.carry_out()
    assert sorted(one["worker"] for one in world.chains) == ["w1", "w2"], "no move starts twice"
    assert sorted((move["worker"], move["ok"], move["wave"]) for move in state.moves) == [
        ("w1", True, 1),
        ("w2", True, 1),
    ]
    found = {entry["worker"]: entry["found"] for entry in reversed(world.journal) if entry["entry"] == "look_up"}
    assert found["w1"] == {"before": "nothing", "under way": "under way", "after": "its end"}[when]
    assert found["w2"] == "nothing"
    assert outcome(state, "/test") == ""


@pytest.mark.parametrize("loses", [["before"], ["after"], ["under way"], ["before", "under way"], ["", "after"]])
def test_a_wave_with_a_lost_answer_is_looked_up(loses: list[str]) -> None:
    world = at_once()
    world.loses = list(loses)
    state = world.carry_out()
    assert sorted(one["worker"] for one in world.chains) == ["w1", "w2"]
    assert all(move["ok"] for move in state.moves)
    assert state.others == []
    assert outcome(state, "/test") == ""


def test_one_refused_move_stops_the_test_with_its_reason_although_the_other_succeeded() -> None:
    world = at_once()
    moves = world.vmotion
    bad = {"failed": True, "begun": False, "msg": "w1: could not move it: no room"}

    def vmotion(options: dict[str, Any]) -> dict[str, Any]:
        if options.get("worker") == "w1":
            return dict(bad)
        return moves(options)

    world.vmotion = vmotion  # type: ignore[method-assign]
    state = world.carry_out()
    assert [(move["worker"], move["ok"]) for move in state.moves] == [("w1", False), ("w2", True)]
    assert state.stopped == "w1: could not move it: no room"
    assert "no room" in outcome(state, "/test")


def test_a_call_that_fails_as_a_whole_leaves_both_moves_open() -> None:
    world = at_once()
    moves = world.vmotion
    answers = [{"failed": True, "msg": "the module was killed"}]
    world.vmotion = lambda options: answers.pop() if answers else moves(options)  # type: ignore[method-assign]
    state = world.carry_out()
    assert kinds(world).count("lost") == 2
    assert [move["ok"] for move in state.moves] == [True, True]


def test_the_plan_is_asked_for_waves_only_with_the_option_and_shows_them() -> None:
    assert "max_moves" not in plan_call({**SETTINGS}).options  # type: ignore[typeddict-item]
    asked = plan_call({**SETTINGS, "max_moves": 2}).options  # type: ignore[typeddict-item]
    assert (asked["max_moves"], asked["stun_budget"]) == (2, 100.0)
    window = plan_call({**SETTINGS, "max_moves": 2, "window": {"hosts": ["esx1"]}}).options  # type: ignore[typeddict-item]
    assert "max_moves" not in window
    first = {"worker": "w1", "source": "a", "target": "c"}
    second = {"worker": "w2", "source": "b", "target": "d"}
    together = {
        "moves": [{**first, "wave": 1}, {**second, "wave": 1}],
        "waves": [{"wave": 1, "moves": 2, "reason": ""}],
    }
    assert plan_lines(together) == ["1. 2 moves at once", "   w1: a -> c", "   w2: b -> d"]
    waves = [
        {"wave": 1, "moves": 1, "waits": "w2", "reason": "its stun is unknown"},
        {"wave": 2, "moves": 1, "reason": ""},
    ]
    alone = {"moves": [{**first, "wave": 1}, {**second, "wave": 2}], "waves": waves}
    lines = ["1. one move", "   w1: a -> c", "   w2 waits: its stun is unknown", "2. one move", "   w2: b -> d"]
    assert plan_lines(alone) == lines
