"""The verdict on resumed runs: random runs, and the result that docs/continuity.md gives for each change."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.continuity.restart_facts import Attempt, GivenCheckpoint
from plugins.module_utils.continuity.restart_steps import read_steps
from tests.fakes import foreign

from .restarts import BEGAN, RUNS, Run, again, kinds, verdict

TABLE = Path(__file__).parents[5] / "docs" / "continuity.md"


@settings(max_examples=150, deadline=None)
@given(run=RUNS)
def test_a_correct_restart_is_resumed_with_its_cost(run: Run) -> None:
    found = verdict(run.attempts())

    assert found.verdict == "resumed", (found.breaches, found.unproven)
    restart, repeated = found.restarts[0], run.last - run.saved
    places = restart.checkpoint_step, restart.last_step, restart.first_step, restart.repeated_steps
    assert places == (run.saved, run.last, run.saved + 1, repeated)
    assert restart.losses.startswith("equal within" if repeated else "no step was repeated")
    assert restart.repeated_s == pytest.approx(repeated * run.seconds)
    hole = run.restarted + run.seconds - (BEGAN + run.last * run.seconds)
    assert sum(part.seconds for part in restart.parts) == pytest.approx(hole)
    assert found.cost is not None and found.cost.down_s == pytest.approx(hole)
    # The time of each step that counts, without that before the first record of an attempt.
    productive = (run.end - 2) * run.seconds
    lifetime = hole + (run.last - 1 + run.end - run.saved - 1) * run.seconds
    assert found.cost.goodput == pytest.approx(productive / lifetime, abs=1e-6)


def _skipped(run: Run, rng: Random) -> list[Attempt]:
    """The program goes on some steps after the checkpoint, or loses a step later."""
    gone = run.saved + 1 if rng.random() < 0.5 or run.end < run.saved + 3 else rng.randint(run.saved + 2, run.end - 1)
    return again(run, [record for record in run.second_records if record["step"] != gone])


def _from_start(run: Run, _rng: Random) -> list[Attempt]:
    return again(run, run.records(0, run.end, run.restarted))


def _older(run: Run, rng: Random) -> list[Attempt]:
    return again(run, run.records(rng.randint(2, run.saved - 1), run.end, run.restarted))


def _other_thing(run: Run, rng: Random) -> list[Attempt]:
    one, two = run.attempts()
    return [one, replace(two, program={**two.program, rng.choice(sorted(two.program)): "other"})]


def _checkpoint(**more: Any) -> Callable[[Run, Random], list[Attempt]]:
    def changed(run: Run, _rng: Random) -> list[Attempt]:
        one, two = run.attempts()
        return [one, replace(two, checkpoint=replace(two.checkpoint, **more))]  # type: ignore[type-var] # it has one

    return changed


def _one_rank_later(run: Run, _rng: Random) -> list[Attempt]:
    records = [record for record in run.second_records if (record["rank"], record["step"]) != (0, run.saved + 1)]
    return again(run, records)


def _twice(run: Run, rng: Random) -> list[Attempt]:
    made = rng.choice(run.second_records)
    return again(run, [*run.second_records, {**made, "t": made["t"] + 0.1, "seen": made["seen"] + 0.1}])


def _at_once(run: Run, rng: Random) -> list[Attempt]:
    one, two = run.attempts()
    return [one, replace(two, started=BEGAN + run.last * run.seconds - rng.uniform(6, 60))]


def _died(run: Run, _rng: Random) -> list[Attempt]:
    one, two = run.attempts()
    return [one, replace(two, state="died", cause="rank 1 was ended by signal 9")]


def _parameters(run: Run, _rng: Random) -> list[Attempt]:
    one, two = run.attempts()
    return [one, replace(two, parameters=("aa", "bb"))]


BROKEN: dict[str, tuple[Callable[[Run, Random], list[Attempt]], str]] = {
    "skipped step": (_skipped, "skipped"),
    "from the start": (_from_start, "start"),
    "older checkpoint loaded": (_older, "older"),
    "older checkpoint given": (_checkpoint(newer=("step99.pt",)), "older"),
    "changed file of the checkpoint": (_checkpoint(fault="step6.pt was changed after the end of one"), "checkpoint"),
    "no file of the optimizer": (_checkpoint(has_optimizer=False), "optimizer"),
    "changed code, data, packages, command or size": (_other_thing, "program"),
    "step made twice": (_twice, "repeated"),
    "two attempts at once": (_at_once, "overlap"),
    "died afterwards": (_died, "died"),
    "different parameters": (_parameters, "parameters"),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
@settings(max_examples=60, deadline=None)
@given(run=RUNS, seed=st.integers(0, 10_000))
def test_each_wrong_restart_is_broken_with_its_cause(name: str, run: Run, seed: int) -> None:
    change, kind = BROKEN[name]

    found = verdict(change(run, Random(seed)))

    assert found.verdict == "broken" and kind in kinds(found), (found.breaches, found.unproven)


def test_documentation_names_each_planted_kind_of_breach() -> None:
    section = TABLE.read_text().partition("## The verdict *resumed*")[2].partition("### The cost")[0]

    assert {kind for _change, kind in BROKEN.values()} | {"ranks"} == set(
        re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    )


@settings(max_examples=40, deadline=None)
@given(run=RUNS.filter(lambda run: run.ranks > 1))
def test_ranks_that_begin_at_different_steps_are_broken(run: Run) -> None:
    assert "ranks" in kinds(verdict(_one_rank_later(run, Random(1))))


def _losses(run: Run, change: Callable[[int, float], float]) -> list[Attempt]:
    made = run.second_records
    return again(run, [{**each, "loss": change(each["step"] - run.saved, each["loss"])} for each in made])


REPEATING = RUNS.filter(lambda run: run.last - run.saved >= 4)


@settings(max_examples=60, deadline=None)
@given(run=REPEATING, seed=st.integers(0, 10_000))
def test_losses_of_other_data_are_not_comparable(run: Run, seed: int) -> None:
    """Data in another order changes the loss of the first repeated step too."""
    rng = Random(seed)

    found = verdict(_losses(run, lambda _number, loss: loss * (1.01 + rng.random() / 100)))

    assert found.verdict == "resumed" and found.restarts[0].losses.startswith("not comparable: "), found


@settings(max_examples=60, deadline=None)
@given(run=REPEATING, seed=st.integers(0, 10_000))
def test_losses_that_diverge_later_reveal_a_lost_optimizer(run: Run, seed: int) -> None:
    """The loss of the first step depends on the weights and the data, that of the next one on the optimizer too."""
    rng = Random(seed)

    found = verdict(_losses(run, lambda number, loss: loss * (1.0 if number == 1 else 1.01 + rng.random() / 100)))

    assert kinds(found) == {"optimizer"}, found


@pytest.mark.parametrize("run", [Run(2, 20, 22, 40), Run(2, 20, 60, 80, stride=10)])
def test_few_diverging_losses_do_not_break_a_run(run: Run) -> None:
    """The loss of a tenth step depends on the optimizer of the nine before."""
    found = verdict(_losses(run, lambda number, loss: loss * (1.0 if number <= run.stride else 1.02)))

    assert found.verdict == "resumed" and found.restarts[0].losses.startswith("not comparable: "), found


@settings(max_examples=60, deadline=None)
@given(run=RUNS.filter(lambda run: run.end - run.saved >= 4))
def test_losses_of_the_beginning_reveal_a_missing_checkpoint(run: Run) -> None:
    """The numbers go on after the checkpoint, but the weights are new."""
    began = [{**each, "loss": run.loss(each["rank"], each["step"] - run.saved)} for each in run.second_records]

    found = verdict(again(run, began))

    assert kinds(found) == {"start"}, found


@settings(max_examples=60, deadline=None)
@given(run=REPEATING, of_recorder=st.booleans())
def test_places_records_that_restart_counting_by_their_losses(run: Run, of_recorder: bool) -> None:
    """The steps of an unchanged script are counted from the start of its process."""
    source = {"by": "optimizer SGD"} if of_recorder else {}
    counted = [{**each, **source, "step": each["step"] - run.saved} for each in run.second_records]

    found = verdict(again(run, counted))

    assert found.verdict == "resumed" and found.restarts[0].first_step == run.saved + 1, found
    assert any("count from 1 again" in note for note in found.notes)


@settings(max_examples=20, deadline=None)
@given(run=REPEATING)
def test_compares_losses_that_are_logged_after_steps(run: Run) -> None:
    def logged(records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for each in records:
            yield {**each, "loss": None}
            yield {**each, "mark": "loss", "t": each["t"] + 0.01, "seen": each["seen"] + 0.01}

    first, second = (read_steps(logged(each)) for each in (run.first_records, run.second_records))

    assert first[0].loss_of(run.last) == run.loss(0, run.last)
    assert second[0].loss_of(run.end) == run.loss(0, run.end)


def test_counted_steps_without_losses_are_inconclusive() -> None:
    run = Run(2, 20, 25, 40)
    counted = [
        {**each, "by": "optimizer SGD", "step": each["step"] - run.saved, "loss": None} for each in run.second_records
    ]

    found = verdict(again(run, counted))

    assert found.verdict == "inconclusive" and "counted from its start" in found.unproven[0]


@pytest.mark.parametrize(("by", "result"), [({"by": "optimizer SGD"}, "inconclusive"), ({}, "broken")])
def test_losses_that_never_change_confirm_no_place(by: dict[str, str], result: str) -> None:
    """Only a script that counts its steps itself says with them where it began."""
    run = Run(2, 20, 25, 40)
    one, two = run.attempts()
    first = [{**each, **by, "loss": 1.0} for each in run.first_records]
    second = [{**each, **by, "loss": 1.0, "step": each["step"] - run.saved} for each in run.second_records]

    found = verdict([replace(one, ranks=read_steps(first)), replace(two, ranks=read_steps(second))])

    assert found.verdict == result and kinds(found) <= {"start"}, found


def test_places_an_attempt_after_one_that_restarted_counting() -> None:
    run = Run(2, 20, 25, 40)
    counted = [{**each, "by": "optimizer SGD", "step": each["step"] - run.saved} for each in run.second_records]
    one, two = again(run, counted)
    began = run.restarted + 100
    third = [{**each, "by": "optimizer SGD", "step": each["step"] - 35} for each in run.records(35, 60, began)]
    more = {"started": began - 5, "checkpoint": GivenCheckpoint("step35.pt", 35)}

    found = verdict([one, two, replace(two, name="three", ranks=read_steps(third), **more)])

    assert found.verdict == "resumed" and [each.first_step for each in found.restarts] == [21, 36], found


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"checkpoint": None}, "the manifest of two does not have the one with which it started"),
        ({"ranks": {}}, "records: none of two"),
        ({"size": 3}, "records: none of rank 2 in two"),
    ],
)
def test_missing_facts_make_the_verdict_inconclusive(more: dict[str, Any], words: str) -> None:
    one, two = Run(2, 20, 25, 40).attempts()

    found = verdict([one, replace(two, **more)])

    assert found.verdict == "inconclusive" and words in " ".join(found.unproven), found


def test_checkpoint_of_unknown_step_hides_no_beginning() -> None:
    run = Run(2, 20, 25, 40)
    one, two = again(run, run.records(0, 20, run.restarted))

    found = verdict([one, replace(two, checkpoint=GivenCheckpoint("last.pt", None))])

    assert found.verdict == "broken" and kinds(found) == {"start"}, found


def test_unread_last_records_make_the_verdict_inconclusive() -> None:
    run = Run(2, 20, 25, 40)
    one, two = run.attempts()
    unread = [each for each in run.first_records if each["rank"] == 0 or each["step"] < 18]

    found = verdict([replace(one, ranks=read_steps(unread)), two])

    assert found.verdict == "inconclusive" and "end before step 20" in " ".join(found.unproven), found


@settings(max_examples=60, deadline=None)
@given(saved=st.integers(10, 60), repeated=st.integers(10, 30))
def test_finds_the_first_step_with_records_every_ten(saved: int, repeated: int) -> None:
    run = Run(2, saved, saved + repeated, saved + repeated + 30, stride=10)

    assert verdict(run.attempts()).verdict == "resumed"
    early = run.records(saved - 10, run.end, run.restarted)
    assert kinds(verdict(again(run, early))) == {"older"} if saved >= 20 else True


def test_a_program_that_counts_from_zero_is_resumed() -> None:
    run = Run(2, 20, 25, 40)
    zero = [{**each, "step": each["step"] - 1} for each in run.first_records]
    later = [{**each, "step": each["step"] - 1} for each in run.second_records]

    one, two = again(run, later)

    assert verdict([replace(one, ranks=read_steps(zero)), two]).verdict == "resumed"


@pytest.mark.parametrize("has_losses", [True, False])
def test_records_of_each_micro_step_need_equal_losses(has_losses: bool) -> None:
    """With accumulated gradients, the checkpoint counts steps and the records count parts of them."""
    run = Run(2, 20, 30, 40)
    records = [{**each, "loss": each["loss"] if has_losses else None} for each in run.second_records]

    found = verdict(again(run, records, checkpoint=GivenCheckpoint("step5.pt", 5)))

    assert found.verdict == ("resumed" if has_losses else "inconclusive"), found


def test_an_unknown_checkpoint_step_needs_equal_losses() -> None:
    run, unknown = Run(2, 20, 30, 40), GivenCheckpoint("last.pt")
    without = [{**each, "loss": None} for each in run.second_records]

    assert verdict(again(run, run.second_records, checkpoint=unknown)).verdict == "resumed"
    assert verdict(again(run, without, checkpoint=unknown)).verdict == "inconclusive"


def test_an_accepted_change_is_reported_and_not_broken() -> None:
    one, two = Run(2, 20, 25, 40).attempts()
    smaller = replace(two, program={**two.program, "ranks": "1"})

    assert kinds(verdict([one, smaller])) == {"program"}
    found = verdict([one, smaller], accepted=frozenset({"ranks"}))
    assert found.verdict == "resumed" and found.notes == ("accepted: ranks: 2 in one, 1 in two",)
    stopped = replace(one, state="stopped", cause="stopped by anna@desk")
    chosen = verdict([stopped, replace(smaller, chosen=frozenset({"ranks"}))])
    notes = ("chosen: ranks: 2 in one, 1 in two", "one was stopped by anna@desk")
    assert (chosen.verdict, chosen.notes) == ("resumed", notes)


def test_a_planned_restart_requires_a_stopped_attempt() -> None:
    one, two = Run(2, 20, 25, 40).attempts()
    died = replace(one, state="died", cause="rank 1 was ended by signal 9")
    assert verdict([died, two]).verdict == "resumed"
    assert kinds(verdict([died, two], is_planned=True)) == {"died"}


@pytest.mark.parametrize(
    ("loss", "seconds", "torn", "words"),
    [
        (40.0, 0.5, (), "the optimizer or the order of the data may be lost"),
        (1.0, 2.0, (), "slower: two needs 2 s for a step, one 0.5 s"),
        (1.0, 0.5, ("step25.pt (it is empty)",), "torn, so an earlier checkpoint was used: step25.pt (it is empty)"),
    ],
)
def test_unusual_steps_after_a_restart_are_noted(loss: float, seconds: float, torn: Any, words: str) -> None:
    run, slow = Run(2, 30, 30, 50), Run(2, 30, 30, 50, seconds=seconds)
    records = [{**each, "loss": each["loss"] * loss} for each in slow.records(30, 50, run.restarted)]

    found = verdict(again(run, records, checkpoint=GivenCheckpoint("step30.pt", 30, torn=torn)))

    assert found.verdict == "resumed" and len(found.notes) == 1 and words in found.notes[0], found


def test_a_third_attempt_is_judged_against_the_second() -> None:
    run = Run(2, 20, 25, 40)
    one, two = run.attempts()
    began = run.restarted + 100
    ranks = read_steps(run.records(35, 60, began))
    three = replace(two, name="three", ranks=ranks, started=began - 5, checkpoint=GivenCheckpoint("step35.pt", 35))
    empty = replace(three, name="early", ranks={}, state="died")

    found = verdict([one, two, empty, three])

    assert found.verdict == "resumed" and "early ended before its first step" in found.notes, found
    assert [restart.repeated_steps for restart in found.restarts] == [5, 5]
    unfollowed = verdict([one, two, replace(empty, steps=9), three])
    assert "records: none of early" in unfollowed.unproven
    assert "early ended before its first step" not in unfollowed.notes
    assert unfollowed.verdict == "inconclusive"


ODD = foreign.mangled({**Run(1, 6, 8, 9).first_records[0], "mark": "begin", "by": "optimizer"})


@settings(max_examples=200, deadline=None)
@given(odd=st.lists(ODD, max_size=8), is_first=st.booleans())
def test_records_of_any_form_have_a_verdict(odd: list[Any], is_first: bool) -> None:
    """Ranks write the records, so they may contain anything."""
    records = [each for each in odd if isinstance(each, dict)]
    run = Run(2, 20, 25, 40)
    one, two = again(run, [*records, *(run.second_records if is_first else [])])

    found = verdict([replace(one, ranks=read_steps([*run.first_records, *records])), two])

    assert found.verdict in ("resumed", "broken", "inconclusive")
    json.dumps(asdict(found), allow_nan=False)


def test_records_that_are_read_twice_count_once() -> None:
    run = Run(2, 20, 25, 40)
    read_again = [{**each, "seen": each["seen"] + 500} for each in run.second_records]
    assert verdict(run.attempts()) == verdict(again(run, [*run.second_records, *read_again]))
