"""The module mpijob_info, over an API server of Kubernetes that answers from given objects."""

from __future__ import annotations

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
