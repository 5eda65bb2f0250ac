"""The verdicts on the training jobs besides that of a maintenance window, whose workers move too; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .facts import Facts, ranks_by_worker

Job = Mapping[str, Any]
FINISHED, STOPPED = "finished", "stopped"
# A job that its owner ends is not a broken one. One whose launcher does not answer is judged by its steps.
ENDINGS = {FINISHED: "finished", STOPPED: "finished", "absent": "finished", "died": "died"}


def verdict_options(facts: Facts, job: Job, state: Job, until: float) -> dict[str, object]:
    """Return the options of continuity_verdict for the records of another job: its ranks on the workers that moved."""
    ranks, ended = ranks_by_worker(job["hosts"], facts.at), state.get("ended")
    ending = ENDINGS.get(str(state.get("state")), "running")
    moves = [
        {**move, "ranks": ranks.get(move["worker"], [])}
        for move in facts.every_move
        # A move that the job did not live to see is not judged.
        if ending == "running" or ended is None or (move.get("completed") or ended) < ended
    ]
    why = {"died": str(state.get("why") or "")} if ending == "died" else {}
    return {
        "moves": moves,
        "limits": {"warmup_steps": facts.settings["warmup_steps"], **facts.settings["limits"]},
        "ended": ending,
        "facts": {"observed_until": until, "ranks": ranks, **why},
        "require": [],
    }


def in_words(job: Job) -> str:
    """Return the verdict on another job in words; empty before there is one."""
    if job.get("why"):
        return f"{job['title']}: not judged, because {job['why']}"
    if "verdict" not in job:
        return ""
    longest = job.get("longest_gap_s")
    reasons = job["breaches"] or job["unproven"] if job["verdict"] != "continuous" else []
    parts = [job["verdict"], f"longest gap {longest:.1f} s" if longest is not None else "", "; ".join(reasons[:1])]
    ended = f", until it was {job['state']}" if job["state"] in (FINISHED, STOPPED) else ""
    return f"{job['title']}: {', '.join(part for part in parts if part)}{ended}"


def lines(jobs: Sequence[Job]) -> list[str]:
    """Return a line for each other job that was judged, or that cannot be."""
    return [f"other job {text}" for text in map(in_words, jobs) if text]


def broken(jobs: Sequence[Job]) -> str:
    """Return which other jobs broke, and why; empty if none did."""
    return "; ".join(f"the other job {in_words(job)}" for job in jobs if job.get("verdict") == "broken")


def results(jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """Return the verdicts for the result of the task and for the evidence."""
    keys = ("title", "nodes", "moving", "verdict", "breaches", "unproven", "longest_gap_s", "state", "why")
    return [{key: job[key] for key in keys if key in job} for job in jobs]
