"""The GPU Operator's use of CDI; the policies are synthetic, with the fields of its clusterpolicy_types.go."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.core.findings import WARN
from plugins.module_utils.kubernetes import gpu_operator


def node(name: str, runtime: str = "containerd://1.7.24") -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"nodeInfo": {"containerRuntimeVersion": runtime}}}


def policy(cdi: dict[str, Any] | None = None, version: str = "", state: str = "ready") -> dict[str, Any]:
    labels = {"app.kubernetes.io/version": version} if version else {}
    spec = {} if cdi is None else {"cdi": cdi}
    return {"metadata": {"name": "cluster-policy", "labels": labels}, "spec": spec, "status": {"state": state}}


@pytest.mark.parametrize(
    ("cdi", "version", "uses"),
    [
        ({"enabled": True}, "v25.10.1", True),
        ({"enabled": True, "default": False}, "v26.7.0", True),
        ({"enabled": False, "default": True}, "v25.10.1", False),
        ({}, "v25.10.0", True),
        (None, "v26.3.0", True),
        (None, "", True),
        ({"enabled": True}, "main", True),
        ({"enabled": False}, "", False),
        ({"enabled": True, "default": False}, "v25.3.4", False),
        ({"enabled": True, "default": True}, "v25.3.4", True),
        ({"default": True}, "v24.9.2", False),
        (None, "v25.3.4", False),
    ],
)
def test_cdi_is_the_default_since_25_10(cdi: dict[str, Any] | None, version: str, uses: bool) -> None:
    assert gpu_operator.uses_cdi(policy(cdi, version)) is uses


def test_cdi_on_containerd_warns_with_a_remedy() -> None:
    nodes = [node("w2"), node("w1"), node("w3", "cri-o://1.35.0")]
    (finding,) = gpu_operator.findings([policy({"enabled": True})], nodes)
    assert (finding.severity, finding.rule, finding.object) == (WARN, "gpu_operator", "cluster-policy")
    assert "(w1 containerd 1.7.24, w2 containerd 1.7.24; Broadcom KB 437128)" in finding.text
    patch = """cluster-policy --type merge -p '{"spec": {"cdi": {"enabled": false}}}'"""
    assert finding.text.endswith(f"disable CDI with kubectl patch clusterpolicies.nvidia.com {patch}")


@pytest.mark.parametrize(
    ("policies", "nodes"),
    [
        ([], [node("w1")]),
        ([policy({"enabled": False})], [node("w1")]),
        ([policy(state="ignored")], [node("w1")]),
        ([policy()], [node("w1", "cri-o://1.35.0")]),
        ([policy()], [{"metadata": {"name": "w1"}}]),
        ([policy()], []),
    ],
)
def test_a_setting_that_cannot_fail_has_no_finding(policies: list[Any], nodes: list[Any]) -> None:
    assert [*gpu_operator.findings(policies, nodes)] == []


@pytest.mark.parametrize(("state", "count"), [("ready", 1), ("notReady", 1), ("disabled", 0), ("ignored", 0)])
def test_an_active_gpu_cluster_warns_with_a_remedy(state: str, count: int) -> None:
    found = [*gpu_operator.cluster_findings([{"metadata": {"name": "gpu-cluster"}, "status": {"state": state}}])]

    assert [(each.severity, each.rule, each.object) for each in found] == [
        (WARN, "gpu_operator", "gpu-cluster")
    ] * count
    assert all("through DRA and not as nvidia.com/gpu" in each.text for each in found)


def test_a_name_is_quoted_in_the_command() -> None:
    named = {**policy(), "metadata": {"name": "a; reboot"}}
    (finding,) = gpu_operator.findings([named], [node("w1")])
    assert "clusterpolicies.nvidia.com 'a; reboot' --type" in finding.text


@pytest.mark.parametrize(
    ("needs", "is_needed"),
    [({"nvidia.com/gpu": 1}, True), ({"nvidia.com/mig-1g.10gb": 1}, True), ({"rdma/hca": 1}, False), ({}, False)],
)
def test_only_devices_of_nvidia_need_the_operator(needs: dict[str, int], is_needed: bool) -> None:
    assert gpu_operator.is_needed(needs) is is_needed
