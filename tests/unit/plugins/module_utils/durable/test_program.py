# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A program reaches the same end with any number of controllers, does no effect twice and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from plugins.module_utils.durable.program import Program
from plugins.module_utils.errors import Failed
from tests.fakes.deaths import Killed, MortalJournal, MortalWorld, carry_out, histories


class Table(MortalWorld):
    """A table with cups that are moved one by one while its door is locked."""

    def __init__(self, deaths: Iterable[int] = ()) -> None:
        super().__init__(deaths)
        self.is_locked = False
        self.cups = {"red": "left", "blue": "left"}
        self.moves = list[str]()

    def lock(self) -> None:
        self.effect("lock", lambda: setattr(self, "is_locked", True))

    def unlock(self) -> None:
        self.effect("unlock", lambda: setattr(self, "is_locked", False))

    def move(self, cup: str) -> str:
        if self.effect(f"where is {cup}", lambda: self.cups[cup]) == "right":
            return "right"
        return str(self.effect(f"move {cup}", lambda: self._moved(cup)))

    def _moved(self, cup: str) -> str:
        assert self.is_locked
        self.moves.append(cup)
        self.cups[cup] = "right"
        return "right"


def tidy(p: Program, table: Table) -> list[str]:
    """Move all cups while the door is locked."""
    with p.held("the locked door", table.lock, table.unlock):
        cups = p.once("cups", lambda: table.effect("look", lambda: sorted(table.cups)))
        for cup in cups:
            p.say(f"moves the {cup} cup")
            p.once(("move", cup), lambda cup=cup: table.move(cup))  # type: ignore[misc]
        p.say("all cups are on the right")
    return list(cups)


def test_each_single_death_and_many_pairs_lead_to_the_same_end() -> None:
    count = 0
    for table, cups in histories(Table, lambda world: carry_out(world, lambda p: tidy(p, world)), pairs=200):
        count += 1
        assert cups == ["blue", "red"]
        assert table.moves == ["blue", "red"], "no effect twice"
        assert not table.is_locked
        assert table.lines[-1] == "all cups are on the right"
    assert count > 200 + 20


def test_an_effect_that_does_not_ask_whether_it_happened_is_noticed() -> None:
    class Forgetful(Table):
        def move(self, cup: str) -> str:
            return str(self.effect(f"move {cup}", lambda: self._moved(cup)))

    runs = histories(Forgetful, lambda world: carry_out(world, lambda p: tidy(p, world)))
    assert any(table.moves != ["blue", "red"] for table, _cups in runs)


def test_a_later_controller_does_not_repeat_the_lines_of_the_earlier_one() -> None:
    table = Table()
    values = {"cups": ["blue", "red"], "move blue": "right"}
    tidy(Program(MortalJournal(table, values), table), table)
    assert table.lines == ["moves the red cup", "all cups are on the right"]


def test_effects_inside_an_effect_that_is_done_are_skipped_with_it() -> None:
    def pour(p: Program, table: Table) -> str:
        p.say("pours")
        color = p.once("pour", lambda: p.once("which", lambda: table.effect("choose", lambda: "red")))
        p.say("drinks")
        return str(p.once("drink", lambda: table.effect("drink", lambda: color)))

    for table, color in histories(Table, lambda world: carry_out(world, lambda p: pour(p, world)), pairs=20):
        assert color == "red"
        assert table.lines[-1] == "drinks", "what follows an effect that was skipped is shown"
    table = Table()
    assert pour(Program(MortalJournal(table, {"which": "red", "pour": "red"}), table), table) == "red"
    assert (table.log, table.lines) == (["drink"], ["drinks"])


def test_a_failed_effect_writes_nothing_and_held_things_are_released() -> None:
    table = Table()
    journal = MortalJournal(table)
    p = Program(journal, table)

    def fail() -> None:
        raise Failed("cup", "move it", "it is glued")

    with pytest.raises(Failed, match="it is glued"), p.held("the locked door", table.lock, table.unlock):
        p.once("move", fail)
    assert journal.values == {}, "the next controller takes the door again"
    assert not table.is_locked


def test_a_controller_that_is_gone_releases_nothing() -> None:
    table = Table(deaths=[6])
    with pytest.raises(Killed):
        tidy(Program(MortalJournal(table), table), table)
    assert table.is_locked


def test_a_failed_release_stays_open_and_the_next_controller_takes_all_again() -> None:
    table, is_stuck = Table(), [True]

    def close() -> None:
        if is_stuck[0]:
            raise Failed("window", "close it", "it is stuck")
        table.log.append("close")

    def air(p: Program) -> dict[str, str]:
        with (
            p.held("the locked door", table.lock, table.unlock),
            p.held("an open window", lambda: table.log.append("open"), close),
        ):
            p.once("air", lambda: table.log.append("air"))
        return p.left

    values: dict[str, object] = {}
    assert air(Program(MortalJournal(table, values), table)) == {
        "an open window": "window: could not close it: it is stuck"
    }
    assert table.lines == ["window: could not close it: it is stuck"]
    is_stuck[0] = False
    table.log.clear()
    assert air(Program(MortalJournal(table, values), table)) == {}
    assert table.log == ["lock", "open", "close", "unlock"], "the effect inside is not done again"


def test_a_wait_ends_with_the_condition_or_with_the_time() -> None:
    table = Table()
    p = Program(MortalJournal(table), table)
    answers = iter(["", "", "ready"])
    assert p.wait(lambda: next(answers), 60) == "ready"
    before = p.now()
    assert p.wait(lambda: "", 10) == ""
    assert 10 <= p.now() - before < 20


def test_a_key_cannot_stand_for_two_effects() -> None:
    table = Table()
    p = Program(MortalJournal(table), table)
    p.once("move", lambda: 1)
    with pytest.raises(RuntimeError, match="move stands for two effects"):
        p.once("move", lambda: 2)


def test_a_value_is_what_a_later_controller_will_read() -> None:
    table = Table()
    p = Program(MortalJournal(table), table)
    assert p.once("pair", lambda: (1, 2)) == [1, 2]
