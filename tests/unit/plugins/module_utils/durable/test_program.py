"""A program reaches the same end with any number of controllers, does no effect twice and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext

import pytest

from plugins.module_utils.durable.program import Program
from plugins.module_utils.errors import Failed, WholeError
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


def test_program_ends_the_same_after_any_interruption() -> None:
    count = 0
    for table, cups in histories(Table, lambda world: carry_out(world, lambda p: tidy(p, world)), pairs=200):
        count += 1
        assert cups == ["blue", "red"]
        assert table.moves == ["blue", "red"], "no effect twice"
        assert not table.is_locked
        assert table.lines[-1] == "all cups are on the right"
    assert count > 200 + 20


def test_detects_an_effect_that_repeats_completed_work() -> None:
    class Forgetful(Table):
        def move(self, cup: str) -> str:
            return str(self.effect(f"move {cup}", lambda: self._moved(cup)))

    runs = histories(Forgetful, lambda world: carry_out(world, lambda p: tidy(p, world)))
    assert any(table.moves != ["blue", "red"] for table, _cups in runs)


def test_next_controller_does_not_repeat_earlier_output() -> None:
    table = Table()
    values = {"cups": ["blue", "red"], "move blue": "right"}
    tidy(Program(MortalJournal(table, values), table), table)
    assert table.lines == ["moves the red cup", "all cups are on the right"]


def test_skips_nested_effects_of_a_completed_effect() -> None:
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


def test_failed_effect_writes_nothing_and_releases_held_resources() -> None:
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


def test_next_controller_reacquires_everything_after_a_failed_release() -> None:
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


def test_wait_ends_on_condition_or_timeout() -> None:
    table = Table()
    p = Program(MortalJournal(table), table)
    answers = iter(["", "", "ready"])
    assert p.wait(lambda: next(answers), 60) == "ready"
    before = p.now()
    assert p.wait(lambda: "", 10) == ""
    assert 10 <= p.now() - before < 20


def test_a_key_cannot_name_two_effects() -> None:
    table = Table()
    p = Program(MortalJournal(table), table)
    p.once("move", lambda: 1)
    with pytest.raises(RuntimeError, match="move names two effects"):
        p.once("move", lambda: 2)


def test_returns_values_as_later_controllers_read_them() -> None:
    table = Table()
    p = Program(MortalJournal(table), table)
    assert p.once("pair", lambda: (1, 2)) == [1, 2]


class Fragile(Table):
    """A table whose blue cup breaks once, and whose effects inside the door need the door."""

    broken = 0

    def unlock(self) -> None:
        super().unlock()
        assert not self.is_open, "the window is closed before the door"

    is_open = False

    def open(self) -> None:
        assert self.is_locked
        self.effect("open", lambda: setattr(self, "is_open", True))

    def close(self) -> None:
        assert self.is_locked
        self.effect("close", lambda: setattr(self, "is_open", False))

    def smash(self) -> str:
        self.must_be_attended()
        if not self.broken:
            self.broken += 1
            raise Failed("blue cup", "move it", "it broke")
        return str(self.effect("smash", lambda: "moved"))


def careful(p: Program, table: Fragile) -> list[str]:
    """Move cups until one breaks, and count them whatever happened."""
    with p.held("the locked door", table.lock, table.unlock):
        with p.attempt("the cups") as cups, p.held("the open window", table.open, table.close):
            p.once("red", lambda: table.move("red"))
            p.once("blue", table.smash)
            p.once("never", lambda: table.effect("never", lambda: True))
        p.once("count", lambda: table.effect("count", lambda: 2))
    return [cups.failure]


def test_failed_attempt_releases_resources_and_is_never_repeated() -> None:
    for table, (failure,) in histories(Fragile, lambda world: carry_out(world, lambda p: careful(p, world)), pairs=100):
        assert not table.is_locked and not table.is_open
        assert table.moves == ["red"] and "count" in table.log
        if failure:
            assert failure == "blue cup: could not move it: it broke"
            assert "smash" not in table.log and "never" not in table.log, "a part that failed is not tried again"
        else:
            assert "never" in table.log, "the controller died before the failure was written"


def test_releases_a_resource_whose_acquisition_failed() -> None:
    class Jammed(Fragile):
        def open(self) -> None:
            super().open()
            raise Failed("window", "open it", "it jams half open")

    def air(p: Program, table: Jammed) -> str:
        with (
            p.held("the locked door", table.lock, table.unlock),
            p.attempt("the air") as outcome,
            p.held("the open window", table.open, table.close),
        ):
            p.once("air", lambda: table.effect("air", lambda: True))
        return outcome.failure

    for table, failure in histories(Jammed, lambda world: carry_out(world, lambda p: air(p, world)), pairs=20):
        assert failure == "window: could not open it: it jams half open" and "air" not in table.log
        assert not table.is_locked and not table.is_open


def test_outer_attempt_continues_after_a_nested_one_fails() -> None:
    def nested(p: Program, table: Fragile) -> tuple[str, str]:
        with p.attempt("the table") as whole:
            with p.attempt("the cups") as cups:
                p.once("blue", table.smash)
            p.once("count", lambda: table.effect("count", lambda: 2))
            raise Failed("table", "carry it", "it is heavy")
        return whole.failure, cups.failure

    for table, (whole, cups) in histories(
        Fragile, lambda world: carry_out(world, lambda p: nested(p, world)), pairs=20
    ):
        assert whole == "table: could not carry it: it is heavy" and "count" in table.log
        assert cups in ("", "blue cup: could not move it: it broke")


class Interrupted(BaseException):
    """The user pressed Ctrl-C."""


@pytest.mark.parametrize("is_in_attempt", [False, True])
def test_releases_a_resource_whose_acquisition_was_interrupted(is_in_attempt: bool) -> None:
    table, values = Table(), dict[str, object]()
    p = Program(MortalJournal(table, values), table)

    def lock() -> None:
        table.lock()
        raise Interrupted

    block = p.attempt("the cups") if is_in_attempt else nullcontext()
    with pytest.raises(Interrupted), block, p.held("the locked door", lock, table.unlock):
        p.once("never", lambda: True)

    assert not table.is_locked and values == {}


def test_next_controller_repeats_an_interrupted_release() -> None:
    table, values, is_interrupted = Fragile(), dict[str, object](), [True]

    def close() -> None:
        if is_interrupted[0]:
            raise Interrupted
        table.close()

    def air(p: Program) -> None:
        with p.held("the locked door", table.lock, table.unlock), p.held("the open window", table.open, close):
            p.once("air", lambda: table.effect("air", lambda: True))

    table.unlock = lambda: Table.unlock(table)  # type: ignore[method-assign]
    with pytest.raises(Interrupted):
        air(Program(MortalJournal(table, values), table))
    assert not table.is_locked and table.is_open
    is_interrupted[0] = False
    air(Program(MortalJournal(table, values), table))
    assert not table.is_locked and not table.is_open and table.log.count("air") == 1


def smashed(p: Program, table: Fragile) -> list[object]:
    """Move cups between things that are ensured, awaited and gone on without, until one breaks."""
    known: list[object] = []

    def fail() -> None:
        raise Failed("saucer", "find it", "it is gone")

    def missing(key: str) -> None:
        try:
            p.once(key, fail)
        except Failed as error:
            p.missed(key, str(error))
            known.append(str(error))
        except WholeError as error:
            known.append(str(error))

    with p.held("the locked door", table.lock, table.unlock), p.attempt("the cups") as cups:
        known.append(p.once("red", lambda: table.move("red")))
        p.ensure(lambda: table.effect("look", lambda: True))
        missing("saucer")
        with p.held("the open window", table.open, table.close):
            p.say("a line")
            p.wait(lambda: table.effect("ask", lambda: True), 10.0)
            known.append(p.once("count", lambda: table.effect("count", lambda: 2)))
        p.once("blue", table.smash)
    return [*known, cups.failure]


def test_later_controller_takes_values_of_a_failed_attempt() -> None:
    table, values = Fragile(), dict[str, object]()
    first = smashed(Program(MortalJournal(table, values), table), table)
    assert first[:-1] == ["right", "saucer: could not find it: it is gone", 2] and "it broke" in str(first[-1])
    del values["released the locked door"]
    table.log.clear()

    again = smashed(Program(MortalJournal(table, values), table), table)

    assert again == first and table.log == ["lock", "unlock"], "it starts and takes nothing else"


def test_effect_that_fails_again_keeps_written_values() -> None:
    table, values = Fragile(), dict[str, object]()
    smashed(Program(MortalJournal(table, values), table), table)
    for name in ("failure of the cups", "released the locked door"):
        del values[name]

    def fail(what: str, act: Callable[[], object]) -> object:
        if what == "look":
            raise Failed("the table", "look at it", "it is dark")
        return MortalWorld.effect(table, what, act)

    table.effect = fail  # type: ignore[method-assign]
    again = smashed(Program(MortalJournal(table, values), table), table)

    assert again == ["right", "saucer: could not find it: it is gone", 2, "the table: could not look at it: it is dark"]
    assert table.lines[-1] == again[-1] and values["failure of the cups"] == again[-1]


def test_line_before_a_written_release_is_shown_once() -> None:
    table, values = Table(), dict[str, object]()

    def run() -> None:
        tidy(Program(MortalJournal(table, values), table), table)

    run()
    lines = list(table.lines)
    run()
    assert table.lines == lines
