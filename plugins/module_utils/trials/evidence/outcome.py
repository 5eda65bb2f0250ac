"""The result of a vMotion test in words; pure."""

from __future__ import annotations

from collections.abc import Mapping

from ...continuity.judged_facts import Verdict
from ...core.findings import listed
from . import move_lines, other_verdicts
from .facts import Facts


def outcome(facts: Facts, folder: str, left: Mapping[str, str]) -> str:
    """Return why the test failed, in one text; empty if it passed. ``left`` has the failed releases."""
    reasons = [*facts.failures, *left.values()]
    if facts.judged:
        reasons += [reason for reason in (_availability(facts), _failing(facts, folder)) if reason]
    reasons += [_lost(facts)] if facts.lost else []
    hurt = other_verdicts.broken(facts.other_jobs)
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
