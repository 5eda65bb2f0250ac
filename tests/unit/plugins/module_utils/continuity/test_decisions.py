"""The continuity verdict on runs for which it was once too good, too bad or too slow."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.continuity.verdict import verdict

from .runs import LAUNCHER, SEEN, START, Record, changed, facts, kinds, move, records

LIMITS = {"resume_deadline_s": 20, "max_gap_s": 15}
AMID = SEEN + 50


def judge(made: list[Record], moves: list[Record], more: dict[str, Any] | None = None, **limits: Any) -> dict[str, Any]:
    """Return the verdict on a running job with all facts of its moves observed."""
    seen = {**facts(moves), **(more or {})}
    return verdict(made, moves, {**LIMITS, **limits}, ended="running", facts=seen)


def without_seen(made: list[Record], *ranks: int) -> list[Record]:
    """Return the records; those of some ranks lack the time of arrival, as on their node."""
    return [{key: value for key, value in one.items() if key != "seen" or one["rank"] not in ranks} for one in made]


def test_peers_without_stamps_do_not_take_the_stall_of_a_moved_rank_for_a_clock_that_was_set() -> None:
    moves = [move(38, 60, rank=1)]
    # The guest of rank 1 slept through its stun: its clock does not show the stun.
    asleep = [
        {**one, "t": one["t"] - 20} if one["rank"] == 1 and one["step"] >= 40 else one
        for one in records(150, stall=(40, 20.0))
    ]
    assert kinds(judge(asleep, moves)) == {"gap"}
    assert kinds(judge(without_seen(asleep, 0, 2, 3), moves)) == {"gap"}


@pytest.mark.parametrize(
    "values",
    [{"started": None}, {"started": "soon"}, {"completed": float("nan")}, {"ok": "false"}, {"ok": "true"}, {"ok": 1}],
)
def test_a_move_counts_only_if_it_ended_well_at_known_times(values: Record) -> None:
    result = judge(records(200), [move(50, 60), {**move(100, 110, rank=2), **values}])
    assert (result["verdict"], result["moved"]) == ("inconclusive", "some")
    assert any(one.startswith("moves: move 2 (w2)") for one in result["unproven"])


def test_a_moved_rank_without_records_is_missing_if_the_size_is_unknown() -> None:
    made = changed(records(ranks=3), lambda one: True, size=None)
    result = judge(made, [move(40, 50, rank=3)])
    assert (result["verdict"], result["unproven"][0]) == ("inconclusive", "records: none of rank 3")


@pytest.mark.parametrize("keys", [("pid",), ("pid", "start", "boot_id")])
@pytest.mark.parametrize("side", ["before", "after"])
def test_an_identity_reported_on_one_side_of_a_move_is_unknown(side: str, keys: tuple[str, ...]) -> None:
    made = changed(
        records(), lambda one: one["rank"] == 1 and (one["seen"] > AMID) == (side == "before"), **dict.fromkeys(keys)
    )
    result = judge(made, [move(49, 50)])
    assert result["verdict"] == "inconclusive"
    assert result["unproven"] == [f"identity: rank 1 reported {', '.join(keys)} only {side} move 1 (w1)"]


@pytest.mark.parametrize("key", LAUNCHER)
def test_a_launcher_that_was_seen_in_part_is_not_known(key: str) -> None:
    after = {name: value for name, value in LAUNCHER.items() if name != key}
    result = judge(records(), [move(49, 50)], {"launcher": {"before": LAUNCHER, "after": after}})
    assert (result["verdict"], result["unproven"]) == (
        "inconclusive",
        [f"launcher: not observed both before and after: {key}"],
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("rdma", "rdma"), ("tcp", "tcp")),
        (({"w1": "rdma"}, {"w1": "rdma"}), ({"w1": "tcp"}, {"w1": "tcp"})),
        (("rdma", "rdma"), ({"w1": "tcp"}, {"w1": "tcp"})),
        (("rdma", None), (None, "tcp")),
    ],
)
def test_a_transport_that_changed_between_two_moves_is_a_breach(first: Any, second: Any) -> None:
    moves = [move(40, 50), move(100, 110, rank=2)]
    seen = [{"before": before, "after": after} for before, after in (first, second)]
    result = judge(records(200), moves, {"transport": seen})
    assert kinds(result) == {"transport"}
    (breach,) = result["breaches"]
    assert "was rdma after move 1 (w1) and is tcp now" in breach["detail"]


def test_one_unstamped_line_does_not_show_that_its_rank_resumed_in_time() -> None:
    made = records(200, stall=(45, 40.0))
    asleep = [{**one, "t": one["t"] - 40} if one["rank"] == 1 and one["step"] >= 45 else one for one in made]
    moves = [move(42, 46)]
    assert "resumed_late" in kinds(judge(asleep, moves, max_gap_s=100))
    blind = [
        {key: value for key, value in one.items() if key != "seen" or (one["rank"], one["step"]) != (1, 45)}
        for one in asleep
    ]
    late = [one for one in judge(blind, moves, max_gap_s=100)["breaches"] if one["kind"] == "resumed_late"]
    assert 1 in {one["rank"] for one in late}


@pytest.mark.parametrize("worker", ["db7", "w9.example.com"])
def test_the_power_of_a_machine_on_which_no_rank_runs_is_a_note(worker: str) -> None:
    event = {"worker": worker, "at": AMID, "by": "eve", "what": "VmPoweredOffEvent"}
    elsewhere = {f"w{rank}": [rank] for rank in range(4)}
    result = judge(records(), [move(49, 50)], {"power": [event], "ranks": elsewhere})
    assert result["verdict"] == "continuous"
    unknown = judge(records(), [move(49, 50)], {"power": [event]})
    assert unknown["verdict"] == "inconclusive" and worker in unknown["unproven"][0]
    assert any(worker in one and "no rank of the job runs on it" in one for one in result["notes"])
    moved = judge(records(), [move(49, 50), {**move(70, 75), "worker": worker, "ranks": []}], {"power": [event]})
    assert "power_cycle" not in kinds(moved)


def test_a_rank_that_does_not_name_its_host_may_run_on_any_machine() -> None:
    event = {"worker": "db7", "at": AMID, "by": "eve", "what": "VmPoweredOffEvent"}
    silent = changed(records(), lambda one: one["rank"] == 3, host=None)
    assert judge(silent, [move(49, 50)], {"power": [event]})["verdict"] == "inconclusive"


def test_a_power_cycle_of_a_worker_with_unknown_ranks_decides_nothing() -> None:
    event = {"worker": "vm-gpu-01", "at": AMID, "by": "eve", "what": "VmPoweredOffEvent"}
    result = judge(records(), [], {"power": [event]})
    assert result["verdict"] == "inconclusive" and "vm-gpu-01" in result["unproven"][0]
    elsewhere = {f"vm-gpu-0{rank + 2}": [rank] for rank in range(4)}
    assert judge(records(), [], {"power": [event], "ranks": elsewhere})["verdict"] == "continuous"
    for ranks, expected in (([2], "broken"), ([], "continuous")):
        report = judge(records(), [], {"power": [event], "ranks": {"vm-gpu-01": ranks}})
        assert report["verdict"] == expected
    assert kinds(judge(records(), [], {"power": [{**event, "worker": "W2.lab"}]})) == {"power_cycle"}


@pytest.mark.parametrize(
    ("at", "ended", "expected"),
    [
        (SEEN - 5, "running", "continuous"),
        (SEEN + 150, "finished", "continuous"),
        (SEEN + 101, "running", "broken"),
        (AMID, "finished", "broken"),
    ],
)
def test_power_counts_while_the_job_trained(at: float, ended: str, expected: str) -> None:
    moves = [move(49, 50)]
    power = [{"worker": "w2", "at": at, "by": "eve", "what": "VmPoweredOffEvent"}]
    result = verdict(records(), moves, LIMITS, ended=ended, facts={**facts(moves), "power": power})
    assert result["verdict"] == expected


def marked(begin: float, end: float | None, step: int, phase: str = "checkpoint") -> list[Record]:
    """Return marks of only rank 0 around a phase, in seconds since the first record."""
    when = [("begin", begin), *([("end", end)] if end is not None else [])]
    mark = {"rank": 0, "step": step, "phase": phase}
    return [{**mark, "mark": word, "t": START + at, "seen": SEEN + at} for word, at in when]


@pytest.mark.parametrize("moves", [[], [move(35, 55)], [move(35, 41)]])
def test_the_others_may_wait_for_the_phase_that_one_rank_marks(moves: list[Record]) -> None:
    made = records(200, stall=(40, 60.0)) + marked(39.5, 99, 39)
    assert kinds(judge(made, moves)) == {"gap", "resumed_late"} - (set() if moves else {"resumed_late"})
    assert kinds(judge(made, moves, phases={"checkpoint": 70})) == set()


def test_a_phase_of_one_rank_excuses_no_more_than_its_own_time() -> None:
    made = records(200, stall=(40, 60.0)) + marked(39.5, 60, 39)
    result = judge(made, [], phases={"checkpoint": 70})
    assert kinds(result) == {"gap"}


def test_the_others_may_wait_for_a_phase_that_has_not_ended() -> None:
    made = records(41) + marked(40.5, None, 40)
    for until, expected in ((100, set()), (160, {"gap", "rank_stopped"})):
        result = judge(made, [], {"observed_until": SEEN + until}, phases={"checkpoint": 80})
        assert kinds(result) == expected, until


def test_clock_skew_is_not_a_silence_at_the_end_of_a_running_job() -> None:
    moves = [move(START - SEEN + 49, START - SEEN + 50)]
    unstamped = [{key: value for key, value in one.items() if key != "seen"} for one in records()]
    result = judge(unstamped, moves, {"observed_until": START + 100 + 3600})
    assert kinds(result) == set()


@pytest.mark.parametrize(("bad", "expected"), [(1, "inconclusive"), (19, "inconclusive"), (20, "broken")])
def test_a_loss_that_is_not_finite_must_stay_so_to_be_lost(bad: int, expected: str) -> None:
    made = changed(records(), lambda one: one["step"] >= 100 - bad, loss="inf")
    result = judge(made, [move(30, 40)])
    assert result["verdict"] == expected
    recovered = changed(records(), lambda one: one["step"] in (60, 99 - bad), loss="nan")
    assert judge(recovered, [move(30, 40)])["verdict"] == "continuous"


def test_a_warm_up_that_covers_all_steps_leaves_nothing_to_judge() -> None:
    result = judge(records(), [], warmup_steps=100)
    assert result["verdict"] == "inconclusive"
    assert result["unproven"][0] == "steps: rank 0 made none after the warm-up of 100"


@pytest.mark.parametrize("size", [10**8, 10**15, "1e300"])
def test_a_size_that_cannot_be_costs_no_memory(size: Any) -> None:
    result = judge(changed(records(), lambda one: True, size=size), [])
    assert result["verdict"] == "inconclusive"
    assert result["unproven"][0].startswith("records: none of ranks 4, 5, 6") and " more" in result["unproven"][0]


def test_the_observer_finds_a_slow_job_that_claims_to_be_fast() -> None:
    made = [
        {**one, **{key: one[key] + max(0.0, (one["step"] - 200) * 2.0) for key in ("t", "seen")}}
        for one in records(400)
    ]
    result = judge(made, [move(195, 200)], min_throughput_ratio=0.5)
    assert kinds(result) == {"throughput"}
    assert "steps/s" in result["breaches"][0]["detail"]
    assert kinds(judge(records(400), [move(195, 200)], min_throughput_ratio=0.5)) == set()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from([*records(1, 1)[0], "stride", "mark"])
MOVE_KEYS = st.sampled_from([*move(1, 2), "external", "by"])
FACT_KEYS = st.sampled_from(["launcher", "transport", "vsphere", "power", "ranks", "checksums", "observed_until"])


@settings(max_examples=200)
@given(
    harm=st.lists(st.tuples(st.integers(0, 119), KEYS, JSON), max_size=6),
    moved=st.lists(st.tuples(st.integers(0, 1), MOVE_KEYS, JSON), max_size=3),
    reported=st.dictionaries(FACT_KEYS, JSON, max_size=3),
)
def test_no_record_move_or_fact_makes_it_raise(
    harm: list[tuple[int, str, Any]], moved: list[tuple[int, str, Any]], reported: dict[str, Any]
) -> None:
    made, moves = records(60, 2), [move(25, 27), move(35, 37, rank=0)]
    for index, key, value in harm:
        made[index] = {**made[index], key: value}
    for index, key, value in moved:
        moves[index] = {**moves[index], key: value}
    result = judge(made, moves, reported)
    assert result["verdict"] in {"continuous", "broken", "inconclusive"}


def bursts(many: int) -> list[Record]:
    """Return records that the observer read every three seconds."""
    return [{**one, "seen": SEEN + 3 * ((one["seen"] - SEEN) // 3 + 1)} for one in records(many)]


def in_random_order(many: int) -> list[Record]:
    made = records(many)
    steps = [one["step"] for one in made]
    random.Random(1).shuffle(steps)
    return [{**one, "step": step} for one, step in zip(made, steps)]


def brackets(many: int) -> list[Record]:
    """Return a phase that is marked repeatedly at one step and one moment."""
    return [
        {"rank": 0, "step": 5, "t": START + 5, "seen": SEEN + 5 + index / 1000, "phase": "checkpoint", "mark": mark}
        for index in range(2 * many)
        for mark in ("begin", "end")
    ] + records(20)


def at_one_moment(many: int) -> list[Record]:
    """Return a rank that writes one step repeatedly with another loss each time."""
    return [{**one, "step": 1, "t": START, "seen": SEEN, "loss": index} for index, one in enumerate(records(many))]


@pytest.mark.parametrize("make", [records, bursts, at_one_moment, in_random_order, brackets])
def test_the_time_grows_with_the_number_of_records(make: Any) -> None:
    def seconds(many: int) -> float:
        made = make(many)
        begin = time.process_time()
        judge(made, [move(40, 50)])
        return time.process_time() - begin

    # Eight times the records take linear time, plus the time for sorting and the noise of the machine.
    assert seconds(2000) < 20 * max(seconds(250), 0.02)
