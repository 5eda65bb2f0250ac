"""Moves and power events of others are shown once, and apart from the moves of the test."""

from __future__ import annotations

from plugins.module_utils.trials.steps.judgement import lines, others_in
from tests.unit.plugins.module_utils.trials.steps.test_wave_of_moves import losing
from tests.unit.simulation.world import World

MOVE = {"worker": "w1", "source": "esx1", "target": "esx3", "chain": 7, "by": "VSPHERE.LOCAL\\admin"}
EVENT = {"worker": "w1", "at": 5.0, "by": "eve", "what": "VmPoweredOffEvent"}


def test_moves_of_another_user_are_not_own_moves() -> None:
    world = losing("after")
    facts = world.carry_out()
    world.site.moves.append({**world.site.moves[0], "chain": 77, "target": "esx9", "by": "drs"})
    reading = others_in(world.vmotion_info({"since": 0.0}), facts, 1.0)
    assert [move["chain"] for move in reading["moves"]] == [77]


def test_shows_each_new_move_and_power_event() -> None:
    facts = World().carry_out()
    reading = {"moves": [MOVE], "power": [EVENT]}
    assert lines(reading, facts) == ["w1: esx1 -> esx3, moved by VSPHERE.LOCAL\\admin", "w1: VmPoweredOffEvent, by eve"]
    facts.others, facts.power = [MOVE], [{**EVENT, "at": 5.002}]
    assert lines(reading, facts) == []
