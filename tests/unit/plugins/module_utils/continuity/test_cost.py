"""The cost of moves: goodput, stalls, slow time, lost images, and the work that a restart would have repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from plugins.module_utils.continuity.cost_lines import host_sentence, sentences
from plugins.module_utils.continuity.verdict import verdict

RANKS, IMAGES = 4, 32


def times(*spans: tuple[float, float, float]) -> list[float]:
    """Return the times of the steps in spans of (begin, end, seconds of a step)."""
    found: list[float] = []
    for begin, end, step_s in spans:
        count = round((end - begin) / step_s)
        found += [begin + index * step_s for index in range(count)]
    return found


def records(at: Iterable[float], ranks: int = RANKS, rate: bool = True) -> list[dict[str, Any]]:
    """Return a record of each rank at each time, with 32 images a step of one second."""
    given = {"images_per_sec": float(IMAGES)} if rate else {}
    return [
        {"rank": rank, "size": ranks, "step": step, "t": time, "seen": time, **given}
        for step, time in enumerate(at)
        for rank in range(ranks)
    ]


def move(worker: str, began: float, ended: float, source: str = "esx1", **others: Any) -> dict[str, Any]:
    where = {"worker": worker, "ranks": [0], "source": source, "target": "esx9"}
    return {**where, "started": began, "completed": ended, "ok": True, **others}


def cost(written: list[dict[str, Any]], moves: list[dict[str, Any]], **facts: Any) -> dict[str, Any] | None:
    limits = {"max_gap_s": 60, "resume_deadline_s": 30}
    judged = verdict(written, moves, limits, ended="finished", facts=facts, require=())
    found: dict[str, Any] | None = judged["cost"]
    return found


def known(written: list[dict[str, Any]], moves: list[dict[str, Any]], **facts: Any) -> dict[str, Any]:
    found = cost(written, moves, **facts)
    assert found is not None
    return found


STEADY = times((0, 400, 1))
# Twenty seconds without a step while the worker moves.
STALLED = times((0, 110, 1), (129, 400, 1))
# Half the rate for a minute after the move.
SLOWED = times((0, 110, 1), (110, 170, 2), (170, 400, 1))


def test_a_move_without_effect_costs_nothing() -> None:
    found = known(records(STEADY), [move("w1", 100, 120)])
    assert found["goodput"] == pytest.approx(1.0, abs=0.005)
    assert (found["stalled_s"], found["wasted_s"], found["slow_s"]) == (0, 0, 0)
    assert found["since"] == 100 and found["ranks"] == RANKS


def test_a_stall_wastes_the_time_of_every_rank() -> None:
    found = known(records(STALLED), [move("w1", 100, 120)])
    assert found["stalled_s"] == pytest.approx(19, abs=0.1)
    assert found["wasted_s"] == pytest.approx(RANKS * 19, abs=0.4)
    assert found["goodput"] == pytest.approx(1 - 19 / 299, abs=0.005)
    assert found["slow_s"] == 0, "a stall is not slow time too"


def test_moves_are_not_charged_for_silences_outside_windows() -> None:
    found = known(records(times((0, 300, 1), (340, 400, 1))), [move("w1", 100, 120)])
    assert found["stalled_s"] == 0 and found["goodput"] < 0.9


def test_a_slower_pace_is_counted_without_the_stalls() -> None:
    found = known(records(SLOWED), [move("w1", 100, 120)])
    assert found["slow_s"] == pytest.approx(60, abs=11)
    assert found["stalled_s"] == 0
    assert found["goodput"] == pytest.approx(1 - 30 / 300, abs=0.01)


def test_an_earlier_rate_is_not_slow() -> None:
    uneven = times(*((20 * n, 20 * n + 20, 1 if n % 2 else 2) for n in range(20)))
    assert known(records(uneven), [move("w1", 200, 210)])["slow_s"] == 0


@pytest.mark.parametrize(
    ("gpus", "unit"),
    [({"before": ["0000:3b:00.0"]}, "GPU-seconds"), ({"before": []}, "rank-seconds"), (None, "rank-seconds")],
)
def test_reports_gpu_seconds_only_if_gpus_were_observed(gpus: Any, unit: str) -> None:
    found = known(records(STALLED), [move("w1", 100, 120)], vsphere=[{"gpus": gpus}])
    assert found["wasted_unit"] == unit


def test_gpus_of_a_simulated_site_do_not_count() -> None:
    evidence = [{"gpus": {"before": ["0000:3b:00.0"]}}]
    found = known(records(STALLED), [move("w1", 100, 120)], vsphere=evidence, site="SIMULATED: without GPUs.")
    assert found["wasted_unit"] == "rank-seconds"


HOST = {"host": "esx1", "out_at": 120.0, "back_at": 160.0, "reboots": 1}


def test_reports_moves_longest_stall_and_losses_per_host() -> None:
    moves = [move("w1", 100, 118), move("w2", 300, 310, "esx2")]
    found = known(records(STALLED), moves, hosts=[HOST, {**HOST, "host": "esx3", "out_at": 200.0, "back_at": 240.0}])
    first, other = found["hosts"]
    assert (first["moves"], first["reboots"], first["out_at"], first["back_at"]) == ([1], 1, 120.0, 160.0)
    assert first["longest_stall_s"] == pytest.approx(20, abs=0.1)
    assert first["lost"] == pytest.approx(19 * IMAGES * RANKS, rel=0.05) and first["lost_unit"] == "images"
    assert (other["moves"], other["longest_stall_s"]) == ([], None) and other["lost"] < 2 * IMAGES * RANKS


def test_counts_lost_steps_if_images_are_unknown() -> None:
    (host,) = known(records(STALLED, rate=False), [move("w1", 100, 118)], hosts=[HOST])["hosts"]
    assert host["lost_unit"] == "steps" and host["lost"] == pytest.approx(19, abs=1)


def test_steps_lost_to_a_slower_pace_count_separately() -> None:
    # Two other runs used the nodes: the host was out for 6 s at 2.36 steps/s, and the job was slower for a minute.
    paced = times((0, 100, 1 / 2.36), (106, 166, 2 / 2.36), (166, 300, 1 / 2.36))
    host = {**HOST, "out_at": 104.0, "back_at": 166.0}
    judged = known(records(paced, rate=False), [move("w1", 99, 106)], hosts=[host])
    (found,) = judged["hosts"]

    assert found["lost"] == pytest.approx(14, abs=1.5)
    assert found["slower"] == pytest.approx(60 * 2.36 / 2, abs=3)
    assert "steps lost in silences; 7" in host_sentence(found)
    assert host_sentence(found).endswith(" fewer because it was slower, cause unknown")
    assert sentences(judged)[1].endswith("; silences of more than 1.3 s count")


def test_a_window_without_moves_has_a_cost_too() -> None:
    found = known(records(STEADY), [], hosts=[HOST])
    assert found["since"] == 120 and found["goodput"] == pytest.approx(1, abs=0.005)


def checkpoints(*begins: float) -> list[dict[str, Any]]:
    return [
        {"rank": 0, "size": RANKS, "step": int(begin), "t": at, "seen": at, "phase": "checkpoint", "mark": mark}
        for begin in begins
        for at, mark in ((begin + 0.2, "begin"), (begin + 0.7, "end"))
    ]


def test_a_restart_repeats_work_since_the_recorded_checkpoint() -> None:
    written = records(STEADY) + checkpoints(50, 150, 250, 350)
    found = known(written, [move("w1", 100, 120), move("w2", 300, 310)])["restart"]
    assert (found["source"], found["restarts"]) == ("records", 2)
    assert found["interval_s"] == pytest.approx(100)
    assert found["repeated_s"] == pytest.approx(49.3 + 49.3, abs=0.1)
    assert found["wasted_s"] == pytest.approx(RANKS * found["repeated_s"])


@pytest.mark.parametrize(
    ("saved", "interval_s", "repeated_s", "sentence"),
    [
        ([50.0, 90.0, 130.0], 40, 10, "(every 40 s, by the outputs of the run)"),
        ([90.0], None, 10, "(one is in the outputs of the run)"),
        ([130.0], None, 100, "(one is in the outputs of the run)"),
    ],
)
def test_a_restart_repeats_work_since_the_saved_checkpoint(
    saved: list[float], interval_s: float | None, repeated_s: float, sentence: str
) -> None:
    judged = known(records(STEADY), [move("w1", 100, 120)], saved=saved, checkpoint_s=1800)
    found = judged["restart"]

    assert (found["source"], found["interval_s"]) == ("outputs", interval_s)
    assert found["repeated_s"] == pytest.approx(repeated_s)
    assert sentence in sentences(judged)[2]


def test_a_restart_before_any_checkpoint_repeats_everything() -> None:
    written = records(STEADY) + checkpoints(150, 250)
    assert known(written, [move("w1", 100, 120)])["restart"]["repeated_s"] == pytest.approx(100)


def test_a_restart_repeats_half_a_given_interval() -> None:
    found = known(records(STEADY), [move("w1", 100, 120), move("w2", 200, 220)], checkpoint_s=600)["restart"]
    assert (found["source"], found["interval_s"], found["repeated_s"]) == ("given", 600, 600)


def test_a_window_restarts_the_job_once_per_host() -> None:
    moves = [move("w1", 80, 90), move("w2", 100, 118)]
    hosts = [HOST, {**HOST, "host": "esx7"}]
    assert known(records(STEADY), moves, hosts=hosts, checkpoint_s=600)["restart"]["restarts"] == 1


@pytest.mark.parametrize("interval", [None, 0, -5, "soon", float("nan"), float("inf")])
def test_the_restart_cost_is_unknown_without_an_interval(interval: Any) -> None:
    assert known(records(STEADY), [move("w1", 100, 120)], checkpoint_s=interval)["restart"] is None


@pytest.mark.parametrize(
    "change",
    [
        lambda: cost(records(STEADY), []),
        lambda: cost([], [move("w1", 100, 120)]),
        lambda: cost(records(STEADY), [move("w1", -5, 3)]),
        lambda: cost(records(STEADY), [move("w1", 500, 510)]),
    ],
)
def test_has_no_cost_without_moves_or_earlier_rate(change: Callable[[], Any]) -> None:
    assert change() is None


@pytest.mark.parametrize("hosts", [None, "esx1", [7], [{}], [{"host": "esx1", "out_at": "soon"}], [{"out_at": 120.0}]])
def test_malformed_hosts_are_left_out(hosts: Any) -> None:
    assert known(records(STEADY), [move("w1", 100, 120)], hosts=hosts)["hosts"] == []
