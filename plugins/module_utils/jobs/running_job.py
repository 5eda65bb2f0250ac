"""The running job of a vMotion test, a window or an observation, and its ranks by worker; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.names import short_name
from ..durable.calls import required
from ..errors import WholeError
from ..kubernetes.mpijob import MpiJob
from ..kubernetes.state import ranks_of_pods
from ..slurm.named_job import JobInSlurm
from ..training.ending.job_state import JobState
from ..training.runs.any_job import Ask, Job, JobOnNodes


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
