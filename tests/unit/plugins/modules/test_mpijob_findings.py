"""The findings of mpijob_info, over an API server of Kubernetes that answers from given objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plugins.modules import mpijob_info
from tests.fakes.kubernetes import Cluster, served

from .test_continuity_verdict import call


def node(name: str) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True"}
    return {"metadata": {"name": name}, "status": {"conditions": [ready], "allocatable": {"nvidia.com/gpu": "1"}}}


SERVER = {"metadata": {"name": "api", "labels": {"component": "kube-apiserver"}}, "spec": {"nodeName": "w1"}}
PLUGIN = {
    "metadata": {"name": "rdma-devices"},
    "data": {"config.json": json.dumps({"configList": [{"selectors": {"vendors": ["15b3"]}}]})},
}
BUDGET = {
    "metadata": {"name": "train"},
    "spec": {"selector": {"matchLabels": {"training.kubeflow.org/job-name": "train"}}},
}


def found(tmp_path: Path, answers: dict[str, Any], **options: Any) -> dict[str, Any]:
    known = {"/api/v1/nodes": [node("w1"), node("w2")], "/api/v1/pods": [], "/api/v1/configmaps": []}
    with served(Cluster({**known, **answers}), tmp_path) as kubeconfig:
        return call(mpijob_info, **{"gather": ["findings"], "moved": ["w1", "w2"], "kubeconfig": kubeconfig, **options})


def rules(expected: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["severity"], one["rule"]) for one in expected["findings"]]


def test_kubernetes_that_tolerates_stuns_has_no_blocking_finding(tmp_path: Path) -> None:
    result = found(tmp_path, {}, needs={"nvidia.com/gpu": 1})
    assert result["stops"] == [] and rules(result) == [("note", "node_grace")] and result["grace_seconds"] == 50.0
    assert found(tmp_path, {}, stun_seconds=20)["findings"] == []


def test_settings_that_end_jobs_block_unless_accepted(tmp_path: Path) -> None:
    more = {"/api/v1/pods": [SERVER], "/api/v1/configmaps": [PLUGIN], "/apis/policy/v1/poddisruptionbudgets": [BUDGET]}
    options: dict[str, Any] = {"toleration_seconds": 10, "needs": {"nvidia.com/gpu": 2}, "pvrdma": True}
    result = found(tmp_path, more, **options)
    stopping = ["control_plane", "rdma_vendor", "resource", "toleration"]
    assert sorted(one["rule"] for one in result["stops"]) == stopping
    assert ("note", "disruption_budget") in rules(result)
    assert result["lines"][-1] == "4 stop, 0 warn, 2 note"
    accepted = found(tmp_path, more, accept=["resource", "toleration", "rdma_vendor", "control_plane:w1"], **options)
    assert accepted["stops"] == [] and accepted["lines"][-1] == "0 stop, 0 warn, 2 note, 4 accepted"


JOB = {"/apis/kubeflow.org/v2beta1/namespaces/ml/mpijobs/train": {"metadata": {"name": "train", "uid": "job-1"}}}


def tolerating(name: str, seconds: float | None, namespace: str = "ml", owner: str = "job-1") -> dict[str, Any]:
    """A pod with the labels of the job train."""
    bound = {} if seconds is None else {"tolerationSeconds": seconds}
    taints = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    tolerations = [{"key": taint, "operator": "Exists", "effect": "NoExecute", **bound} for taint in taints]
    labels = {"training.kubeflow.org/job-name": "train", "training.kubeflow.org/job-role": "worker"}
    metadata = {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": [{"uid": owner}]}
    return {"metadata": metadata, "spec": {"nodeName": "w1", "tolerations": tolerations}}


@pytest.mark.parametrize(
    ("pods", "stops"),
    [
        ([tolerating("a", 300), tolerating("b", 10)], ["toleration"]),
        ([tolerating("a", 300), tolerating("b", None)], []),
        ([tolerating("a", None)], []),
        ([tolerating("a", 10, "others")], []),
        ([tolerating("a", 300), tolerating("b", 10, owner="another-job")], []),
        ([], []),
    ],
)
def test_uses_the_pod_toleration_of_an_existing_job(tmp_path: Path, pods: list[Any], stops: list[str]) -> None:
    result = found(tmp_path, {**JOB, "/api/v1/pods": pods}, name="train", namespace="ml")
    assert [one["rule"] for one in result["stops"]] == stops
    given = found(tmp_path, {**JOB, "/api/v1/pods": pods}, name="train", namespace="ml", toleration_seconds=5)
    assert [one["rule"] for one in given["stops"]] == ["toleration"]


def test_reads_configurations_only_for_pvrdma(tmp_path: Path) -> None:
    for pvrdma, requested in ((False, 0), (True, 1)):
        server = Cluster({"/api/v1/nodes": [node("w1")], "/api/v1/pods": [], "/api/v1/configmaps": [PLUGIN]})
        with served(server, tmp_path) as kubeconfig:
            call(mpijob_info, gather=["findings"], moved=["w1"], kubeconfig=kubeconfig, pvrdma=pvrdma)
        assert server.requests.count("/api/v1/configmaps") == requested


@pytest.mark.parametrize("seconds", ["nan", "inf", -1, 1e9])
def test_refuses_a_stun_that_is_not_a_time(tmp_path: Path, seconds: object) -> None:
    result = found(tmp_path, {}, stun_seconds=seconds)
    message = "is not a finite number" if isinstance(seconds, str) else "expected seconds from 0 to 86400"
    assert result["failed"] and "stun_seconds" in result["msg"] and message in result["msg"]


GPUS = {"nvidia.com/gpu": 1}
POLICY = {"metadata": {"name": "cluster-policy"}, "spec": {"cdi": {"enabled": True}}, "status": {"state": "ready"}}
POLICIES = "/apis/nvidia.com/v1/clusterpolicies"


def on_containerd(name: str) -> dict[str, Any]:
    found = node(name)
    return {**found, "status": {**found["status"], "nodeInfo": {"containerRuntimeVersion": "containerd://2.1.4"}}}


def checked(tmp_path: Path, server: Cluster, **options: Any) -> dict[str, Any]:
    with served(server, tmp_path) as kubeconfig:
        return call(mpijob_info, gather=["findings"], moved=["w1"], kubeconfig=kubeconfig, stun_seconds=20, **options)


def test_warns_about_gpus_through_cdi(tmp_path: Path) -> None:
    nodes = [on_containerd("w1"), on_containerd("w2")]
    result = found(tmp_path, {"/api/v1/nodes": nodes, POLICIES: [POLICY]}, needs=GPUS, stun_seconds=20)
    assert rules(result) == [("warn", "gpu_operator")] and result["stops"] == []
    assert "w1 containerd 2.1.4, w2 containerd 2.1.4" in result["findings"][0]["text"]
    one = found(tmp_path, {"/api/v1/nodes": nodes, POLICIES: [POLICY]}, needs=GPUS, stun_seconds=20, moved=["w1"])
    assert "w2 containerd" not in one["findings"][0]["text"]


def test_reads_the_gpu_operator_only_for_gpus(tmp_path: Path) -> None:
    for needs, requested in (({}, 0), ({"rdma/hca": 0}, 0), (GPUS, 1)):
        server = Cluster({"/api/v1/nodes": [on_containerd("w1")], "/api/v1/pods": [], POLICIES: [POLICY]})
        result = checked(tmp_path, server, needs=needs)
        assert server.requests.count(POLICIES) == requested == len(result["findings"])


def test_cluster_without_gpu_operator_has_no_finding(tmp_path: Path) -> None:
    server = Cluster({"/api/v1/nodes": [on_containerd("w1")], "/api/v1/pods": []})
    assert checked(tmp_path, server, needs=GPUS)["findings"] == [] and POLICIES in server.requests


def test_account_without_trainer_rights_checks_mpijobs(tmp_path: Path) -> None:
    server = Cluster(
        {"/api/v1/nodes": [on_containerd("w1")], "/api/v1/pods": []}, forbidden=("/apis/trainer.kubeflow.org",)
    )

    assert checked(tmp_path, server, name="gone")["findings"] == []


def test_notes_policies_that_the_account_cannot_read(tmp_path: Path) -> None:
    known = {"/api/v1/nodes": [on_containerd("w1")], "/api/v1/pods": [], POLICIES: [POLICY]}
    result = checked(tmp_path, Cluster(known, forbidden=("/apis/nvidia.com",)), needs=GPUS)
    ((severity, rule),) = rules(result)
    text = result["findings"][0]["text"]
    assert (severity, rule) == ("note", "gpu_operator") and f'User "dml" cannot read {POLICIES}' in text
    assert text.endswith("give it list on clusterpolicies and gpuclusters of nvidia.com.")
