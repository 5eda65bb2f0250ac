"""The role mpijob, against an API server that keeps what is applied: check, apply, again, another job, delete.

The operator here only says that a job succeeded; jobs that run are those of the lab's Kubernetes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.kubernetes import Cluster, served
from tests.integration.ansible import Ansible

SECRET = "a-very-secret-token"
CORE = "/api/v1/namespaces/ml"
JOB = "/apis/kubeflow.org/v2beta1/namespaces/ml/mpijobs/train"
OBJECTS = [f"{CORE}/secrets/train-environment", f"{CORE}/configmaps/train-library", JOB]
PLAYBOOK = """
- hosts: localhost
  gather_facts: false
  tasks:
    - name: Run the job
      ansible.builtin.include_role: {name: dml.vsphere.mpijob}
      when: step == 'run'
    - name: Delete the job
      ansible.builtin.include_role: {name: dml.vsphere.mpijob, tasks_from: delete}
      when: step == 'delete'
"""


def succeed(cluster: Cluster) -> None:
    """Return the objects of a job that ran, as operator and kubelet report them."""
    if JOB not in cluster.answers:
        return
    done = [{"type": kind, "status": "True", "reason": f"MPIJob{kind}"} for kind in ("Created", "Succeeded")]
    cluster.answers[JOB]["status"] = {"conditions": done}
    labels = {"training.kubeflow.org/job-name": "train", "training.kubeflow.org/job-role": "launcher"}
    ended = {"terminated": {"exitCode": 0, "reason": "Completed"}}
    status = {"phase": "Succeeded", "containerStatuses": [{"restartCount": 0, "state": ended}]}
    owner = {"kind": "MPIJob", "name": "train", "uid": cluster.answers[JOB]["metadata"]["uid"]}
    metadata = {"name": "train-launcher-x", "uid": "1", "labels": labels, "ownerReferences": [owner]}
    pod = {"metadata": metadata, "spec": {}, "status": status}
    cluster.answers[f"{CORE}/pods"] = [pod]
    cluster.answers[f"{CORE}/pods/train-launcher-x/log"] = "step 100\n"


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster({f"{CORE}/pods": [], f"{CORE}/events": [], "/api/v1/nodes": []})
    made.operator = succeed
    return made


class Role:
    """The role over the cluster, with the variables of a small job."""

    def __init__(self, ansible: Ansible, folder: Path) -> None:
        self._ansible, self._book = ansible, folder / "play.yml"
        self._book.write_text(PLAYBOOK)
        self.variables: dict[str, Any] = {
            "mpijob_name": "train",
            "mpijob_namespace": "ml",
            "mpijob_image": "example.com/train:1",
            "mpijob_command": ["python", "train.py"],
            "mpijob_workers": 2,
            "mpijob_results": str(folder / "results"),
        }

    def run(self, *arguments: str, step: str = "run", **changes: Any) -> str:
        given = json.dumps({**self.variables, **changes, "step": step})
        ran = self._ansible.playbook(self._book, "-i", "localhost,", "-c", "local", "-e", given, *arguments)
        assert SECRET not in ran.out
        return " ".join(ran.out.split())


@pytest.fixture
def role(cluster: Cluster, tmp_path: Path) -> Iterator[Role]:
    with served(cluster, tmp_path) as kubeconfig:
        yield Role(Ansible({"K8S_AUTH_KUBECONFIG": kubeconfig}, tmp_path), tmp_path)


def test_shows_a_job_and_runs_it_to_completion(cluster: Cluster, role: Role, tmp_path: Path) -> None:
    shown = role.run("--check", "--diff")
    assert "failed=0" in shown and "+ kind: MPIJob" in shown and cluster.written == []
    assert "example.com/train:1 has no digest, so the registry can replace it" in shown
    assert "failed=0" in role.run() and cluster.written == [JOB]
    assert (tmp_path / "results" / "train.log").read_text() == "step 100\n"


@pytest.mark.slow
def test_recognizes_distinguishes_and_deletes_its_mpijob(cluster: Cluster, role: Role) -> None:
    role.variables |= {"mpijob_secrets": {"TOKEN": SECRET}}
    role.variables |= {"mpijob_job": {"gpus": 1, "library": "/lib", "files": {"a.py": "print()"}}}
    assert "failed=0" in role.run("--check", "--diff", "-vvv") and cluster.written == []
    assert "failed=0" in role.run("-vvv") and cluster.written == OBJECTS
    again = role.run()
    assert "failed=0" in again and "changed=0" in again and cluster.written == OBJECTS
    other = role.run(mpijob_workers=3)
    assert "failed=1" in other and cluster.written == OBJECTS
    assert 'The namespace ml has another training job train in state "finished", which differs in' in other
    assert "mpiReplicaSpecs.Worker.replicas" in other
    assert "failed=0" in role.run(step="delete") and cluster.written[3:] == OBJECTS[::-1]


@pytest.mark.slow
def test_applies_recognizes_and_deletes_a_trainjob_with_runtime(cluster: Cluster, role: Role) -> None:
    place = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/ml"
    job, runtime = f"{place}/trainjobs/train", f"{place}/trainingruntimes/train"

    def complete(found: Cluster) -> None:
        if job in found.answers:
            found.answers[job]["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}

    cluster.operator = complete
    role.variables |= {"mpijob_api": "trainjob"}
    assert "failed=0" in role.run("--check", "--diff") and cluster.written == []
    assert "failed=0" in role.run() and cluster.written == [runtime, job]
    again = role.run()
    assert "failed=0" in again and "changed=0" in again and cluster.written == [runtime, job]
    other = role.run(mpijob_image="example.com/train:2")
    assert "failed=1" in other and "differs in the pod templates of its runtime" in other
    assert "failed=0" in role.run(step="delete") and cluster.written[2:] == [job, runtime]


@pytest.mark.slow
def test_dead_job_fails_the_role_with_its_cause(cluster: Cluster, role: Role, tmp_path: Path) -> None:
    def die(found: Cluster) -> None:
        succeed(found)
        failed = [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded/"}]
        found.answers[JOB]["status"] = {"conditions": failed}
        found.answers[f"{CORE}/pods/train-launcher-x/log"] = "[1,1]<stderr>:ValueError: odd\n"

    cluster.operator = die
    ran = role.run()
    assert "failed=1" in ran and "The training job train died: rank 1 on train-worker-1 ended: ValueError: odd." in ran
    assert "ValueError: odd" in (tmp_path / "results" / "train.log").read_text()


@pytest.mark.slow
def test_refuses_kubernetes_without_operator_before_any_write(cluster: Cluster, role: Role) -> None:
    del cluster.answers["/apis/kubeflow.org/v2beta1"]
    output = role.run(mpijob_secrets={"TOKEN": SECRET})
    assert (
        "cannot be started: this Kubernetes does not support MPIJobs of that version: install the MPI Operator"
        in output
    )
    assert "failed=1" in output and cluster.written == []


def lacking(cluster: Cluster, reported: str) -> None:
    """Return the objects of a job one of whose nodes lacks a folder, as operator, scheduler and kubelet report them."""
    if JOB not in cluster.answers:
        return
    cluster.answers[JOB]["status"] = {"conditions": [{"type": "Created", "status": "True", "reason": "MPIJobCreated"}]}
    labels = {"training.kubeflow.org/job-name": "train", "training.kubeflow.org/job-role": "worker"}
    owner = {"kind": "MPIJob", "name": "train", "uid": cluster.answers[JOB]["metadata"]["uid"]}
    metadata = {"name": "train-worker-0", "uid": "7", "labels": labels, "ownerReferences": [owner]}
    waiting = [{"name": "worker", "restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}}}]
    status = {"phase": "Pending", "containerStatuses": waiting}
    cluster.answers[f"{CORE}/pods"] = [{"metadata": metadata, "spec": {"nodeName": "k3"}, "status": status}]
    message = 'MountVolume.SetUp failed for volume "work" : hostPath type check failed: /runs/one is not a directory'
    event = {
        "involvedObject": {"kind": "Pod", "name": "train-worker-0", "namespace": "ml", "uid": "7"},
        "reason": "FailedMount",
        "message": message,
        "source": {"component": "kubelet", "host": "k3"},
        "firstTimestamp": "2099-01-01T00:00:00Z",
        "lastTimestamp": reported,
        "count": 3,
        "type": "Warning",
    }
    cluster.answers[f"{CORE}/events"] = [event]


@pytest.mark.slow
def test_names_a_node_without_folder_ignoring_old_reports(cluster: Cluster, role: Role) -> None:
    cluster.operator = lambda found: lacking(found, "2099-01-01T00:00:07Z")
    output = role.run(mpijob_start_timeout=300)
    assert "failed=1" in output
    assert (
        "The training job train did not start: pod train-worker-0 does not start, because node k3 has no folder "
        "/runs/one: Ansible must reach the node itself, by ssh, to copy the folder there. The job still exists"
        in output
    )
    output = role.run(mpijob_start_timeout=4)
    assert "did not start within 4 s: pod train-worker-0 does not start" in output, "it waited for another report"
    succeed(cluster)
    assert "failed=0" in role.run()
