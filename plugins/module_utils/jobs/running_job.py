"""The running job of a vMotion test, a window or an observation: its name, its state, and its ranks by worker; pure."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.names import short_name
from ..durable.calls import required
from ..errors import WholeError
from ..kubernetes import suspension
from ..kubernetes.mpijob import MpiJob
from ..kubernetes.state import ranks_of_pods
from ..slurm.named_job import JobInSlurm
from ..training.ending.job_state import JobState
from ..training.programs.restart_commands import lacking
from ..training.runs.any_job import Ask, Job, JobOnNodes

NamedJob = Mapping[str, Any]
WITHOUT = "leave out under_training to change the hosts without a job"


def job_from(here: Ask, on_launcher: Ask, settings: Mapping[str, Any], on_login: Ask | None = None) -> Job:
    """Return the job that the options ``kubernetes``, or ``launcher``, ``run_dir`` and ``records``, name.

    One with ``slurm`` is also read with the commands of Slurm, on its login node.
    """
    run_dir = settings["run_dir"]
    records = settings.get("records") or run_dir
    if settings.get("kubernetes"):
        return MpiJob(here, on_launcher, settings["kubernetes"], records)
    if settings.get("slurm"):
        return JobInSlurm(on_launcher, on_login or on_launcher, settings["slurm"], run_dir, records)
    return JobOnNodes(on_launcher, f"{settings['launcher']}: the job in {run_dir}", run_dir, records)


def required_to_run(job: Job) -> JobState:
    """Return the state of a job; raise if it does not run, or if nothing would show that it goes on."""
    state: JobState = required(job.look())["job"]
    if state["state"] != "running":
        why = f": {state['why']}" if state.get("why") else ""
        raise WholeError(f"{job.name} does not run, it is {state['state']}{why}; start it, then test.")
    if state.get("steps_by") == "none":
        remedy = "start it without this option, then test"
        raise WholeError(
            f"{job.name} was started with training_steps_by=none, so no record shows that it goes on; {remedy}."
        )
    return state


def placed(hosts: Mapping[str, Sequence[int]], job: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, object]:
    """Return the ranks by worker: a rank in a pod reports the pod, and its worker is the node of that.

    A node of Slurm may have another name than its worker.
    """
    if job.get("pods") is None:
        workers: dict[str, list[int]] = {}
        for host, ranks in hosts.items():
            workers.setdefault(names.get(short_name(host), host), []).extend(ranks)
        return {"hosts": workers}
    pods = ranks_of_pods(hosts, job["pods"], names)
    known = {rank for pod in pods.values() for rank in pod["ranks"]}
    # Ranks outside the reported pods may run on any worker: they are kept, so that no worker counts as idle.
    elsewhere = {host: list(ranks) for host, ranks in hosts.items() if not known.issuperset(ranks)}
    return {"hosts": {**elsewhere, **_ranks_by_worker(pods)}, "pods": pods}


def _ranks_by_worker(pods: Mapping[str, Any]) -> dict[str, list[int]]:
    workers: dict[str, list[int]] = {}
    for pod in pods.values():
        workers[pod["worker"]] = sorted([*workers.get(pod["worker"], []), *pod["ranks"]])
    return workers


def first_found(found: Sequence[NamedJob]) -> NamedJob:
    """Return the job that was found or started; empty without one."""
    return next((each for each in found if each.get("run_dir")), {})


def require_complete(job: NamedJob, *, under_training: bool) -> None:
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


def restart_of(job: NamedJob, results: str) -> dict[str, object]:
    """Return how a named job is restarted, as the site of a window reads it, or ``why`` that is impossible."""
    in_pods = job.get("kubernetes") or {}
    name = str(in_pods.get("name") or posixpath.basename(str(job.get("run_dir") or "")))
    why = suspension.lacking(job) if in_pods else lacking(job)
    return {"run": name, "why": why} if why else {"run": name, "job": {**job, "results": results}}


def require_found(cluster: str, found: Sequence[NamedJob], *, limit: str, has_workers: bool) -> NamedJob:
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
