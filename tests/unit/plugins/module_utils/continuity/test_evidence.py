"""The continuity verdict: insufficient evidence, observations in addition to the records, and completed moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from plugins.module_utils.continuity.verdict import verdict

from .runs import changed, facts, kinds, move, records

LIMITS = {"resume_deadline_s": 20}


def judge(
    made: list[dict[str, Any]], moves: list[dict[str, Any]], require: Sequence[str] = (), **limits: Any
) -> dict[str, Any]:
    return verdict(made, moves, {**LIMITS, **limits}, ended="running", facts=facts(moves), require=require)


def test_without_records_nothing_is_known() -> None:
    result = judge([], [move(30, 40)])
    assert (result["verdict"], result["unproven"][0]) == ("inconclusive", "records: none")
    assert result["longest_gap_s"] is None


@pytest.mark.parametrize("count", [19, 20])
@pytest.mark.parametrize("side", ["before", "after"])
def test_twenty_steps_are_needed_on_both_sides_of_a_move_on_every_rank(count: int, side: str) -> None:
    moves = [move(29.5, 40.5)]
    first, last = (30 - count, 99) if side == "before" else (0, 40 + count)
    made = [r for r in records() if r["rank"] != 3 or first <= r["step"] <= last]
    result = verdict(made, moves, LIMITS, ended="running", facts={}, require=())
    reported = [u for u in result["unproven"] if u.startswith("steps: rank 3 made 19 ")]
    assert len(reported) == (count == 19)
    if side == "before":
        assert result["verdict"] == ("inconclusive" if count == 19 else "continuous")
    else:
        assert result["verdict"] == "broken"  # the others continued


def test_warm_up_steps_are_neither_evidence_nor_breaches() -> None:
    made = records(stall=(3, 200.0))
    assert judge(made, [])["verdict"] == "broken"
    assert judge(made, [], warmup_steps=4)["verdict"] == "continuous"
    assert judge(made, [move(223.5, 240)], warmup_steps=4)["verdict"] == "continuous"
    assert judge(made, [move(223.5, 240)], warmup_steps=5)["verdict"] == "inconclusive"


def test_a_warm_up_of_strided_records_covers_the_steps_between() -> None:
    made = changed([r for r in records(300, stall=(3, 200.0)) if r["step"] % 10 == 0], lambda r: True, stride=10)
    assert judge(made, [])["verdict"] == "broken"
    assert judge(made, [], warmup_steps=4)["verdict"] == "continuous"


def test_a_breach_outweighs_missing_evidence() -> None:
    result = verdict(changed(records(), lambda r: r["step"] > 50, pid=1), [move(2, 3)], LIMITS, ended="running")
    assert result["verdict"] == "broken"
    assert "launcher" in result["unproven"]


def test_a_rank_without_records_is_missing() -> None:
    result = judge([r for r in records() if r["rank"] != 2], [])
    assert (result["verdict"], result["unproven"][0]) == ("inconclusive", "records: none of rank 2")


@pytest.mark.parametrize("name", ["launcher", "transport", "vsphere"])
def test_required_facts_must_be_given(name: str) -> None:
    moves = [move(30, 40)]
    given = {key: value for key, value in facts(moves).items() if key != name}
    result = verdict(records(), moves, LIMITS, ended="running", facts=given)
    assert (result["verdict"], result["unproven"]) == ("inconclusive", [name])
    rest = [key for key in given if key != name]
    assert verdict(records(), moves, LIMITS, ended="running", facts=given, require=rest)["verdict"] == "continuous"


def test_without_facts_every_requirement_is_missing() -> None:
    assert verdict(records(), [], {}, ended="finished")["unproven"] == ["launcher", "transport", "vsphere"]
    assert verdict(records(), [], {}, ended="finished", require=())["verdict"] == "continuous"


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("launcher", {"before": {"pid": 1}, "after": None}, "launcher: not observed both before and after"),
        ("launcher", "mpirun", "launcher: not observed both before and after"),
        ("transport", [{"before": "rdma", "after": "unproven"}], "transport: move 1 (w1): the transport after"),
        (
            "transport",
            [{"before": {"w1": "rdma"}, "after": {"w1": None}}],
            "transport: move 1 (w1): the transport of w1",
        ),
        ("transport", [{"before": {}, "after": {}}], "transport: move 1 (w1): the transport before and after"),
        ("transport", [], "transport: move 1 (w1): the transport before and after"),
        ("transport", ["rdma"], "transport: move 1 (w1): the transport before and after"),
        ("vsphere", [{}], "vsphere: move 1 (w1): hot migration event"),
        ("vsphere", [{"hot_migration": True, "power_cycled": False}], "vsphere: move 1 (w1): GPUs not observed"),
    ],
)
def test_half_of_a_fact_is_not_enough(name: str, given: Any, expected: str) -> None:
    moves = [move(30, 40)]
    result = verdict(records(), moves, LIMITS, ended="running", facts={**facts(moves), name: given})
    assert result["verdict"] == "inconclusive"
    assert any(unproven.startswith(expected) for unproven in result["unproven"])


@pytest.mark.parametrize(
    ("name", "given", "kind"),
    [
        ("launcher", {"before": {"pid": 1, "start": 5}, "after": {"pid": 2, "start": 5}}, "identity"),
        ("transport", [{"before": "rdma", "after": "tcp"}], "transport"),
        ("transport", [{"before": {"w0": "rdma", "w1": "rdma"}, "after": {"w0": "tcp", "w1": "rdma"}}], "transport"),
        ("vsphere", [{"power_cycled": True}], "power_cycle"),
        ("pods", ["pod w1 was recreated: afc6e497 became 5264c7a5"], "identity"),
    ],
)
def test_a_fact_that_shows_a_breach_counts_even_if_optional(name: str, given: Any, kind: str) -> None:
    for require in ((), (name,)):
        result = verdict(records(), [move(30, 40)], LIMITS, ended="running", facts={name: given}, require=require)
        assert (result["verdict"], kinds(result)) == ("broken", {kind})


@pytest.mark.parametrize("pods", [[], None, "odd"])
def test_pods_that_are_the_same_break_nothing(pods: Any) -> None:
    moves = [move(29.5, 40.5)]
    result = verdict(records(), moves, LIMITS, ended="running", facts={**facts(moves), "pods": pods})
    assert result["verdict"] == "continuous"


@pytest.mark.parametrize(
    ("oks", "evidence", "moved"),
    [
        ((True, True), {}, "all"),
        ((True, False), {}, "some"),
        ((False, None), {}, "none"),
        ((True, True), {"hot_migration": False}, "some"),
        ((True, True), {"host": {"before": "esx1", "after": "esx1"}}, "some"),
    ],
)
def test_only_successful_uncontradicted_moves_count(
    oks: tuple[bool | None, ...], evidence: dict[str, Any], moved: str
) -> None:
    moves = [move(30, 40, ok=oks[0]), move(60, 70, rank=2, ok=oks[1])]
    known = facts(moves)
    known["vsphere"][1].update(evidence)
    result = verdict(records(), moves, LIMITS, ended="running", facts=known)
    assert (result["verdict"], result["moved"]) == ("continuous", moved)


def test_a_failed_move_with_a_living_job_is_continuous_even_without_the_evidence_of_a_move() -> None:
    moves = [move(30, 140, ok=False)]
    known = {**facts(moves), "vsphere": [{"power_cycled": False}]}
    result = verdict(records(stall=(35, 100.0)), moves, LIMITS, ended="running", facts=known)
    assert (result["verdict"], result["moved"]) == ("continuous", "none")
    assert result["longest_gap_s"] == pytest.approx(101.0)


def test_nothing_moved_where_no_move_was_given() -> None:
    assert judge(records(), [])["moved"] == "none"


def test_a_move_under_way_and_a_move_without_sense_cannot_be_judged() -> None:
    under_way = judge(records(), [{**move(30, 40), "completed": None, "ok": None}])
    assert (under_way["verdict"], under_way["moved"]) == ("inconclusive", "none")
    assert "moves: move 1 (w1) has not ended" in under_way["unproven"]
    assert any("before it starts" in unproven for unproven in judge(records(), [move(30, 25)])["unproven"])


def test_a_move_that_was_refused_before_it_started_needs_no_steps_around_it() -> None:
    refused = judge(records(), [{**move(30, 40), "started": None, "completed": None, "ok": False}])
    assert (refused["verdict"], refused["moved"]) == ("continuous", "none")


@pytest.mark.parametrize(("history", "expected"), [({"power": []}, "continuous"), ({}, "inconclusive")])
def test_a_refused_move_needs_only_the_evidence_of_power_events(history: dict[str, Any], expected: str) -> None:
    moves = [{**move(30, 40), "started": None, "completed": None, "ok": False}]
    known = {**facts(moves), "vsphere": [None], **history}
    assert verdict(records(), moves, LIMITS, ended="running", facts=known)["verdict"] == expected


def test_gaps_are_measured_on_ranks_that_do_not_move() -> None:
    """The observer receives nothing from the moved worker for 150 s, while all others train."""
    late = [{**r, "seen": max(r["seen"], 7_181.0)} if r["rank"] == 1 and r["step"] > 31 else r for r in records(250)]
    result = judge(late, [move(30, 170)], max_gap_s=60)
    assert (result["verdict"], result["source"]) == ("continuous", "others")
    assert result["longest_gap_s"] < 15
    assert kinds(judge(late, [move(30, 40)], max_gap_s=60)) == {"gap", "resumed_late"}


def test_a_gap_just_after_a_rank_has_moved_is_measured_on_it_too() -> None:
    """Back-to-back moves: the stun of the second begins a moment before the first is reported as complete."""
    result = judge(records(ranks=2, stall=(40, 90.0)), [move(30, 39.5), move(39.5, 130, rank=0)], max_gap_s=60)
    assert [(b["kind"], b["rank"]) for b in result["breaches"]] == [("gap", 1)]
    assert [reported["gap_s"] > 60 for reported in result["moves"]] == [False, True]


@pytest.mark.parametrize("ranks", [[0], [0, 1]])
def test_the_gap_is_measured_on_moving_ranks_if_all_move(ranks: list[int]) -> None:
    result = judge(records(ranks=len(ranks), stall=(35, 60.0)), [move(30, 100, ranks=ranks)], max_gap_s=50)
    assert (result["source"], result["moves"][0]["source"]) == ("moved_only", "moved_only")
    assert kinds(result) == {"gap"}


def test_overlapping_moves_are_judged_as_one() -> None:
    moves = [move(30, 45), move(40, 60, rank=2), move(70, 75, rank=3)]
    result = judge(records(120, stall=(42, 3.0)), moves)
    assert [reported["judged_with"] for reported in result["moves"]] == [[0, 1], [0, 1], [2]]
    assert [reported["gap_s"] for reported in result["moves"]] == pytest.approx([4.0, 4.0, 1.0])
    assert result["moves"][0]["steps"] == {"before": 30, "during": 27, "after": 63}
    assert judge(records(120, ranks=2), [move(30, 45, rank=0), move(40, 60)])["source"] == "moved_only"


def test_names_an_unknown_limit() -> None:
    assert judge(records(), [], max_gap=3)["unproven"] == ["limits: max_gap is not a limit and was ignored"]
    with pytest.raises(ValueError, match="max_gap_s is 'long'"):
        judge(records(), [], max_gap_s="long")


def test_unreported_parts_of_the_identity_are_unproven() -> None:
    made = [{key: value for key, value in r.items() if key != "boot_id" or r["rank"] > 1} for r in records()]
    result = judge(made, [])
    assert result["verdict"] == "continuous"
    assert result["unproven"] == ["identity: boot_id is not in the records of ranks 0, 1"]
