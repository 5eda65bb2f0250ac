"""The result of a vMotion test in words, with the verdicts on other jobs; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...continuity.judged_facts import Verdict
from ...core.findings import listed
from . import move_lines
from .facts import Facts, ranks_by_worker

Job = Mapping[str, Any]
FINISHED, STOPPED = "finished", "stopped"
# A job that its owner ends is not a broken one. One whose launcher does not answer is judged by its steps.
ENDINGS = {FINISHED: "finished", STOPPED: "finished", "absent": "finished", "died": "died"}


def outcome(facts: Facts, folder: str, left: Mapping[str, str]) -> str:
    """Return why the test failed, in one text; empty if it passed. ``left`` has the failed releases."""
    reasons = [*facts.failures, *left.values()]
    if facts.judged:
        reasons += [reason for reason in (_availability(facts), _failing(facts, folder)) if reason]
    reasons += [_lost(facts)] if facts.lost else []
    hurt = broken(facts.other_jobs)
    reasons += [f"Cluster {facts.cluster}: {hurt}."] if hurt and hurt not in facts.stopped else []
    if left:
        reasons.append(
            f"Run the playbook again with vmotion_test_folder={folder}: the test continues where it stopped."
        )
    return " ".join(reasons)


def last_verdict(facts: Facts) -> Verdict:
    """Return the verdict on the job: that on its restart, for which it was not stopped unless it was continuous."""
    return {**(facts.judged or {}), **(facts.restart.get("verdict") or {})}


def passed(facts: Facts, folder: str) -> str:
    how = f"Continuous{', and all moved' if facts.moves else ''}"
    if facts.restart:
        verdict = last_verdict(facts).get("verdict")
        how = f"Every host is changed; the job is {verdict}" if verdict else "Every host is changed"
    return f"{how}; the evidence is in {folder}."


def _availability(facts: Facts) -> str:
    before, after = (
        ((read or {}).get("ha") or {}).get("enabled") for read in (facts.cluster_before, facts.cluster_after)
    )
    return (
        ""
        if before == after
        else f"Cluster {facts.cluster}: HA was switched on or off during the test: restore the setting."
    )


def _lost(facts: Facts) -> str:
    workers = listed(facts.lost)
    return f"Cluster {facts.cluster}: {workers}: removed or built again by others during the test."


def _failing(facts: Facts, folder: str) -> str:
    judged = facts.judged or {}
    # An observation has only moves of others, and a window of empty hosts may have none.
    has_moved = judged["moved"] == "all" or not facts.judged_moves
    if judged["verdict"] == "continuous" and has_moved and not facts.stopped:
        return ""
    places = move_lines.hosts_after(facts.at, facts.every_move)
    waits = "".join(f"; {sentence.rstrip('.')}" for sentence in facts.hangs)
    stays = ", ".join(f"{worker} on {host}" for worker, host in places.items())
    return (
        f"Cluster {facts.cluster}: the job is {judged['verdict']} and {judged['moved']} of the moves took place"
        f"{': ' + facts.stopped if facts.stopped else ''}{waits}; the workers stay where they are: {stays}; the "
        f"evidence is in {folder}."
    )


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
