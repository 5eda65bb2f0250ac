"""A clock of vCenter that is set during a test: its events cannot be dated, so nothing is concluded from their lack."""

from __future__ import annotations

import random
from typing import Any

import pytest

from plugins.module_utils.continuity.verdict import verdict
from plugins.module_utils.trials.evidence.verdict_input import verdict_input
from tests.unit.plugins.module_utils.continuity import runs
from tests.unit.simulation.world import World

SENTENCE = "vsphere: vCenter's clock was set by {} s: its events may be missing, or have the wrong time"


class Server(World):
    """A cluster whose server has a clock that is set at some reading, and whose DRS moves workers."""

    def __init__(self, jump: float, at_reading: int, seed: int = 0, **settings: Any) -> None:
        self.offset, self.jump, self.at_reading, self.readings = 0.0, jump, at_reading, 0
        self.chance = random.Random(seed)
        super().__init__((), rounds=3, **settings)

    def _read_clock(self) -> float:
        self.readings += 1
        if self.readings == self.at_reading:
            self.offset += self.jump
        return self.offset

    def vmotion_plan(self, options: dict[str, Any]) -> dict[str, Any]:
        return {**super().vmotion_plan(options), "clock_offset_s": self._read_clock()}

    def vmotion(self, options: dict[str, Any]) -> dict[str, Any]:
        before = self._read_clock()
        done = super().vmotion(options)
        if "move" in done:
            done["move"].update(clock_offset_s=before, clock_set_s=self._read_clock() - before)
        return done

    def vmotion_info(self, options: dict[str, Any]) -> dict[str, Any]:
        worker = self.chance.choice(["w1", "w2"])
        if self.chance.random() < 0.5:
            move = self.site.move(worker, self.chance.choice(["esx1", "esx2", "esx3"]), "drs")
            move.update(completed=self.site.clock, ok=True)
        return {**super().vmotion_info(options), "clock_offset_s": self._read_clock()}


def judged(facts: Any) -> dict[str, Any]:
    """Return the verdict on a run without a harm, with the facts of a test on the server's clock."""
    moves = [runs.move(30, 40)]
    facts = {**runs.facts(moves), "server_clock_set_s": verdict_input(facts)["facts"]["server_clock_set_s"]}
    return verdict(runs.records(), moves, {"resume_deadline_s": 20}, ended="running", facts=facts)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("jump", [60.0, -60.0, 3600.0, -86_400.0])
def test_setting_the_server_clock_makes_tests_inconclusive(jump: float, seed: int) -> None:
    world = Server(jump, random.Random(seed).randint(2, 4), seed)
    facts = world.carry_out()
    found = judged(facts)
    assert (found["verdict"], found["unproven"]) == ("inconclusive", [SENTENCE.format(f"{abs(jump):.0f}")])
    assert world.is_clean
    own = [move["chain"] for move in facts.moves if move.get("chain")]
    assert len(own) == len(set(own)), "no move is claimed twice"
    assert {move["chain"] for move in facts.others}.isdisjoint(own), "a move of the test is not one of others"


@pytest.mark.parametrize("jump", [0.0, 0.4, -0.4])
def test_a_remeasured_offset_changes_nothing(jump: float) -> None:
    assert judged(Server(jump, 3).carry_out())["verdict"] == "continuous"


def test_readings_without_offsets_show_no_set_clock() -> None:
    assert judged(World().carry_out())["verdict"] == "continuous"


@pytest.mark.parametrize(("jump", "is_known"), [(0.0, True), (-900.0, False)])
def test_an_undatable_power_event_is_not_a_breach(jump: float, is_known: bool) -> None:
    """A worker that was powered on before the test seems to have been so within it if the clock was set back."""
    facts = Server(jump, 3).carry_out()
    facts.power = [{"worker": "w1", "at": runs.SEEN + 50, "by": "eve", "what": "VmPoweredOnEvent"}]
    assert verdict_input(facts)["facts"]["power"] == (facts.power if is_known else None)
