# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The steps of a vMotion test follow from its journal: in order, to the end, and after a run was killed anywhere."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from plugins.module_utils.vmotion.test.judging import transports, verdict_input
from plugins.module_utils.vmotion.test.next_step import next_step, state_of
from plugins.module_utils.vmotion.test.outcome import outcome
from plugins.module_utils.vmotion.test.step import Controller
from plugins.module_utils.vmotion.test.steps import moves_plan, server_moves
from plugins.module_utils.vmotion.test.trial_state import TrialState
from tests.fakes.trial import SETTINGS, Killed, World


def kinds(world: World) -> list[str]:
    return [str(entry["entry"]) for entry in world.journal]


def kinds_until(world: World, last: str) -> int:
    """Return the number of entries of a complete test up to the first of this kind."""
    world.carry_out()
    return kinds(world).index(last) + 1


def is_given_back(world: World) -> bool:
    return not world.overridden and not world.watched and not world.lock


def test_the_steps_of_a_whole_test_in_their_order() -> None:
    world = World(workers=["w1"])
    world.carry_out()
    opening = ["hold", "job", "cluster", "plan", "watch", "override", "warm", "look", "measure", "look"]
    move = ["guests", "begin", "move", "advance", "look", "job", "others", "judge"]
    ending = ["over", "restore", "unwatch", "free", "job", "others", "judge", "cluster", "hosts", "keep", "end"]
    assert kinds(world) == ["open", "controller", *opening, "plan", "managers", "hold", *move, *ending]
    assert is_given_back(world)


def test_each_round_moves_every_worker_once() -> None:
    world = World(rounds=3)
    state = world.carry_out()
    assert [move["worker"] for move in state.moves] == ["w1", "w2"] * 3
    assert outcome(state, "/test") == ""


def test_rounds_go_on_as_long_as_they_are_to() -> None:
    world = World(workers=["w1"], duration=120)
    state = world.carry_out()
    assert state.moves[-1]["started"] < state.began + 120 < world.now
    assert len(state.moves) > 2


def test_where_ranks_use_rdma_the_counters_of_hosts_are_read_with_every_look() -> None:
    world = World(workers=["w1"])
    world.rdma = True
    world.carry_out()
    told = kinds(world)
    assert all(after == "counters" for kind, after in pairwise(told) if kind == "look")
    assert told.count("look") == 4, "counters are read at once after the move, and again when the job has gone on"


@pytest.mark.parametrize("entries", range(3, kinds_until(World(), "end")))
def test_a_controller_that_is_killed_after_any_entry_is_followed_by_one_that_goes_on(entries: int) -> None:
    world = World()
    with pytest.raises(Killed):
        world.carry_out(entries)
    state = world.carry_out()
    assert world.calls["vmotion"] == 2, "each worker was moved once"
    assert [move["worker"] for move in state.moves] == ["w1", "w2"]
    assert [one["worker"] for one in world.chains] == ["w1", "w2"]
    assert all(move["ok"] for move in state.moves)
    tcp = {"before": {"w1": "tcp", "w2": "tcp"}, "after": {"w1": "tcp", "w2": "tcp"}}
    assert verdict_input(state)["facts"]["transport"] == [tcp] * 2
    assert is_given_back(world)
    assert outcome(state, "/test") == ""


@pytest.mark.parametrize("when", ["before", "under way", "after"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_move_that_was_begun_is_looked_up_and_never_begun_twice(when: str, times: int) -> None:
    world = World()
    for _time in range(times):
        world.dies_in_move = when
        with pytest.raises(Killed):
            world.carry_out()
        if when == "after":
            break  # what is done cannot be killed again
    state = world.carry_out()
    assert [one["worker"] for one in world.chains] == ["w1", "w2"]
    assert [move["chain"] for move in state.moves] == [1, 2]
    first = state.moves[0]["vsphere"]
    assert (first["hot_migration"], first["power_cycled"]) == (True, False)
    assert state.others == [], "a move of the test is not one of others"
    told = {"before": "nothing", "under way": "under way", "after": "its end"}[when]
    found = [entry["found"] for entry in world.journal if entry["entry"] == "look_up"]
    assert found == [told] * len(found)
    assert found


@pytest.mark.parametrize("loses", [["before"], ["under way"], ["after"], ["before"] * 2, ["before", "under way"]])
def test_a_move_whose_answer_was_lost_is_looked_up_and_is_no_move_of_others(loses: list[str]) -> None:
    world = World()
    world.loses = list(loses)
    state = world.carry_out()
    assert [one["worker"] for one in world.chains] == ["w1", "w2"], "no move starts twice"
    assert [(move["chain"], move["ok"]) for move in state.moves] == [(1, True), (2, True)]
    assert state.others == []
    assert outcome(state, "/test") == ""


def test_a_move_that_never_has_an_answer_is_told_as_one_of_the_test_that_failed() -> None:
    world = World()
    world.loses = ["before"] * 20
    state = world.carry_out()
    assert [move["ok"] for move in state.moves] == [False] and "the connection broke" in state.moves[0]["said"]
    assert world.chains == [] and state.others == []
    assert state.is_freed, "the test ends"


def test_a_move_whose_end_is_only_seen_after_the_test_gave_up_is_still_its_own() -> None:
    world = World()
    world.loses = ["before"] * 3 + ["after"]
    state = world.carry_out()
    assert [(move["worker"], move["ok"], move["chain"]) for move in state.moves[:1]] == [("w1", True, 1)]
    assert state.others == []


def test_a_move_that_could_not_even_be_looked_up_is_still_its_own() -> None:
    world = World()
    world.loses, world.fails = ["after"], {"look_up": "vc: could not connect: it did not answer within 60 s"}
    state = world.carry_out()
    assert [(move["worker"], move["ok"]) for move in state.moves] == [("w1", True)]
    assert state.others == []
    assert "did not answer" in outcome(state, "/test")


def test_a_move_that_the_server_refused_is_not_looked_up() -> None:
    world = World()
    world.vmotion = lambda _options: {"failed": True, "begun": False, "msg": "w1: could not move it: no room"}  # type: ignore[method-assign]
    state = world.carry_out()
    assert "look_up" not in [entry["entry"] for entry in world.journal]
    assert [move["said"] for move in state.moves] == ["w1: could not move it: no room"]


def test_a_move_of_somebody_else_stays_one_of_others() -> None:
    world = World()
    world.loses = ["after"]
    world.carry_out(entries=1000)
    theirs = {**world.chains[0], "chain": 77, "target": "esx9", "by": "drs"}
    world.chains.append(theirs)
    result = world.vmotion_info({"since": 0.0})
    told = dict(server_moves.OTHERS.entries_of(result, state_of(world.journal), Controller("/test")))
    assert [one["chain"] for one in told["others"]["moves"]] == [77]


def test_a_move_that_ended_while_nobody_looked_is_told_with_what_was_seen_before_and_after() -> None:
    world = World()
    world.dies_in_move = "after"
    with pytest.raises(Killed):
        world.carry_out()
    state = world.carry_out()
    assert state.moves[0]["vsphere"]["host"] == {"before": "esx1", "after": "esx3"}
    assert state.moves[0]["vsphere"]["gpus"] == {"before": [], "after": []}
    assert state.moves[0]["ranks"] == [0]


def test_a_job_that_died_while_nobody_carried_the_test_out_is_judged_before_the_next_move() -> None:
    world = World()
    with pytest.raises(Killed):
        world.carry_out(kinds_until(World(), "judge"))
    world.job = "died"
    world.verdict = {**world.verdict, "verdict": "broken", "breaches": [{"detail": "the job died"}]}
    state = world.carry_out()
    assert len(state.moves) == 1
    assert state.stopped == "the job died"


def test_a_lock_of_somebody_else_leaves_the_cluster_alone() -> None:
    world = World()
    world.write("controller")
    step = next_step(state_of(world.journal))
    assert step is not None and step.name == "hold"


def test_a_job_that_does_not_run_is_told_and_everything_is_given_back() -> None:
    world = World(ends_job=True)
    world.job = "died"
    state = world.carry_out()
    assert world.calls["vmotion"] == 0
    assert "w1: the job in /run/one does not run, it is died" in outcome(state, "/test")
    assert is_given_back(world)
    assert world.calls["training_job"] == 1


@pytest.mark.parametrize("step", ["cluster", "override", "warm", "managers", "guests", "begin", "others", "judge"])
def test_a_step_that_fails_ends_the_test_and_gives_everything_back(step: str) -> None:
    world = World()
    world.fails = {step: "vCenter is gone"}
    state = world.carry_out()
    assert "vCenter is gone" in outcome(state, "/test")
    assert is_given_back(world)
    assert state.end is not None


def test_what_could_not_be_given_back_leaves_the_test_open_for_the_next_controller() -> None:
    world = World()
    world.fails = {"restore": "vCenter is gone"}
    state = world.carry_out()
    assert state.end is None
    assert world.overridden
    assert outcome(state, "/test").endswith("the test goes on where it stopped.")
    world.fails = {}
    state = world.carry_out()
    assert not world.overridden
    assert state.end is not None
    assert world.calls["vmotion"] == 2
    assert outcome(state, "/test") == ""


@pytest.mark.parametrize(("go_on", "moves"), [(False, 1), (True, 2)])
def test_a_move_that_fails_ends_the_test_unless_it_is_to_go_on(go_on: bool, moves: int) -> None:
    world = World(go_on=go_on)
    refused: dict[str, Any] = {"failed": True, "begun": False, "msg": "w1: could not move it to esx3: Too slow"}
    whole, told = world.vmotion, iter([refused])
    world.vmotion = lambda options: next(told, None) or whole(options)  # type: ignore[method-assign]
    state = world.carry_out()
    assert len(state.moves) == moves
    assert state.stopped == "w1: could not move it to esx3: Too slow"
    assert "w1 on esx1" in outcome(state, "/test")


def test_an_idle_worker_goes_first_where_nothing_has_ever_moved() -> None:
    world = World(canary="auto", workers=["w1"])
    world.at["w3"] = "esx3"
    free = {"worker": "w3", "source": "esx3", "target": "esx4"}
    plans = {"w3": [free], "w1": [{"worker": "w1", "source": "esx1", "target": "esx3"}]}
    told = {"not_applicable": {}, "rdma": {}, "profile": "", "slots": {}}
    world.vmotion_plan = lambda options: {  # type: ignore[method-assign]
        "moves": plans[options["workers"][0]],
        "at": dict(world.at),
        **told,
    }
    state = world.carry_out()
    assert [move["worker"] for move in state.moves] == ["w3", "w1"]
    assert [move["canary"] for move in state.moves] == [True, False]
    assert kinds(world).count("guests") == 1, "a worker without a rank has nothing to lose"
    assert len(transports(state)["of_moves"]) == 2


@pytest.mark.parametrize(
    ("guests", "ranks", "facts", "free"),
    [
        ({"w1": [0], "w2": [1]}, {"W1": [0], "w2.lab": [1]}, {"W1": [0], "w2.lab": [1], "w3": []}, "w3"),
        ({"w1": [0], "trainer": [1]}, {"W1": [0], "trainer": [1]}, {"W1": [0]}, ""),
        ({}, {}, {"W1": [], "w2.lab": [], "w3": []}, "W1"),
    ],
)
def test_ranks_are_those_of_vms_by_whatever_name_their_guests_have(
    guests: dict[str, list[int]], ranks: dict[str, list[int]], facts: dict[str, list[int]], free: str
) -> None:
    state = TrialState(settings={**SETTINGS, "canary": "auto"})
    state.at, state.warm = dict.fromkeys(("W1", "w2.lab", "w3"), "esx1"), {"hosts": guests}
    assert state.ranks == ranks
    assert verdict_input(state)["facts"]["ranks"] == facts
    ((_kind, canary),) = moves_plan.CANARY.entries_of({"moves": []}, state, Controller("/test"))
    assert canary["worker"] == free


def test_a_job_of_the_test_is_asked_to_end_awaited_and_stopped() -> None:
    world = World(ends_job=True, finish_timeout=10, workers=["w1"])
    state = world.carry_out()
    told = kinds(world)
    assert [one for one in told if one in ("finish", "await", "checksums", "unwatch", "stop", "end")] == [
        "finish",
        "await",
        "checksums",
        "unwatch",
        "stop",
        "end",
    ]
    assert state.end is not None


def test_what_a_judgement_rests_on_is_the_same_whenever_it_is_made() -> None:
    world = World()
    world.carry_out()
    at_the_end = verdict_input(state_of(world.journal))
    last = max(index for index, kind in enumerate(kinds(world)) if kind == "judge")
    assert verdict_input(state_of(world.journal[:last])) == at_the_end
    heard = next(entry["at"] for entry in world.journal if entry["entry"] == "unwatch")
    assert at_the_end["facts"]["observed_until"] == heard, "no records arrive after the watch ended"
    limited = verdict_input(state_of(world.journal), {"max_gap_s": 3})
    assert limited["limits"] == {"warmup_steps": 2, "max_gap_s": 3}
