# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""A running job, wherever it runs: its state, its ranks by worker, the checks before a move, and its end; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Dict, List, Protocol

from ..durable.calls import Calls, Result, required
from ..kubernetes.job_spec import V2BETA1
from ..kubernetes.manifests import deletion
from ..kubernetes.state import ranks_of_pods
from ..training.runs.training_run import PLACE

Findings = List[Dict[str, Any]]


class Job(Protocol):
    """A running job. ``name`` is its name in sentences.

    ``workers`` maps the names of its nodes to those of the workers in vCenter, if they differ.
    """

    name: str
    workers: dict[str, str]

    def read(self, calls: Calls) -> Result:
        """Return the result of the module that reads the job; both modules return the same keys."""

    def checked(self, calls: Calls, moved: Sequence[str], stun_seconds: float, accept: Sequence[str], /) -> Findings:
        """Return the findings about the place of the job before these workers move."""

    def finish(self, calls: Calls) -> None:
        """Ask the job to end after its epoch."""

    def stop(self, calls: Calls) -> None:
        """Stop the job."""


def job_from(settings: Mapping[str, Any]) -> Job:
    """Return the job that the options ``kubernetes``, or ``launcher``, ``run_dir`` and ``records``, name."""
    return KubernetesJob(settings) if settings.get("kubernetes") else RunOnNodes(settings)


class RunOnNodes:
    """A job of mpirun on its launcher: a run of this collection, or one of which only the records are known."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._run_dir, self._records = settings["run_dir"], settings["records"]
        self.name, self.workers = f"{settings['launcher']}: the job in {self._run_dir}", dict[str, str]()

    def read(self, calls: Calls) -> Result:
        """Return the state of the job. Only the records identify a job that another tool started."""
        return calls.there("training_job_info", {"run_dir": self._run_dir, "records": self._records})

    def checked(self, _calls: Calls, _moved: Sequence[str], _stun: float, _accept: Sequence[str], /) -> Findings:
        """Return no finding: mpirun has no scheduler that would end it."""
        return []

    def finish(self, calls: Calls) -> None:
        """Ask the benchmark of the collection to end after its epoch."""
        required(calls.there("ansible.builtin.file", finish_file(self._records)))

    def stop(self, calls: Calls) -> None:
        """Stop all processes of the run."""
        required(calls.there("training_job", {"run_dir": self._run_dir, "state": "stopped"}))


class KubernetesJob:
    """An MPIJob, whose ranks run in pods."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._options, self._records = dict(settings["kubernetes"]), settings["records"]
        self.workers: dict[str, str] = self._options.get("names") or {}
        self.name = f"MPIJob {self._options['name']}: it"

    def read(self, calls: Calls) -> Result:
        """Return the state of the job, as the API server of Kubernetes reports it."""
        return calls.here("mpijob_info", self._options)

    def checked(self, calls: Calls, moved: Sequence[str], stun_seconds: float, accept: Sequence[str], /) -> Findings:
        """Return what in Kubernetes would end the job while the nodes of these workers are silent."""
        nodes: list[str] = []
        for worker in moved:
            nodes += [node for node, name in self.workers.items() if name == worker] or [worker]
        job = {key: self._options[key] for key in ("name", *PLACE) if key in self._options}
        options = {"stun_seconds": stun_seconds, "accept": list(accept), "moved": nodes, "at_once": len(nodes) > 1}
        findings: Findings = required(calls.here("mpijob_preflight_info", {**job, **options}))["findings"]
        return findings

    def finish(self, calls: Calls) -> None:
        """Ask the benchmark of the collection to end after its epoch."""
        required(calls.there("ansible.builtin.file", finish_file(self._records)))

    def stop(self, calls: Calls) -> None:
        """Delete the job and its other objects."""
        # mpijob_info assumes this namespace if none is given; kubernetes.core.k8s refuses to delete without one.
        place = {"namespace": "default", **{key: self._options[key] for key in PLACE if key in self._options}}
        options = deletion(str(self._options["name"]), str(self._options.get("api", V2BETA1)))
        required(calls.here("kubernetes.core.k8s", {**options, **place}))


def placed(hosts: Mapping[str, Sequence[int]], job: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the ranks by worker: a rank in a pod reports the pod, and its worker is the node of that."""
    if job.get("pods") is None:
        return {"hosts": dict(hosts)}
    pods = ranks_of_pods(hosts, job["pods"], names)
    known = {rank for pod in pods.values() for rank in pod["ranks"]}
    # Ranks outside the reported pods may run on any worker: they are kept, so that no worker counts as idle.
    elsewhere = {host: list(ranks) for host, ranks in hosts.items() if not known.issuperset(ranks)}
    return {"hosts": {**elsewhere, **_ranks_by_worker(pods)}, "pods": pods}


def finish_file(records: str) -> dict[str, Any]:
    """Return the options that write the file which ends the benchmark after its epoch."""
    return {"path": f"{records}/finish", "state": "touch", "mode": "0644"}


def _ranks_by_worker(pods: Mapping[str, Any]) -> dict[str, list[int]]:
    workers: dict[str, list[int]] = {}
    for pod in pods.values():
        workers[pod["worker"]] = sorted([*workers.get(pod["worker"], []), *pod["ranks"]])
    return workers
