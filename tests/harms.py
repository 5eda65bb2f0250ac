"""Harm to a job under vMotion, and the required verdict on each kind: the tables of docs/harms.md."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from plugins.module_utils.trials.evidence import move_lines


class Harm(NamedTuple):
    """The only correct verdict on a kind of harm; in the sentence, N stands for any number and W for any words."""

    name: str
    verdict: str
    moved: str
    breach: str  # empty if none exists
    sentence: str


STOOD_STILL = "W: W -> W: N s, the job stood still for N s"
SILENT = "rank N was silent for N s before step N, in phase train (limit N s)"
STOPPED = "rank N stopped at step N, N s ago; so did all others"
OTHER = "rank N: pid N became N, start N became N, job W became W"
FELL_BACK = "move N (W): the transport of W was rdma before and is tcp after"
EXTERNAL = "moved by others: W moved W from W to W; this test did not start that"
TABLE = (
    Harm("harmless_stun", "continuous", "all", "", STOOD_STILL),
    Harm("stun_too_long", "broken", "all", "gap", SILENT),
    Harm("worker_killed", "broken", "all", "rank_stopped", STOPPED),
    Harm("worker_power_cycled", "broken", "all", "power_cycle", "W was power-cycled by W (W)"),
    Harm("link_lost_for_good", "broken", "all", "rank_stopped", STOPPED),
    Harm("restarted_by_a_supervisor", "broken", "all", "step_repeated", "rank N made steps N to N again"),
    Harm("restarted_from_a_checkpoint", "broken", "all", "identity", OTHER),
    Harm("task_failed", "continuous", "none", "", "W: W -> W: NOT MOVED: W"),
    Harm("task_failed_after_a_long_stun", "broken", "none", "gap", SILENT),
    Harm("two_workers_at_once", "continuous", "all", "", "move N (W) and move N (W) overlap: judged as one"),
    Harm("stun_during_a_checkpoint", "continuous", "all", "", STOOD_STILL),
    Harm("clock_set_by_a_minute", "continuous", "all", "", "the clock of rank N was set by 60.0 s before step N"),
    Harm("launchers_own_worker_moved", "continuous", "all", "", STOOD_STILL),
    Harm("pvrdma_fell_back_to_tcp", "broken", "all", "transport", FELL_BACK),
    Harm("moved_by_another_user", "continuous", "all", "", EXTERNAL),
)
JOINED = "ranks that did not move at the time were silent for N s, one after another, until step N of rank N, in phase "
LEFT_OUT = "records: N were omitted, because no job has that number of ranks, phases or processes"
# Events that the lab cannot cause in a real job, and false records.
RECORDS_ONLY = (
    Harm("silent_over_two_moves", "broken", "all", "gap", JOINED + "train (limit N s)"),
    Harm("rank_beyond_the_size", "broken", "all", "identity", "rank N does not belong to a job of N ranks"),
    Harm("each_record_has_another_phase", "inconclusive", "all", "", LEFT_OUT),
)
HARMS = {harm.name: harm for harm in (*TABLE, *RECORDS_ONLY)}


def check(name: str, reported: Mapping[str, Any], moves: Sequence[Mapping[str, Any]]) -> None:
    """Check the verdict, whether all workers moved, the breach, and the sentence that the playbook shows."""
    harm = HARMS[name]
    lines = move_lines.verdict(reported, moves)
    assert (reported["verdict"], reported["moved"]) == (harm.verdict, harm.moved), lines
    kinds = {one["kind"] for one in reported["breaches"]}
    assert harm.breach in kinds if harm.breach else not kinds, lines
    pattern = re.compile(pattern_of(harm.sentence))
    assert any(pattern.search(line) for line in lines), (harm.sentence, lines)


def pattern_of(sentence: str) -> str:
    """Return the sentence as a regular expression."""
    parts = (re.escape(part) for part in re.split(r"\b([NW])\b", sentence))
    return "".join({"N": r"-?\d+(?:\.\d+)?", "W": ".*?"}.get(part, part) for part in parts) + "$"
