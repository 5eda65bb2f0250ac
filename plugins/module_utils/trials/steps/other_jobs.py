"""The training jobs besides that of a maintenance window, whose workers move too; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.names import short_name

Job = Mapping[str, Any]


def moving(window: Mapping[str, Any], planned: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the other jobs on workers that move, each with these workers as ``moving``.

    A node whose name matches no worker may be any of them, unless other nodes of the job match: then it belongs to
    another cluster.
    """
    jobs = window.get("other_jobs") or []
    movers, workers = ({short_name(name) for name in names} for names in (_movers(planned), planned["places"]))
    found = []
    for job in jobs:
        is_named_alike = any(short_name(node) in workers for node in job["nodes"])
        there = [node for node in job["nodes"] if short_name(node) in movers or (movers and not is_named_alike)]
        found += [{**job, "moving": there}] if there else []
    return found


def _movers(planned: Mapping[str, Any]) -> set[str]:
    return {str(move["worker"]) for stage in planned.get("stages", ()) for move in stage["moves"]}


def refusal(cluster: str, window: Mapping[str, object], found: Sequence[Job]) -> str:
    """Return why a window with these other jobs is refused; empty if the user accepts them."""
    if not found or window.get("accept_other_jobs"):
        return ""
    return (
        f"Cluster {cluster}: the window would move workers of other training jobs: {_listed(found)}. Wait until they "
        "end, or accept that with accept_other_jobs=true: then each of them is watched and judged too."
    )


def refusal_of_present(window: Mapping[str, object], found: Sequence[Job]) -> str:
    """Return why the jobs that run now end a window before its next host; empty if the user accepts them."""
    if not found or window.get("accept_other_jobs"):
        return ""
    return (
        f"the next host would move workers of other training jobs: {_listed(found)}; wait until they end, or accept "
        "that with accept_other_jobs=true"
    )


def line(found: Sequence[Job]) -> str:
    """Return the line about accepted other jobs; empty without them."""
    return f"moves workers of other training jobs, and judges each of them: {_listed(found)}" if found else ""


def _listed(found: Sequence[Job]) -> str:
    return "; ".join(f"{job['title']} on {', '.join(job['moving'])}" for job in found)
