"""A move without an answer is looked up on the server; it is never started twice, and is one of the test."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.trials.evidence import verdict_input
from tests.fakes.deaths import histories
from tests.unit.simulation.world import CONTINUOUS, World, changed


def losing(*answers: str, **settings: Any) -> World:
    """Return a test whose calls have no answer: nothing was started, or the move goes on, or it is at its end."""
    world, left = World(**settings), list(answers)
    answer = world.vmotion

    def vmotion(options: dict[str, Any]) -> dict[str, Any]:
        if options.get("moves") or not left:
            return answer(options)
        when, running = left.pop(0), world.site.moving(options["worker"])
        if when != "before":
            move = running or world.site.move(options["worker"], options["target"], "us", world.run)
            if when == "after":
                world.site.arrive(move)
        return {"failed": True, "msg": f"{options['worker']}: could not move it: the connection broke"}

    return changed(world, vmotion=vmotion)


@pytest.mark.parametrize("loses", [["before"], ["under way"], ["after"], ["before"] * 2, ["before", "under way"]])
@pytest.mark.parametrize("most", [1, 2])
def test_looks_up_a_move_without_answer(loses: list[str], most: int) -> None:
    world = losing(*loses, max_moves=most)
    facts = world.carry_out()
    assert sorted(world.moved) == ["w1", "w2"]
    assert all(move["ok"] for move in facts.moves) and facts.others == [] and world.outcome == ""


def test_unanswered_move_fails_after_three_more_requests() -> None:
    world = losing(*["before"] * 20)
    facts = world.carry_out()
    assert [move["ok"] for move in facts.moves] == [False] and "the connection broke" in facts.moves[0]["said"]
    assert world.calls["vmotion"] == 4 and world.site.moves == [] and world.is_clean


def test_move_completed_late_belongs_to_the_test() -> None:
    world = losing(*["before"] * 3, "after")
    facts = world.carry_out()
    assert [(move["worker"], move["ok"], move["chain"]) for move in facts.moves[:1]] == [("w1", True, 1)]
    assert facts.others == []


def test_unread_move_belongs_to_the_test() -> None:
    world = losing("after")
    answer = world.vmotion_info

    def vmotion_info(options: dict[str, Any]) -> dict[str, Any]:
        is_look_up = bool(options.get("workers")) and bool(world.site.moves) and not world.facts.moves
        return {"failed": True, "msg": "vc: it did not answer within 60 s"} if is_look_up else answer(options)

    facts = changed(world, vmotion_info=vmotion_info).carry_out()
    assert [(move["worker"], move["ok"]) for move in facts.moves] == [("w1", True)] and facts.others == []
    assert "did not answer" in world.outcome


def test_does_not_look_up_a_refused_move() -> None:
    world = World()
    refused = {"failed": True, "begun": False, "msg": "w1: could not move it: no room"}
    facts = changed(world, vmotion=lambda _options: refused).carry_out()
    assert not any(line.startswith("looks up") for line in world.lines)
    assert [move["said"] for move in facts.moves] == ["w1: could not move it: no room"]


def test_move_between_controllers_has_state_before_and_after() -> None:
    def make(deaths: Any) -> World:
        return World(deaths, workers=["w1"])

    looked_up = 0
    for _world, facts in histories(make, World.to_the_end):
        first = facts.moves[0]
        assert first["vsphere"]["host"] == {"before": "esx1", "after": "esx3"} and first["ranks"] == [0]
        assert first["vsphere"]["gpus"] == {"before": [], "after": []}
        looked_up += bool(first["attached"])
    assert looked_up >= 2, "no controller died while the move was under way"


def test_refused_move_in_a_wave_stops_the_test() -> None:
    world = World(max_moves=2)
    answer, refused = world.vmotion, {"failed": True, "begun": False, "msg": "w1: could not move it: no room"}

    def vmotion(options: dict[str, Any]) -> dict[str, Any]:
        return dict(refused) if options.get("worker") == "w1" else answer(options)

    facts = changed(world, vmotion=vmotion).carry_out()
    assert [(move["worker"], move["ok"]) for move in facts.moves] == [("w1", False), ("w2", True)]
    assert facts.stopped == "w1: could not move it: no room" and "no room" in world.outcome


def test_looks_up_each_move_of_a_failed_call() -> None:
    world = World(max_moves=2)
    answer, answers = world.vmotion, [{"failed": True, "msg": "the module was killed"}]
    facts = changed(world, vmotion=lambda options: answers.pop() if answers else answer(options)).carry_out()
    assert [move["ok"] for move in facts.moves] == [True, True]
    assert sum(line.endswith("the server has no such move: it starts now") for line in world.lines) == 2


SICK = {"severity": "stop", "rule": "gpu_health", "object": "w1", "text": "w1: GPU 0000:3b:00.0: Xid 79: replace it."}


def test_sick_gpu_ends_the_test_after_its_verdict() -> None:
    world = World()
    world.before["vmotion"] = lambda: world.answers.update(read_gpus={"findings": [SICK]})

    facts = world.carry_out()

    assert world.moved == ["w1"] and world.calls["continuity_verdict"] >= 1
    assert "go on after the move of w1" in world.outcome and "Xid 79" in world.outcome
    assert facts.is_over and world.is_clean


def test_sick_gpu_prevents_the_first_move() -> None:
    world = World()
    world.answers["read_gpus"] = {"findings": [SICK]}

    world.carry_out()

    assert world.moved == [] and "Xid 79" in world.outcome


def test_an_accepted_finding_on_a_gpu_ends_nothing() -> None:
    world = World(accept=["gpu_health"])
    world.answers["read_gpus"] = {"findings": [SICK]}

    world.carry_out()

    assert sorted(world.moved) == ["w1", "w2"]


WAITS = "rank 0 waits in all_reduce number 6 of the group default_pg for rank 1, which wrote no dump."


def test_verdict_names_waiting_ranks_of_a_stalled_job() -> None:
    world = World()
    answer, silent = world.wait_for_steps, {"failed": True, "msg": "rank 1 made no step"}
    world.answers["read_hang"] = [WAITS]
    world.verdict = {**CONTINUOUS, "verdict": "broken", "breaches": [{"detail": "rank 1 made no step for 600 s"}]}

    facts = changed(world, wait_for_steps=lambda options: silent if world.site.moves else answer(options)).carry_out()

    assert facts.hangs == [WAITS] and WAITS.rstrip(".") in world.outcome
    assert verdict_input.with_left({"moved": "all", "notes": []}, facts)["notes"][0] == WAITS


def test_skips_search_for_waiting_ranks_while_job_continues() -> None:
    world = World()

    world.carry_out()

    assert world.calls["read_hang"] == 0
