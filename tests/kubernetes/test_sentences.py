"""The sentences of the roles on a job that does not start or go on, on a real Kubernetes with the real operator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lab.kubernetes.cluster import Cluster
from lab.kubernetes.images import OPENMPI
from plugins.module_utils.kubernetes.state import changes
from plugins.module_utils.vsphere import tasks
from tests.kubernetes.mpijob import Jobs, mpijob
from tests.lab.places import Place
from tests.lab.trial import WORKERS

OPERATOR = ("--namespace", "mpi-operator")
TIGHT = "tight"
LONG = ["sleep", "600"]
# The right that the role mpi_operator adds.
RIGHTS = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "mpi-operator-resumes"},
    "rules": [{"apiGroups": ["batch"], "resources": ["jobs/status"], "verbs": ["update", "patch"]}],
}
BOUND = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "mpi-operator-resumes"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "mpi-operator-resumes"},
    "subjects": [{"kind": "ServiceAccount", "name": "mpi-operator", "namespace": "mpi-operator"}],
}
PLAYBOOK = """
- hosts: localhost
  gather_facts: false
  roles:
    - role: dml.vsphere.mpijob
      vars: {mpijob_name: lost, mpijob_image: IMAGE, mpijob_command: [hostname], mpijob_namespace: nowhere}
"""


def look(place: Place, name: str, namespace: str = "default") -> dict[str, Any]:
    """The job as the module reports it."""
    seen = place.ansible.module("mpijob_info", name=name, namespace=namespace)
    assert seen.rc == 0, seen.out
    return dict(seen.result["job"])


def job_result(place: Place, jobs: Jobs, name: str, words: str, namespace: str = "default") -> dict[str, Any]:
    """Wait until the module says something of a job; the job."""
    found: list[dict[str, Any]] = [{}]

    def is_reported() -> bool:
        found[0] = look(place, name, namespace)
        return words in str(found[0].get("why"))

    jobs.until(is_reported, f"the job {name} reports: {words}")
    return found[0]


def running(place: Place, jobs: Jobs, name: str) -> dict[str, Any]:
    """Wait until a job runs; the job."""
    jobs.until(lambda: look(place, name)["state"] == "running", f"{name} runs")
    return look(place, name)


@pytest.fixture
def cluster(members: Place) -> Cluster:
    return members.lab.kubernetes


@pytest.fixture
def tight(cluster: Cluster) -> Iterator[str]:
    """A namespace in which one pod may be."""
    cluster.kubectl("create", "namespace", TIGHT)
    cluster.kubectl("create", "quota", "few", "--hard=pods=1", "--namespace", TIGHT)
    yield TIGHT
    cluster.kubectl("delete", "namespace", TIGHT, "--wait")


def test_names_a_missing_namespace(members: Place) -> None:
    book = members.ansible.folder / "lost.yml"
    book.write_text(PLAYBOOK.replace("IMAGE", OPENMPI))
    done = members.ansible.playbook(book, "-i", "localhost,", "-c", "local")
    assert done.rc != 0
    message = " ".join(done.out.split())
    assert "lost cannot be started: there is no namespace nowhere: create it, or specify another one." in message


def test_a_quota_that_is_too_small(members: Place, cluster: Cluster, jobs: Jobs, tight: str) -> None:
    job = mpijob("many", 3, ["hostname"])
    job["metadata"]["namespace"] = tight
    jobs.begin(job)
    found = job_result(members, jobs, "many", "a pod cannot be created: exceeded quota: few", tight)
    assert found["state"] == "waiting" and "limited: pods=1" in found["why"]
    cluster.kubectl("delete", "mpijob", "many", "--namespace", tight, "--wait")


def test_says_that_no_operator_takes_the_job(members: Place, cluster: Cluster, jobs: Jobs) -> None:
    cluster.kubectl(*OPERATOR, "scale", "deployment/mpi-operator", "--replicas=0")
    cluster.kubectl(*OPERATOR, "wait", "--for=delete", "pod", "--selector=app=mpi-operator", "--timeout=120s")
    try:
        name = jobs.begin(mpijob("patient", 2, ["hostname"]))
        found = job_result(members, jobs, name, "no operator has taken it up for")
        assert found["state"] == "waiting" and "check that the MPI Operator runs" in found["why"]
    finally:
        cluster.kubectl(*OPERATOR, "scale", "deployment/mpi-operator", "--replicas=1")
    assert sorted(jobs.ended(name).split()) == ["patient-worker-0", "patient-worker-1"]


def test_restarted_operator_leaves_the_job_alone(members: Place, cluster: Cluster, jobs: Jobs) -> None:
    name = jobs.begin(mpijob("steady", 2, LONG))
    before = running(members, jobs, name)
    cluster.kubectl(*OPERATOR, "delete", "pod", "--selector=app=mpi-operator", "--wait")
    cluster.kubectl(*OPERATOR, "rollout", "status", "deployment/mpi-operator", "--timeout=120s")
    after = look(members, name)
    assert (after["state"], after["launcher"]) == ("running", before["launcher"])
    assert list(changes(before["pods"], after["pods"])) == []
    jobs.remove(name)


def test_a_pod_that_is_evicted_is_another_one(members: Place, cluster: Cluster, jobs: Jobs) -> None:
    name = jobs.begin(mpijob("driven", 2, LONG))
    before = running(members, jobs, name)
    pod = f"{name}-worker-1"
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "default"}}
    path = f"/api/v1/namespaces/default/pods/{pod}/eviction"
    cluster.kubectl("create", "--raw", path, "--filename", "-", text=json.dumps(eviction))

    def differs() -> list[str]:
        return [reported for reported in changes(before["pods"], look(members, name)["pods"]) if pod in reported]

    jobs.until(differs, f"{pod} is not the same any more")
    assert any(words in differs()[0] for words in ("was recreated", "is gone", "marked for deletion")), differs()
    jobs.remove(name)


def test_suspended_job_loses_its_pods_and_resumes(members: Place, cluster: Cluster, jobs: Jobs) -> None:
    cluster.kubectl(
        "apply", "--filename", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": [RIGHTS, BOUND]})
    )
    name = jobs.begin(mpijob("sleeper", 2, LONG))
    before = running(members, jobs, name)
    for is_suspended in (True, False):
        patch = json.dumps({"spec": {"runPolicy": {"suspend": is_suspended}}})
        cluster.kubectl("patch", "mpijob", name, "--type=merge", "--patch", patch)
        if is_suspended:
            found = job_result(members, jobs, name, "it is suspended")
            assert found["state"] == "stopped"
    after = running(members, jobs, name)
    assert len(list(changes(before["pods"], after["pods"]))) >= 2, "a job that was suspended has other pods"
    jobs.remove(name)


def test_reports_a_powered_off_node_as_not_ready(members: Place, cluster: Cluster, jobs: Jobs) -> None:
    """The job's end is mpirun's business: where no one closes its connections it learns of it late."""
    name = jobs.begin(mpijob("dark", 2, LONG))
    node = running(members, jobs, name)["pods"][f"{name}-worker-1"]["node"]
    members.lab.hypervisor.ask("POST", f"/nodes/{node}/harm", {"kind": "kill"})
    try:
        message = f"Kubernetes reported node {node} as not ready"
        jobs.until(lambda: any(one.startswith(message) for one in look(members, name)["silences"]), message)
    finally:
        with members.machine(WORKERS.index(node) + 1) as machine:
            for begin in (machine.ref.PowerOffVM_Task, machine.ref.PowerOnVM_Task):
                tasks.wait(machine.session, tasks.Started(begin(), "a person", "work"), 120)
        cluster.wait_for(WORKERS)
        jobs.remove(name)
