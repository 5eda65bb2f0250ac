"""The records of every harm in docs/harms.md: the verdict, the breach and the sentence of each."""

from __future__ import annotations

from typing import Any

from plugins.module_utils.continuity import verdict
from tests.harms import check

from .runs import START, changed, facts, move, records

Record = dict[str, Any]
SHORT = {"max_gap_s": 4, "resume_deadline_s": 6}
STUNNED = (45, 6.0)


def judge(name: str, made: list[Record], moves: list[Record], limits: Any = None, **seen: Any) -> Record:
    """Check that the verdict is that of the table."""
    result = verdict.verdict(made, moves, limits or {}, ended="running", facts={**facts(moves), **seen})
    check(name, result, moves)
    return result


def gone(made: list[Record], rank: int = 2) -> tuple[list[Record], float]:
    """Return records in which a worker and all that wait for it become silent, and the end of the observation."""
    until = max(one["seen"] for one in made if one["step"] == 120)
    return [one for one in made if one["step"] < 120 or (one["step"] == 120 and one["rank"] != rank)], until + 8


def test_harmless_stun() -> None:
    judge("harmless_stun", records(200, stall=STUNNED), [move(40, 60)])


def test_stun_too_long() -> None:
    judge("stun_too_long", records(200, stall=STUNNED), [move(40, 60)], SHORT)


def test_worker_killed() -> None:
    made, until = gone(records(200))
    judge("worker_killed", made, [move(40, 60)], SHORT, observed_until=until)


def test_worker_power_cycled() -> None:
    made, until = gone(records(200))
    power = [{"worker": "w2", "at": until - 8, "by": "eve", "what": "VmResettingEvent"}]
    judge("worker_power_cycled", made, [move(40, 60)], SHORT, observed_until=until, power=power)


def test_link_lost_for_good() -> None:
    made, until = gone(records(200))
    judge("link_lost_for_good", made, [move(40, 60)], SHORT, observed_until=until)


def test_restarted_by_a_supervisor() -> None:
    made = records(200)
    for one in made:
        if one["step"] >= 120:
            one.update(step=one["step"] - 100, pid=one["pid"] + 1000, start=one["start"] + 99, job="425263105")
    result = judge("restarted_by_a_supervisor", made, [move(40, 60)])
    assert {one["kind"] for one in result["breaches"]} == {"identity", "step_repeated"}


def test_restarted_from_a_checkpoint() -> None:
    made = records(200)
    for one in made:
        if one["step"] >= 120:
            one.update(pid=one["pid"] + 1000, start=one["start"] + 99, job="425263105")
    result = judge("restarted_from_a_checkpoint", made, [move(40, 60)])
    assert {one["kind"] for one in result["breaches"]} == {"identity"}


def test_task_failed() -> None:
    judge("task_failed", records(200), [move(40, 60, ok=False, said="HostConnectFault: No route.")])


def test_task_failed_after_a_long_stun() -> None:
    failed = move(40, 60, ok=False, said="The switchover took longer than it may.")
    judge("task_failed_after_a_long_stun", records(200, stall=STUNNED), [failed], SHORT)


def test_two_workers_at_once() -> None:
    judge("two_workers_at_once", records(200, stall=STUNNED), [move(40, 60), move(50, 70, rank=2)])


def test_stun_during_a_checkpoint() -> None:
    made = records(200, stall=STUNNED)
    for rank in range(4):
        last = next(one for one in made if one["rank"] == rank and one["step"] == 44)
        for mark, after in (("begin", 0.2), ("end", 6.5)):
            made.append(
                {**last, "mark": mark, "phase": "checkpoint", "seen": last["seen"] + after, "t": START + 44 + after}
            )
    limits = {"max_gap_s": 5, "resume_deadline_s": 20}
    judge("stun_during_a_checkpoint", made, [move(40, 60)], {**limits, "phases": {"checkpoint": 30}})
    judge("task_failed_after_a_long_stun", records(200, stall=STUNNED), [move(40, 60, ok=False)], limits)


def test_clock_set_by_a_minute() -> None:
    made = records(200, stall=STUNNED)
    for one in made:
        one["t"] += 60.0 if one["rank"] == 2 and one["step"] >= 120 else 0.0
    judge("clock_set_by_a_minute", made, [move(40, 60, rank=2)])


def test_launchers_own_worker_moved() -> None:
    judge("launchers_own_worker_moved", records(200, stall=STUNNED), [move(40, 60, rank=0)])


def test_pvrdma_fell_back_to_tcp() -> None:
    before = dict.fromkeys(("w0", "w1", "w2", "w3"), "rdma")
    reported = [{"before": before, "after": {**before, "w1": "tcp"}}]
    slow = changed(records(200), lambda one: one["step"] > 60, images_per_sec=180.0)
    judge("pvrdma_fell_back_to_tcp", slow, [move(40, 60)], transport=reported)


def test_moved_by_another_user() -> None:
    external = move(40, 60, rank=2, external=True, by="eve")
    judge("moved_by_another_user", records(300, stall=STUNNED), [move(150, 160), external])


def test_silent_over_two_moves() -> None:
    made = records(100, ranks=2, stall=(50, 231.0))
    judge("silent_over_two_moves", made, [move(57, 165, rank=1), move(166, 280, rank=0)])


def test_rank_beyond_the_size() -> None:
    made = records(200)
    claimed = {key: value for key, value in made[400].items() if key != "size"}
    judge("rank_beyond_the_size", [*made, {**claimed, "rank": 4, "pid": 900}], [move(40, 60)])


def test_each_record_has_another_phase() -> None:
    made = [{**one, "phase": f"phase{number}"} for number, one in enumerate(records(200))]
    judge("each_record_has_another_phase", made, [move(40, 60)])
