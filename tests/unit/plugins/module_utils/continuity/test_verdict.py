"""The details of a verdict, its bounded lists of breaches, and the rules of docs/continuity.md as properties."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.continuity.limits import LISTED, OF_ONE_KIND, Breach, bounded, in_order, left_out
from plugins.module_utils.continuity.verdict import verdict

from .runs import SEEN, START, Record, changed, facts, kinds, move, records

LIMITS = {"resume_deadline_s": 20}


def judge(made: list[Record], moves: list[Record], more: Record | None = None, **limits: Any) -> dict[str, Any]:
    seen = {**facts(moves), **(more or {})}
    return verdict(made, moves, {**LIMITS, **limits}, ended="running", facts=seen)


def mark(at: float, word: str, rank: int = 0, step: int = 0) -> Record:
    return {"rank": rank, "step": step, "phase": "eval", "mark": word, "t": START + at, "seen": SEEN + at}


def test_breaches_are_ordered_by_time_undated_ones_last() -> None:
    made = [one for one in records() if (one["rank"], one["step"]) not in {(1, 70), (2, 20)}]
    result = judge(made, [], {"pods": ["pod w1 was recreated: a became b"]})
    assert [(one["kind"], one["step"], one["at"] is None) for one in result["breaches"]] == [
        ("step_lost", 20, False), ("step_lost", 70, False), ("identity", None, True),
    ]  # fmt: skip


@pytest.mark.parametrize(("why", "detail"), [(" evicted ", "the job died: evicted"), (None, "the job died")])
def test_reports_a_death_with_its_time_and_cause(why: str | None, detail: str) -> None:
    made = [one for one in records() if one["rank"] != 2 or one["step"] < 90]
    (breach,) = verdict(made, [], {}, ended="died", facts={"died": why}, require=())["breaches"]
    assert (breach["kind"], breach["detail"]) == ("died", detail)
    assert breach["at"] == pytest.approx(SEEN + 99.035)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ((85, 85, 85, 85), "; the ranks fell silent, in the window of move 1 (w1)"),
        ((90, 85, 90, 90), "; rank 1 fell silent first, in the window of move 1 (w1)"),
        ((70, 70, 70, 70), ""),
    ],
)
def test_a_death_names_the_move_before_it(last: tuple[int, ...], expected: str) -> None:
    moves = [move(80, 84)]
    made = [one for one in records() if one["step"] <= last[one["rank"]]]
    result = verdict(made, moves, LIMITS, ended="died", facts={**facts(moves), "died": "rank 1 ended"})
    assert [one["detail"] for one in result["breaches"] if one["kind"] == "died"] == [
        f"the job died: rank 1 ended{expected}"
    ]


def test_a_move_by_another_user_is_a_note() -> None:
    moves = [move(30, 35), move(60, 65, rank=2, external=True, by="eve")]
    result = judge(records(), moves)
    assert result["notes"] == ["moved by others: eve moved w2 from esx1 to esx5; this test did not start that"]
    assert result["moved"] == "all"
    assert judge(records(), [{**moves[0], "ok": False}, moves[1]])["moved"] == "none"
    assert judge(records(), moves[:1])["notes"] == []


@pytest.mark.parametrize("reported", [["Kubernetes reported node w1 as not ready"], None, "a word"])
def test_a_node_reported_not_ready_is_a_note(reported: Any) -> None:
    result = judge(records(), [], {"silences": reported})
    assert (result["verdict"], result["notes"]) == ("continuous", reported if isinstance(reported, list) else [])


def test_moves_that_overlap_are_named_together() -> None:
    moves = [move(30, 45), move(40, 60, rank=2)]
    half = changed(records(120), lambda one: one["rank"] == 1 and one["step"] > 50, pid=None)
    result = judge(half, moves)
    both = "move 1 (w1) and move 2 (w2)"
    assert result["notes"] == [f"{both} overlap: judged as one"]
    assert result["unproven"] == [f"identity: rank 1 reported pid only before {both}"]
    assert result["verdict"] == "inconclusive"


def test_lists_what_keeps_a_run_from_being_continuous() -> None:
    power = {"power": [{"worker": "vm-7", "at": SEEN + 50, "by": "eve", "what": "VmPoweredOffEvent"}]}
    assert [one.split(":")[0] for one in judge(records(), [], power)["unproven"]] == ["power"]
    lost = judge(changed(records(), lambda one: one["step"] > 97 and one["rank"] == 2, loss="nan"), [])
    assert lost["unproven"][0].startswith("loss: rank 2 has loss nan ")
    none = judge(records(10, ranks=1), [], warmup_steps=10)
    assert none["unproven"] == ["steps: rank 0 made none after the warm-up of 10"]
    assert {one["verdict"] for one in (lost, none)} == {"inconclusive"}


def test_lists_optional_facts_that_are_unproven() -> None:
    bare = [{key: value for key, value in one.items() if key != "seen"} for one in records(30, ranks=1)]
    result = judge([*bare, {"rank": 0}, {"step": 1}], [])
    assert result["unproven"] == [
        "observer's clock: 30 records have no `seen`, so the clocks of their ranks replace it",
        "records: 2 lack a rank, a step or a time",
    ]
    assert result["verdict"] == "continuous"


def test_power_events_of_machines_without_ranks_are_notes() -> None:
    power = {
        "power": [{"worker": "db7", "at": SEEN + 50, "by": "eve", "what": "VmPoweredOffEvent"}],
        "ranks": {"db7": []},
    }
    (note,) = judge(records(), [], power)["notes"]
    assert "no rank of the job runs on it" in note


def test_a_clock_step_is_a_note_with_figures() -> None:
    made = [{**one, "t": one["t"] + 100} if one["rank"] == 1 and one["step"] >= 40 else one for one in records()]
    result = judge(made, [])
    assert result["notes"] == ["the clock of rank 1 was set by 100.0 s before step 40"]
    assert [(one["rank"], one["step"]) for one in result["clock_steps"]] == [(1, 40)]


def test_the_warm_up_starts_with_the_first_step() -> None:
    late = [one for one in records(stall=(8, 200.0)) if one["rank"] == 0 or one["step"] >= 7]
    assert kinds(judge(changed(late, lambda one: True, size=None), [], warmup_steps=4)) == {"gap"}


def test_a_run_with_only_marks_has_no_steps() -> None:
    result = judge([mark(0, "begin"), mark(30, "end")], [], warmup_steps=1)
    assert result["verdict"] == "inconclusive"
    assert result["longest_gap_by_phase_s"] == {"eval": 30.0}
    beside = judge([*records(ranks=1), mark(20.5, "begin", rank=1), mark(30.5, "end", rank=1)], [])
    assert beside["longest_gap_by_phase_s"] == {"train": 1.0, "eval": 10.0}


def test_reports_all_figures_of_moves_and_longest_silence() -> None:
    moves = [move(30, 40)]
    result = judge(records(ranks=2, stall=(35, 4.0)), moves)
    gap = {"rank": 0, "step": 35, "at": pytest.approx(SEEN + 34.005), "seconds": pytest.approx(5.0), "phase": "train"}
    assert result["longest_gap"] == gap
    report = {
        key: value for key, value in result["moves"][0].items() if key not in ("throughput", "steps", "resumed_s")
    }
    assert report == {
        "worker": "w1", "ranks": [1], "ok": True, "started": SEEN + 30, "completed": SEEN + 40, "moved": True,
        "judged_with": [0], "gap_s": pytest.approx(5.0), "gap": gap, "source": "others",
    }  # fmt: skip


def test_overlapping_moves_share_their_silence_and_their_steps() -> None:
    moves = [move(30, 45), move(40, 60, rank=2), move(70, 75, rank=3)]
    result = judge(records(120, stall=(42, 3.0)), moves)
    assert [reported["judged_with"] for reported in result["moves"]] == [[0, 1], [0, 1], [2]]
    assert [reported["gap_s"] for reported in result["moves"]] == pytest.approx([4.0, 4.0, 1.0])
    assert result["moves"][0]["steps"] == {"before": 30, "during": 27, "after": 63}
    assert result["moves"][2]["resumed_s"] == pytest.approx(0.035)


def test_claims_no_source_of_silences_without_records() -> None:
    assert judge([], [move(30, 40)])["source"] == "others"
    assert judge(records(ranks=1), [move(30, 40, rank=0)])["source"] == "moved_only"


RUN = records(steps=60)
MOVES = [move(20, 24)]
TIMES = st.floats(SEEN - 50, SEEN + 58, allow_nan=False)
spellings = st.sampled_from(("w2", "W2", "w2.example.org", "W2.Example.ORG"))


def judged(made: list[dict[str, Any]], ended: str = "running", **more: Any) -> dict[str, Any]:
    return verdict(made, MOVES, {"resume_deadline_s": 20}, ended=ended, facts={**facts(MOVES), **more})


@settings(max_examples=200, deadline=None)
@given(
    machine=spellings,
    guest=spellings,
    ranks=st.sampled_from((None, {}, {"w2": []}, {"w2": [2]}, {"w1": [1]})),
    of_move=st.booleans(),
    at=TIMES,
)
def test_a_power_cycled_worker_prevents_a_continuous_verdict(
    machine: str, guest: str, ranks: Any, of_move: bool, at: float
) -> None:
    """The records name a guest that vSphere may spell otherwise; neither facts nor moves without ranks prevail."""
    made = changed(RUN, lambda record: record["rank"] == 2, host=guest)
    event = {"worker": machine, "at": at, "by": "eve", "what": "VmResettingEvent"}
    more = (
        {} if ranks is None else {"ranks": {machine if name == "w2" else name: those for name, those in ranks.items()}}
    )
    moves = [*MOVES, {**move(30, 34, rank=2), "worker": machine, "ranks": []}] if of_move else MOVES
    found = verdict(
        made, moves, {"resume_deadline_s": 20}, ended="running", facts={**facts(moves), "power": [event], **more}
    )
    first = min(record["seen"] for record in made)
    assert (found["verdict"] == "continuous") is (at < first), found


@settings(max_examples=100, deadline=None)
@given(known=st.sampled_from((None, {}, {"w0": [0]}, {"w0": [0], "w1": [1], "w2": [2], "w3": [3]})), at=TIMES)
def test_a_power_cycle_without_known_ranks_is_inconclusive(known: Any, at: float) -> None:
    """Another guest's name does not fit the machine either, so that its rank may run there."""
    made = changed(RUN, lambda record: record["rank"] == 3, host="inside-a-container")
    event = {"worker": "spare", "at": at, "by": "eve", "what": "VmPoweredOffEvent"}
    found = judged(made, power=[event], **({} if known is None else {"ranks": known}))
    first = min(record["seen"] for record in made)
    if at < first:
        assert found["verdict"] == "continuous"
    elif known and len(known) == 4:
        assert found["verdict"] in ("continuous", "inconclusive")
    else:
        assert found["verdict"] == "inconclusive", found


@settings(max_examples=100, deadline=None)
@given(sums=st.dictionaries(st.sampled_from("0123"), st.sampled_from((None, "a", "b")), max_size=4))
def test_differing_checksums_break_only_if_two_were_observed(sums: dict[str, str | None]) -> None:
    found = judged(RUN, ended="finished", checksums=sums)
    observed = {value for value in sums.values() if value is not None}
    assert ("parameters" in {breach["kind"] for breach in found["breaches"]}) is (len(observed) > 1), found


def breach(at: float | None, kind: str = "step_lost") -> Breach:
    return Breach(kind, 0, 1, at, f"{kind} at {at}")


def test_few_breaches_stay_as_they_are() -> None:
    few = [breach(float(at)) for at in range(OF_ONE_KIND)]
    assert list(bounded(few)) == few and list(left_out(few)) == []


def test_similar_breaches_are_counted_and_other_kinds_kept() -> None:
    many = [breach(float(at)) for at in range(100)]
    other = breach(200.0, "loss")
    kept = list(bounded([*many, other]))
    assert kept[:OF_ONE_KIND] == many[:OF_ONE_KIND] and kept[OF_ONE_KIND] == other
    assert kept[-1].at == 99.0 and len(kept) == OF_ONE_KIND + 2
    assert kept[-1].detail == f"step_lost at 99.0 ({100 - OF_ONE_KIND - 1} similar ones before it are not listed)"


def test_a_breach_without_a_time_is_sorted_last() -> None:
    assert in_order([breach(None), breach(2.0), breach(1.0)]) == [breach(1.0), breach(2.0), breach(None)]


def test_breaches_beyond_the_list_are_counted_by_kind() -> None:
    ordered = [*(breach(float(at)) for at in range(LISTED)), breach(None, "died"), breach(None), breach(None)]
    expected = f"the first {LISTED:,} of {LISTED + 3:,} breaches are listed; omitted: died: 1, step_lost: 2"
    assert list(left_out(ordered)) == [expected]
    assert not list(left_out(ordered[:LISTED]))


def lossy(ranks: int, steps: int, **more: Any) -> list[dict[str, Any]]:
    """Return lossy in which every second step is lost."""
    return [
        {"t": float(step), "step": 2 * step, "stride": 1, "rank": rank, "size": ranks, "seen": float(step), **more}
        for step in range(1, steps + 1)
        for rank in range(ranks)
    ]


def test_a_log_of_breaches_yields_a_short_list() -> None:
    judged = verdict(lossy(64, 200), [], {}, ended="running")
    assert judged["verdict"] == "broken" and len(judged["breaches"]) == LISTED
    assert f"the first {LISTED:,} of {64 * (OF_ONE_KIND + 1):,} breaches are listed" in judged["notes"][0]


@pytest.mark.parametrize("steps", [100, 1000])
def test_limits_the_breaches_of_a_constantly_changing_process(steps: int) -> None:
    made = [{**record, "pid": number} for number, record in enumerate(lossy(1, steps))]
    kinds = [found["kind"] for found in verdict(made, [], {}, ended="running")["breaches"]]
    assert kinds.count("identity") == OF_ONE_KIND + 1
