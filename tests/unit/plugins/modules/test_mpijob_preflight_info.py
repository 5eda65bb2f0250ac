# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The module mpijob_preflight_info, over an API server of Kubernetes that answers from given objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plugins.modules import mpijob_preflight_info
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
        return call(mpijob_preflight_info, **{"moved": ["w1", "w2"], "kubeconfig": kubeconfig, **options})


def rules(told: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["severity"], one["rule"]) for one in told["findings"]]


def test_a_kubernetes_that_stands_a_stun_has_no_finding_that_stops(tmp_path: Path) -> None:
    told = found(tmp_path, {}, needs={"nvidia.com/gpu": 1})
    assert told["stops"] == [] and rules(told) == [("note", "node_grace")] and told["grace_seconds"] == 50.0
    assert found(tmp_path, {}, stun_seconds=20)["findings"] == []


def test_what_would_end_a_job_stops_and_may_be_accepted(tmp_path: Path) -> None:
    more = {
        "/api/v1/pods": [SERVER],
        "/api/v1/configmaps": [PLUGIN],
        "/apis/policy/v1/poddisruptionbudgets": [BUDGET],
    }
    options: dict[str, Any] = {"toleration_seconds": 10, "needs": {"nvidia.com/gpu": 2}, "pvrdma": True}
    told = found(tmp_path, more, **options)
    stopping = ["control_plane", "rdma_vendor", "resource", "toleration"]
    assert sorted(one["rule"] for one in told["stops"]) == stopping
    assert ("note", "disruption_budget") in rules(told)
    assert told["lines"][-1] == "4 stop, 0 warn, 2 note, 4 in the way"
    accepted = found(tmp_path, more, accept=["resource", "toleration", "rdma_vendor", "control_plane:w1"], **options)
    assert accepted["stops"] == []
