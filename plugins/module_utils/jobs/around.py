"""The training job around which a program works: the one that the user names, or the one that was found; pure."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import WholeError
from ..kubernetes import suspension
from ..training.programs.restart_commands import lacking

Job = Mapping[str, Any]
WITHOUT = "leave out under_training to change the hosts without a job"


def first_found(found: Sequence[Job]) -> Job:
    """Return the job that was found or started; empty without one."""
    return next((each for each in found if each.get("run_dir")), {})


def require_complete(job: Job, *, under_training: bool) -> None:
    """Refuse a named job without the keys that a maintenance window needs."""
    needed = ["run_dir", *([] if "kubernetes" in job else ["nodes", "launcher"])] if "slurm" not in job else []
    missing = [key for key in needed if key not in job]
    if under_training and not missing:
        return
    lacks = f": it lacks {' and '.join(missing)}" if missing else ""
    raise WholeError(
        "maintenance_job names the job around which the hosts are changed: it needs under_training=true, and its keys "
        f"slurm, or run_dir and kubernetes, or run_dir, nodes and launcher{lacks}."
    )


def restart_of(job: Job, results: str) -> dict[str, object]:
    """Return how a named job is restarted, as the site of a window reads it, or ``why`` that is impossible."""
    in_pods = job.get("kubernetes") or {}
    name = str(in_pods.get("name") or posixpath.basename(str(job.get("run_dir") or "")))
    why = suspension.lacking(job) if in_pods else lacking(job)
    return {"run": name, "why": why} if why else {"run": name, "job": {**job, "results": results}}


def require_found(cluster: str, found: Sequence[Job], *, limit: str, has_workers: bool) -> Job:
    """Return the found job; without it, the hosts would be changed as if no job ran."""
    tried = f"{cluster}: could not change its hosts around a training job: no job was found, because"
    if not found and limit and has_workers:
        raise WholeError(f"{tried} --limit {limit} excludes the workers. Add them to the limit, or {WITHOUT}.")
    if not found:
        raise WholeError(f"{tried} this run has no workers in the inventory. Add the group workers, or {WITHOUT}.")
    job = first_found(found)
    if not job:
        why = next((str(each["why"]) for each in found if each.get("why")), "no worker has answered")
        raise WholeError(f"{tried} {why}. Correct that, or {WITHOUT}.")
    return job


def require_one_cluster(clusters: Sequence[str]) -> None:
    """Refuse to work around one job in several clusters at the same time: each would miss the moves in the others."""
    if len(clusters) > 1:
        limits = ", then ".join(f"--limit {name},workers" for name in clusters)
        raise WholeError(
            f"The clusters {', '.join(clusters)} cannot be worked on at the same time around one training job: each "
            f"verdict would miss the moves in the other clusters. Run one cluster after another: {limits}."
        )
