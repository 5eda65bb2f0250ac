"""Conditions in a Kubernetes cluster that would end a job during a move, and the rules of docs/kubernetes.md."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.kubernetes.preflight import (
    ClusterObjects,
    MovedJob,
    findings,
    grace,
    least_toleration,
    toleration,
)
from plugins.module_utils.kubernetes.seen import tolerated_seconds


def node(name: str, gpus: int = 1, ready: str = "True", **spec: Any) -> dict[str, Any]:
    condition = {"type": "Ready", "status": ready, "message": "kubelet is posting ready status"}
    status = {"conditions": [condition], "allocatable": {"cpu": "8", "nvidia.com/gpu": str(gpus)}}
    return {"metadata": {"name": name}, "spec": spec, "status": status}


def pod(name: str, on: str, labels: dict[str, str], command: list[str] | None = None) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"nodeName": on, "containers": [{"command": command}]},
    }


NODES = [node("w1"), node("w2"), node("w3"), node("w4"), node("cp", 0)]
MOVED = ["w1", "w2", "w3", "w4"]


def rdma(vendors: list[str], key: str = "configList") -> dict[str, Any]:
    """The configuration of a plugin for shared RDMA devices (configList), or of the one for SR-IOV (resourceList)."""
    entry = {"resourceName": "hca", "selectors": {"vendors": vendors}}
    return {"metadata": {"name": "rdma-devices"}, "data": {"config.json": json.dumps({key: [entry]}), "note": "{"}}


def results(cluster: ClusterObjects | None = None, **changes: Any) -> list[tuple[str, str, str, str]]:
    job = MovedJob(**{"moved": MOVED, "stun_seconds": 30, "tolerates": 300.0, **changes})
    listed = findings(cluster or ClusterObjects("v1.35.4", NODES), job)
    return [(each.severity, each.rule, each.object, each.text) for each in listed]


def rules(cluster: ClusterObjects | None = None, **changes: Any) -> list[tuple[str, str]]:
    return [(severity, rule) for severity, rule, _object, _text in results(cluster, **changes)]


@pytest.mark.parametrize(
    ("version", "command", "seconds"),
    [
        ("v1.35.4", [], 50.0),
        ("v1.32.0+vmware.1", [], 50.0),
        ("v1.31.9", [], 40.0),
        ("1.22", [], 40.0),
        ("", [], 40.0),
        ("v1.35.4", ["kube-controller-manager", "--node-monitor-grace-period=1m30s"], 90.0),
        ("v1.35.4", ["kube-controller-manager", "--node-monitor-grace-period", "90s"], 90.0),
        ("v1.35.4", ["kube-controller-manager", "--node-monitor-grace-period"], 50.0),
    ],
)
def test_derives_the_grace_period_from_version_and_command(version: str, command: list[str], seconds: float) -> None:
    controllers = pod("controllers", "cp", {"component": "kube-controller-manager"}, command)
    assert grace(ClusterObjects(version, [], [controllers])) == seconds


def test_a_sound_cluster_has_no_findings() -> None:
    assert results() == []


def test_a_stun_beyond_the_grace_is_a_note() -> None:
    ((severity, rule, _object, text),) = results(stun_seconds=100)
    assert (severity, rule) == ("note", "node_grace") and "after 50 s of silence" in text
    assert results(stun_seconds=40) == [] and rules(stun_seconds=41) == [("note", "node_grace")]


def test_a_toleration_that_a_stun_outlasts_stops() -> None:
    listed = results(stun_seconds=90, tolerates=10.0)
    text = next(text for severity, rule, _object, text in listed if (severity, rule) == ("stop", "toleration"))
    assert "for 10 s (tolerationSeconds)" in text and "may take 90 s: set 80 s or more" in text
    assert ("stop", "toleration") not in rules(stun_seconds=90, tolerates=80.0)
    assert ("stop", "toleration") in rules(stun_seconds=90, tolerates=79.0)
    assert ("stop", "toleration") not in rules(stun_seconds=1000, tolerates=None)


def test_an_older_kubernetes_needs_a_longer_toleration() -> None:
    old = ClusterObjects("v1.31.0", NODES)
    assert ("stop", "toleration") in rules(old, stun_seconds=90, tolerates=89.0)
    assert ("stop", "toleration") not in rules(old, stun_seconds=90, tolerates=90.0)


def test_agrees_with_the_recorded_stuns() -> None:
    """Pods survived 60 s with the default of 300 s, and not 90 s with 10 s."""
    assert least_toleration(60, 50.0) <= 300 and least_toleration(90, 50.0) > 10


@pytest.mark.parametrize(("stun", "given"), [(0, 300), (100, 300), (300, 300), (301, 301), (600, 600)])
def test_a_job_gets_at_least_the_default_toleration(stun: float, given: int) -> None:
    assert toleration(stun) == given


def test_reports_unknown_unready_and_cordoned_nodes() -> None:
    nodes = [node("w1", ready="Unknown"), node("w2", unschedulable=True), node("w3"), {"metadata": {"name": "w4"}}]
    listed = results(ClusterObjects("v1.35.4", nodes), moved=[*MOVED, "w9"])
    assert [(severity, name) for severity, _rule, name, _text in listed] == [
        ("stop", "w1"),
        ("warn", "w2"),
        ("stop", "w4"),
        ("stop", "w9"),
    ]
    assert (
        listed[2][3] == "the node is not ready: it has not reported its state"
        and "no node with this name" in listed[3][3]
    )


def test_moving_the_only_control_plane_stops() -> None:
    one = [pod("kube-apiserver-w1", "w1", {"component": "kube-apiserver"})]
    others = [pod(f"kube-apiserver-{name}", name, {"component": "kube-apiserver"}) for name in ("cp", "cp2")]
    assert rules(ClusterObjects("v1.35.4", NODES, one)) == [("stop", "control_plane")]
    assert rules(ClusterObjects("v1.35.4", NODES, [*one, *others])) == [("warn", "control_plane")]
    assert rules(ClusterObjects("v1.35.4", NODES, others)) == []


def member(component: str, on: str, namespace: str = "kube-system", ready: str = "True") -> dict[str, Any]:
    """Return a pod of the control plane, as a static pod of kubeadm shows itself."""
    made = pod(f"{component}-{on}", on, {"component": component, "tier": "control-plane"})
    made["metadata"]["namespace"] = namespace
    return {**made, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}}


@pytest.mark.parametrize(
    ("other", "severity"),
    [
        (member("kube-apiserver", "cp"), "warn"),
        (member("kube-apiserver", "cp", ready="False"), "stop"),
        (member("kube-apiserver", "cp", namespace="team-a"), "stop"),
        ({**member("kube-apiserver", "cp"), "status": {"phase": "Failed"}}, "stop"),
    ],
)
def test_only_a_serving_api_server_replaces_another(other: dict[str, Any], severity: str) -> None:
    cluster = ClusterObjects("v1.35.4", NODES, [member("kube-apiserver", "w1"), other])
    assert rules(cluster) == [(severity, "control_plane")]


@pytest.mark.parametrize(("others", "severity"), [(0, "stop"), (1, "stop"), (2, "warn"), (3, "warn")])
def test_etcd_needs_a_majority_of_its_members(others: int, severity: str) -> None:
    members = [member("etcd", "w1"), *(member("etcd", f"cp{number}") for number in range(others))]
    assert rules(ClusterObjects("v1.35.4", NODES, members)) == [(severity, "control_plane")]


def test_an_unready_etcd_member_cannot_replace_a_voter() -> None:
    members = [member("etcd", "w1"), member("etcd", "cp"), member("etcd", "cp2", ready="False")]
    assert rules(ClusterObjects("v1.35.4", NODES, members)) == [("stop", "control_plane")]


def test_ignores_a_grace_period_of_another_tenant() -> None:
    stranger = pod("mine", "w1", {}, ["sleep", "--node-monitor-grace-period=1h"])
    stranger["metadata"]["namespace"] = "team-a"
    assert grace(ClusterObjects("v1.35.4", [], [stranger])) == 50.0


def test_an_operator_on_a_moved_worker_is_noted() -> None:
    named = ("mpi-operator", "trainer", "jobset")
    for labels in ({"app": "mpi-operator"}, *({"app.kubernetes.io/name": name} for name in named)):
        assert rules(ClusterObjects("v1.35.4", NODES, [pod("mpi-operator-1", "w2", labels)])) == [("note", "operator")]
        assert rules(ClusterObjects("v1.35.4", NODES, [pod("mpi-operator-1", "cp", labels)])) == []


def test_fewer_nodes_with_a_device_than_workers_stop() -> None:
    ((severity, rule, resource, text),) = results(needs={"nvidia.com/gpu": 2}, workers=4)
    assert (severity, rule, resource) == ("stop", "resource", "nvidia.com/gpu")
    assert "4 workers need 2 of it each, and 0 nodes have that number (w1 1, w2 1, w3 1, w4 1)" in text
    assert results(needs={"nvidia.com/gpu": 1}, workers=4) == []
    assert "(none)" in results(needs={"rdma/hca": 1}, workers=1)[0][3]


@pytest.mark.parametrize(("written", "count"), [("1k", 1000), ("1500", 1500), ("2M", 2_000_000), ("1Ki", 1024)])
def test_devices_are_counted_when_the_server_scales_them(written: str, count: int) -> None:
    """Mellanox's plug-in offers 1000 shared devices by default, which the API server writes as 1k."""
    offering = node("w1")
    offering["status"]["allocatable"]["rdma/hca"] = written
    cluster = ClusterObjects("v1.35.4", [*NODES[1:], offering])
    assert results(cluster, needs={"rdma/hca": count}, workers=1) == []
    assert rules(cluster, needs={"rdma/hca": count + 1}, workers=1) == [("stop", "resource")]


def test_a_disruption_budget_for_the_job_is_noted() -> None:
    def budget(name: str, labels: dict[str, str]) -> dict[str, Any]:
        return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}}}

    budgets = [budget("train", {"training.kubeflow.org/job-name": "t"}), budget("web", {"app": "web"})]
    listed = results(ClusterObjects("v1.35.4", NODES, budgets=budgets))
    assert [(severity, rule, name) for severity, rule, name, _text in listed] == [
        ("note", "disruption_budget", "train")
    ]


@pytest.mark.parametrize("key", ["configList", "resourceList"])
def test_a_plugin_that_misses_pvrdma_stops(key: str) -> None:
    only = ClusterObjects("v1.35.4", NODES, config_maps=[rdma(["15b3"], key)])
    both = ClusterObjects("v1.35.4", NODES, config_maps=[rdma(["15b3", "15ad"], key)])
    ((severity, rule, name, text),) = results(only, has_pvrdma=True)
    assert (severity, rule, name) == ("stop", "rdma_vendor", "rdma-devices") and "PVRDMA's is 15ad" in text
    assert results(both, has_pvrdma=True) == [] and results(only) == []
    own_config = ClusterObjects("v1.35.4", NODES, config_maps=[rdma(["15b3"], key), rdma(["15ad"], key)])
    assert results(own_config, has_pvrdma=True) == []


def test_configurations_in_another_form_have_no_finding() -> None:
    odd = [{"configList": [None, {"selectors": None}, {"selectors": [{"vendors": None}]}]}, [1], "x"]
    maps = [{"metadata": {"name": "m"}, "data": {str(index): json.dumps(one) for index, one in enumerate(odd)}}, {}]
    assert results(ClusterObjects("v1.35.4", NODES, config_maps=maps), has_pvrdma=True) == []


TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
TOLERATIONS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "key": st.sampled_from((*TAINTS, "nvidia.com/gpu")),
            "operator": st.sampled_from(("Exists", "Equal")),
            "effect": st.sampled_from(("NoExecute", "NoSchedule")),
            "value": st.sampled_from(("", "true")),
            "tolerationSeconds": st.integers(0, 900),
        },
    ),
    max_size=5,
)


def stays(taint: str, tolerations: list[dict[str, Any]]) -> float:
    """Return how long a pod stays on a node with this taint, which has no value, as Kubernetes documents it."""
    limits = []
    for one in tolerations:
        matches_all = one.get("operator") == "Exists" and "key" not in one
        has_key = one.get("key") == taint and (one.get("operator") == "Exists" or not one.get("value"))
        if one.get("effect") != "NoSchedule" and (matches_all or has_key):
            limits.append(one.get("tolerationSeconds", math.inf))
    return min(limits, default=0)


@settings(max_examples=400, deadline=None)
@given(TOLERATIONS)
def test_the_shorter_of_both_tolerations_counts(tolerations: list[dict[str, Any]]) -> None:
    shorter = min(stays(taint, tolerations) for taint in TAINTS)
    assert tolerated_seconds(tolerations) == (None if math.isinf(shorter) else shorter)


@settings(max_examples=300, deadline=None)
@given(
    members=st.lists(
        st.tuples(
            st.sampled_from(("etcd", "kube-apiserver")), st.sampled_from(("kube-system", "team-a")), st.booleans()
        ),
        max_size=5,
    ),
    moved=st.sets(st.sampled_from(range(5)), min_size=1),
    at_once=st.booleans(),
)
def test_refuses_to_move_the_last_control_plane_members(
    members: list[tuple[str, str, bool]], moved: set[int], at_once: bool
) -> None:
    names = [f"cp{index}" for index in range(5)]
    pods = [
        member(component, names[index], namespace, str(is_ready))
        for index, (component, namespace, is_ready) in enumerate(members)
    ]
    takes = [moved] if at_once else [{one} for one in moved]
    expected = False
    for component, namespace in (("etcd", "kube-system"), ("kube-apiserver", "kube-system")):
        mine = [index for index, one in enumerate(members) if one[:2] == (component, namespace)]
        serving = {index for index in mine if members[index][2]}
        needed = len(mine) // 2 + 1 if component == "etcd" else 1
        expected = expected or any(serving & taken and len(serving - taken) < needed for taken in takes)
    nodes = [*NODES, *({**NODES[0], "metadata": {"name": name}} for name in names)]
    taken = [*MOVED, *(names[index] for index in sorted(moved))]
    found = results(ClusterObjects("v1.35.4", nodes, pods), moved=taken, at_once=at_once)
    assert any((severity, rule) == ("stop", "control_plane") for severity, rule, _name, _text in found) is expected
