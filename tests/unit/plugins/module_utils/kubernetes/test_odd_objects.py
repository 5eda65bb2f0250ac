"""Kubernetes objects with a part replaced with any value: a job has a state, a cluster has findings, nothing raises."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from plugins.module_utils.core.findings import Finding
from plugins.module_utils.kubernetes.preflight import (
    ClusterObjects,
    MovedJob,
    findings,
    grace,
    least_tolerated,
    pods_of,
)
from plugins.module_utils.kubernetes.seen import MOST_RANKS, part, several
from plugins.module_utils.kubernetes.state import changes, ranks_of_pods, state_of, workers_of
from tests.fakes.foreign import mangled

from .objects import CREATED, LAUNCHER, NAME, RUNNING, WORKERS, event, job, pod, snapshot, unscheduled
from .test_preflight import NODES, rdma
from .test_preflight import pod as pod_of_cluster

STATES = ("absent", "waiting", "running", "finished", "died", "stopped")
ENDED = {"terminated": {"exitCode": 1, "reason": "OOMKilled", "startedAt": "2026-07-03T14:59:17Z"}}
JOBS: dict[str, Any] = {
    "job": job(CREATED, RUNNING),
    "pods": [LAUNCHER, *WORKERS, unscheduled(3, "0/5 nodes"), pod("launcher", phase="Failed", state=ENDED)],
    "events": [event("Pod", f"{NAME}-worker-0", "TaintManagerEviction", "Marking for deletion")],
}
BUDGET = {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"mpi_job_name": "x"}}}}
CLUSTER: dict[str, Any] = {
    "nodes": NODES,
    "pods": [
        pod_of_cluster("api", "w1", {"component": "kube-apiserver"}, ["--node-monitor-grace-period=9s"]),
        pod_of_cluster("operator", "w2", {"app": "mpi-operator"}),
        *WORKERS,
    ],
    "budgets": [BUDGET],
    "config_maps": [rdma(["15b3"])],
    "gpu_policies": [
        {"metadata": {"labels": {"app.kubernetes.io/version": "v25.3"}}, "spec": {"cdi": {"enabled": True}}}
    ],
}


@given(mangled(JOBS))
def test_a_job_of_odd_objects_has_a_state(objects: Any) -> None:
    # The connection returns only objects and lists of objects.
    odd = snapshot(dict(part(objects, "job")) or None, several(objects, "pods"), several(objects, "events"))
    state = state_of(odd)
    assert state["state"] in STATES
    pods = state.get("pods") or {}
    assert list(changes(pods, pods)) == []
    assert len(ranks_of_pods({}, pods, {})) == 0
    assert all(isinstance(worker["name"], str) for worker in workers_of(odd, ["kubectl"], {}))


@given(mangled(CLUSTER))
def test_a_cluster_of_odd_objects_has_findings(objects: Any) -> None:
    keys = ("nodes", "pods", "budgets", "config_maps", "gpu_policies")
    cluster = ClusterObjects("v1.35.4", *(several(objects, key) for key in keys))
    tolerated = least_tolerated(pods_of(cluster, "default", NAME, ["uid-of-the-job"]))
    moved_job = MovedJob(["w1", "w2"], 30, tolerated, {"nvidia.com/gpu": 1}, 2, True)
    assert all(isinstance(finding, Finding) for finding in findings(cluster, moved_job))
    assert grace(cluster) > 0
    assert findings(ClusterObjects("", [], gpu_clusters=several(objects, "gpu_policies")), moved_job)


@pytest.mark.parametrize("data", ['{"configList": 5}', '{"resourceList": {"a": 1}}', "[1]", '{"configList": [[]]}'])
def test_the_configuration_of_another_program_selects_no_vendor(data: str) -> None:
    config_map = {"metadata": {"name": "app"}, "data": {"config.json": data}}
    cluster = ClusterObjects("v1.35.4", NODES, config_maps=[config_map])
    assert findings(cluster, MovedJob(["w1"], 30, 300.0, has_pvrdma=True)) == []


@pytest.mark.parametrize("word", ["soon", "", "-1s"])
def test_an_invalid_grace_period_means_the_default(word: str) -> None:
    controllers = pod_of_cluster("c", "cp", {}, [f"--node-monitor-grace-period={word}"])
    assert grace(ClusterObjects("v1.35.4", NODES, [controllers])) == 50


@pytest.mark.parametrize(("workers", "slots"), [(MOST_RANKS + 1, 1), (2, MOST_RANKS), (-1, 1), ("many", 1)])
def test_too_many_ranks_are_not_listed(workers: Any, slots: Any) -> None:
    made = job(RUNNING)
    made["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"], made["spec"]["slotsPerWorker"] = workers, slots
    assert snapshot(made).ranks == []
