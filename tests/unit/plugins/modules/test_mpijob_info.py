"""The module mpijob_info and its findings, over an API server of Kubernetes that answers from given objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.kubernetes import manifests
from plugins.module_utils.kubernetes.api import connection
from plugins.module_utils.kubernetes.job_spec import job_of
from plugins.modules import mpijob_info
from tests.fakes.kubernetes import Cluster, served
from tests.unit.plugins.module_utils.kubernetes.objects import (
    CREATED,
    LAUNCHER,
    LAUNCHER_JOB,
    NAME,
    NODES,
    RUNNING,
    WORKERS,
    event,
    job,
    pod,
    unscheduled,
)

from .test_continuity_verdict import call

JOB = f"/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs/{NAME}"
CORE = "/api/v1/namespaces/default"
LAUNCHERS = f"/apis/batch/v1/namespaces/default/jobs/{NAME}-launcher"
LOG = f"{CORE}/pods/t2-launcher-j5h2j/log"


def cluster(found: dict[str, Any] | None, pods: Any = (), events: Any = (), **more: Any) -> Cluster:
    answers = {f"{CORE}/pods": list(pods), f"{CORE}/events": list(events), "/api/v1/nodes": NODES}
    there = {JOB: found, LAUNCHERS: LAUNCHER_JOB} if found else {}
    return Cluster({**answers, **there, **more.pop("answers", {})}, **more)


def looked(server: Cluster, tmp_path: Path, **options: Any) -> dict[str, Any]:
    with served(server, tmp_path) as kubeconfig:
        return call(mpijob_info, **{"name": NAME, "kubeconfig": kubeconfig, **options})


def test_reports_a_running_job(tmp_path: Path) -> None:
    result = looked(cluster(job(CREATED, RUNNING), [LAUNCHER, *WORKERS]), tmp_path)
    assert result["changed"] is False and result["job"]["state"] == "running" and result["log"] == ""
    assert result["job"]["launcher"]["boot_id"] == "boot-1"
    assert result["job"]["pods"]["t2-worker-0"]["node"] == "k3"


def test_workers_have_inventory_names_and_exec_commands(tmp_path: Path) -> None:
    server = cluster(job(CREATED, RUNNING), [LAUNCHER, *WORKERS, unscheduled(3, "no")])
    workers = looked(server, tmp_path, names={"k3": "vm-3"}, kubectl="/opt/kubectl", context="here")["job"]["workers"]
    assert [one["name"] for one in workers] == ["vm-3", "k2", "k4"]
    assert [one["reach"][-6] for one in workers] == ["t2-worker-0", "t2-worker-1", "t2-worker-2"]
    # The watch takes them as they are.
    assert {key for one in workers for key in one} == {"name", "reach"}
    where = ["--kubeconfig", str(tmp_path / "kubeconfig"), "--context", "here", "--namespace", "default"]
    inside = ["exec", "t2-worker-0", "-c", "worker", "--", "sh", "-c"]
    assert workers[0]["reach"] == ["/opt/kubectl", *where, *inside]


def test_uses_the_container_name_of_another_users_job(tmp_path: Path) -> None:
    found = job(CREATED, RUNNING)
    container = {"name": "train", "image": "others/train:1"}
    found["spec"] = {"mpiReplicaSpecs": {"Worker": {"replicas": 3, "template": {"spec": {"containers": [container]}}}}}
    workers = looked(cluster(found, [LAUNCHER, *WORKERS]), tmp_path)["job"]["workers"]
    assert [one["reach"][-4] for one in workers] == ["train"] * 3


def test_reports_node_of_rank_0_after_pod_deletion(tmp_path: Path) -> None:
    there = looked(cluster(job(CREATED, RUNNING), [LAUNCHER, *WORKERS]), tmp_path, names={"k3": "vm-3"})["job"]
    moved = event(
        "Pod", "t2-worker-0", "Scheduled", "Successfully assigned default/t2-worker-0 to k4", kind_of="Normal"
    )
    gone = looked(cluster(job(CREATED, RUNNING), [LAUNCHER], [moved]), tmp_path, names={"k3": "vm-3"})["job"]
    unknown = looked(cluster(job(CREATED, RUNNING), [LAUNCHER]), tmp_path)["job"]
    assert (there["rank_0_on"], gone["rank_0_on"]) == ("vm-3", "k4") and "rank_0_on" not in unknown


def test_reads_a_running_jobs_log_on_request(tmp_path: Path) -> None:
    server = cluster(job(CREATED, RUNNING), [LAUNCHER, *WORKERS], answers={LOG: "step 1\n"})
    assert looked(server, tmp_path, log=True)["log"] == "step 1\n"


@pytest.mark.parametrize("is_over", [True, False])
def test_log_is_read_when_pod_has_sidecar(is_over: bool, tmp_path: Path) -> None:
    """The real server refuses to choose a container."""
    state = {"terminated": {"exitCode": 0}} if is_over else {"running": {"startedAt": "2026-11-22T07:12:07Z"}}
    launcher = pod("launcher", node="k1", state=state)
    (status,) = launcher["status"]["containerStatuses"]
    launcher["spec"]["containers"] = [{"name": "istio-proxy"}, {"name": status["name"]}]
    server = cluster(job(CREATED, RUNNING), [launcher, *WORKERS], answers={LOG: "step 1\n"})
    assert looked(server, tmp_path, log=not is_over)["log"] == "step 1\n"


@pytest.mark.parametrize(
    "refusal",
    [
        (500, 'Get "https://10.0.0.5:10250/containerLogs/default/t2": dial tcp: connect: no route to host'),
        (400, 'container "launcher" in pod "t2-launcher-j5h2j" is waiting to start: ContainerCreating'),
    ],
)
def test_job_is_read_when_log_is_not(refusal: tuple[int, str], tmp_path: Path) -> None:
    """An account that may not read logs is still an error."""
    launcher = pod("launcher", node="k1", phase="Failed", state={"terminated": {"exitCode": 1}})
    failed = job(CREATED, ("Failed", "True", "BackoffLimitExceeded/"))
    result = looked(cluster(failed, [launcher], answers={LOG: refusal}), tmp_path)
    assert (result["job"]["state"], result["log"]) == ("died", "")
    assert result["job"]["why"] == "the launcher t2-launcher-j5h2j ended with exit code 1 (Error)"
    refused = looked(cluster(failed, [launcher], forbidden=(LOG,)), tmp_path)
    assert refused["failed"] and "check the permissions of this account" in refused["msg"]


def test_log_of_a_silent_launcher_is_empty(tmp_path: Path) -> None:
    launcher = pod("launcher", node="k1", phase="Succeeded", state={"terminated": {"exitCode": 0}})
    result = looked(cluster(job(CREATED, ("Succeeded", "True", "MPIJobSucceeded")), [launcher]), tmp_path)
    assert (result["job"]["state"], result["log"]) == ("finished", "")


def test_a_waiting_job_reports_the_reason(tmp_path: Path) -> None:
    server = cluster(job(CREATED), [unscheduled(0, "0/4 nodes are available: 4 Insufficient nvidia.com/gpu.")])
    reported = looked(server, tmp_path)["job"]
    assert (reported["state"], reported["why"]) == (
        "waiting",
        "pod t2-worker-0 fits on no node: 0/4 nodes are available: 4 Insufficient nvidia.com/gpu",
    )


def test_failed_job_reports_cause_from_events_or_log(tmp_path: Path) -> None:
    launcher = pod("launcher", node="k1", phase="Failed", state={"terminated": {"exitCode": 1, "reason": "Error"}})
    failed = job(CREATED, ("Failed", "True", "BackoffLimitExceeded/"))
    text = "[1,2]<stderr>:Traceback (most recent call last):\n[1,2]<stderr>:ValueError: odd\n"
    result = looked(cluster(failed, [launcher], answers={LOG: text}), tmp_path)
    assert result["job"]["why"] == "rank 2 on t2-worker-2 ended: ValueError: odd" and result["log"] == text
    marked = event("Pod", "t2-worker-0", "TaintManagerEviction", "Marking for deletion Pod default/t2-worker-0")
    result = looked(cluster(failed, [launcher], [marked], answers={LOG: text}), tmp_path)
    assert result["job"]["why"].startswith("pod t2-worker-0 was deleted because its node was silent")


def test_recognizes_a_different_job_with_the_same_name(tmp_path: Path) -> None:
    desired = manifests.mpijob(job_of({"name": NAME, "image": "other", "command": ["c"], "workers": 3}))
    reported = looked(cluster(job(CREATED), WORKERS), tmp_path, desired=desired)["job"]["differs"]
    assert reported == [
        f"mpiReplicaSpecs.{replica}.template.spec.containers[0].image" for replica in ("Launcher", "Worker")
    ]
    assert looked(cluster(job(CREATED), WORKERS), tmp_path, desired=job())["job"]["differs"] == []


def test_job_is_the_same_when_kueue_admitted_it(tmp_path: Path) -> None:
    """Kueue appends the tolerations of the flavor to the pod templates."""
    desired: Any = manifests.mpijob(
        job_of({"name": NAME, "image": "own", "command": ["c"], "workers": 3, "queue": "team-a"})
    )
    found = {**job(CREATED), "spec": json.loads(json.dumps(desired["spec"]))}
    for replica in found["spec"]["mpiReplicaSpecs"].values():
        replica["template"]["spec"]["nodeSelector"] = {"gpu": "a100"}
        replica["template"]["spec"]["tolerations"].append({"key": "nvidia.com/gpu", "operator": "Exists"})
    assert looked(cluster(found, WORKERS), tmp_path, desired=desired)["job"]["differs"] == []
    found["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["tolerations"][0]["tolerationSeconds"] = 10
    (path,) = looked(cluster(found, WORKERS), tmp_path, desired=desired)["job"]["differs"]
    assert path == "mpiReplicaSpecs.Worker.template.spec.tolerations[0].tolerationSeconds"


def test_a_missing_job_is_absent(tmp_path: Path) -> None:
    assert looked(cluster(None), tmp_path)["job"] == {"state": "absent", "workers": []}


def test_names_a_missing_operator(tmp_path: Path) -> None:
    server = cluster(None)
    del server.answers["/apis/kubeflow.org/v2beta1"]
    why = looked(server, tmp_path)["job"]["why"]
    assert why.startswith("this Kubernetes does not support MPIJobs of that version: install the MPI Operator")


def test_names_a_missing_namespace(tmp_path: Path) -> None:
    reported = looked(cluster(None), tmp_path, namespace="nowhere")["job"]
    assert reported["why"] == "there is no namespace nowhere: create it, or specify another one"


def test_account_without_namespace_access_reports_an_absent_job(tmp_path: Path) -> None:
    class Forbidden(Cluster):
        def get(self, path: str) -> tuple[int, Any]:
            return (403, {"message": "no"}) if path == CORE else super().get(path)

    server = Forbidden({f"{CORE}/pods": [], f"{CORE}/events": [], "/api/v1/nodes": NODES})
    assert looked(server, tmp_path)["job"] == {"state": "absent", "workers": []}


def test_names_resources_that_an_account_may_not_read(tmp_path: Path) -> None:
    result = looked(cluster(job(CREATED), WORKERS, forbidden=("/api/v1/nodes",)), tmp_path)
    assert result["failed"] and 'User "dml" cannot read /api/v1/nodes' in result["msg"]
    assert "check the permissions of this account" in result["msg"]


def test_names_a_server_that_does_not_answer(tmp_path: Path) -> None:
    with served(cluster(None), tmp_path) as kubeconfig:
        pass
    result = call(mpijob_info, name=NAME, kubeconfig=kubeconfig)
    assert (
        result["failed"] and result["msg"].startswith("http://127.0.0.1:") and "could not read /apis/" in result["msg"]
    )


def test_names_a_missing_context(tmp_path: Path) -> None:
    result = looked(cluster(None), tmp_path, context="elsewhere")
    assert (
        result["failed"]
        and "elsewhere" in result["msg"]
        and "specify a kubeconfig, and a context that it contains" in result["msg"]
    )


def test_names_the_package_to_install_without_the_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "IMPORT_ERROR", "Traceback\nModuleNotFoundError: No module named 'kubernetes'")
    result = looked(cluster(None), tmp_path)
    assert result["failed"] and "No module named 'kubernetes'; install it: pip install kubernetes" in result["msg"]


def test_requests_only_resources_with_documented_rights(tmp_path: Path) -> None:
    server = cluster(job(CREATED, RUNNING), [LAUNCHER, *WORKERS])
    looked(server, tmp_path)
    assert server.requests == [JOB, LAUNCHERS, f"{CORE}/pods", f"{CORE}/events", "/api/v1/nodes"]


def test_a_known_report_does_not_block(tmp_path: Path) -> None:
    waits = pod("worker", 0, phase="Pending", state={"waiting": {"reason": "ContainerCreating"}})
    missing = 'MountVolume.SetUp failed for volume "work" : hostPath type check failed: /runs/one is not a directory'
    blocked = []
    for after in (5, 9):
        server = cluster(job(CREATED), [waits], [event("Pod", "t2-worker-0", "FailedMount", missing, after=after)])
        before = {"blocked_before": blocked[0]} if blocked else {}
        blocked += [looked(server, tmp_path, **before)["job"]["blocked"]]
        assert "blocked" not in looked(server, tmp_path, blocked_before=blocked[-1])["job"]
    assert blocked[1] - blocked[0] == 4


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


TRAIN = {"/apis/kubeflow.org/v2beta1/namespaces/ml/mpijobs/train": {"metadata": {"name": "train", "uid": "job-1"}}}


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
    result = found(tmp_path, {**TRAIN, "/api/v1/pods": pods}, name="train", namespace="ml")
    assert [one["rule"] for one in result["stops"]] == stops
    given = found(tmp_path, {**TRAIN, "/api/v1/pods": pods}, name="train", namespace="ml", toleration_seconds=5)
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
