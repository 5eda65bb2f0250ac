"""playbooks/vmotion_test.yml with a job on Kubernetes: its ranks run in pods, on nodes that are the workers.

mpirun trains on this machine, each rank under the host name of a pod; an API server of the tests reports these pods.
Real pods are those of the lab.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.kubernetes import Cluster, served
from tests.integration.ansible import AnsibleFor, Outcome, Start
from tests.integration.mpi_operator import RUNNING
from tests.integration.test_vmotion import TAGGED
from tests.integration.test_vmotion_test import PROGRAM, WORKERS, Trial
from tests.integration.training import Nodes
from tests.integration.workers import desired

pytestmark = pytest.mark.slow
PODS = [f"train-worker-{number}" for number in range(4)]
# The scheduler places pods as it likes: rank 0 is not on the first worker.
PLACES = dict(zip(PODS, ["worker03", "worker01", "worker04", "worker02"]))
CORE = "/api/v1/namespaces/default"
JOB = "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs/train"


def pod(name: str, role: str, seconds: int) -> dict[str, Any]:
    """A pod of the job that runs, and that tolerates a silent node for so long."""
    labels = {"training.kubeflow.org/job-name": "train", "training.kubeflow.org/job-role": role}
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    taints = [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds} for key in keys]
    running = {"restartCount": 0, "state": RUNNING}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-of-{name}",
            "labels": labels,
            "ownerReferences": [{"uid": "1"}],
        },
        "spec": {"nodeName": PLACES.get(name, "worker01"), "tolerations": taints},
        "status": {"phase": "Running", "containerStatuses": [running]},
    }


def findings(seconds: int) -> dict[str, Any]:
    """Return the objects of a job that runs on four nodes, as an API server reports them."""
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"bootID": "boot"}}
    pods = [pod("train-launcher-x", "launcher", seconds), *(pod(name, "worker", seconds) for name in PODS)]
    conditions = [{"type": kind, "status": "True"} for kind in ("Created", "Running")]
    job = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "train", "namespace": "default", "uid": "1", "resourceVersion": "1"},
        "spec": {"slotsPerWorker": 1, "mpiReplicaSpecs": {"Worker": {"replicas": 4}}},
        "status": {"conditions": conditions},
    }
    nodes = [{"metadata": {"name": f"{name}.k8s"}, "status": ready} for name in WORKERS]
    for one in pods:
        one["spec"]["nodeName"] += ".k8s"
    return {JOB: job, f"{CORE}/pods": pods, "/api/v1/pods": pods, f"{CORE}/events": [], "/api/v1/nodes": nodes}


class OnKubernetes(Trial):
    """The same trial of a job whose ranks run in pods; no one names its namespace."""

    cluster: Cluster
    kubeconfig: str

    def train(self, *more: Any) -> None:
        program = [sys.executable, "-u", str(PROGRAM), *map(str, more)]
        started = self.nodes.start(command=program, hosts=[{"name": name} for name in PODS])
        assert started.rc == 0, started.out
        self.nodes.training()

    def run(self, *arguments: str, **variables: Any) -> Outcome:
        names = {f"{name}.k8s": name for name in WORKERS}
        job = {"name": "train", "kubeconfig": self.kubeconfig, "names": names}
        ends = {"vmotion_test_ends_job": True, "vmotion_test_finish_timeout": 1}
        # How long a machine that has much else to do is silent is not what is asked here.
        limits = {"max_gap_s": 120, "resume_deadline_s": 120}
        more = {**ends, "vmotion_test_limits": limits, **variables}
        return super().run(*arguments, vmotion_test_kubernetes=job, **more)

    def values(self, key: str) -> list[dict[str, Any]]:
        """The values of the journal whose keys begin so."""
        entries = map(json.loads, self.kept("journal.jsonl").splitlines())
        return [one["value"] for one in entries if one["key"].startswith(key)]


@pytest.fixture
def trial(start: Start, ansible_for: AnsibleFor, tmp_path: Path, tolerates: int) -> Iterator[OnKubernetes]:
    vcenter = start(text=TAGGED)
    ansible = ansible_for(vcenter)
    done = ansible.module("worker_vm", **desired())
    assert done.rc == 0, done.out
    vcenter.clear()
    made = OnKubernetes(vcenter, ansible, Nodes(ansible, tmp_path), tmp_path)
    made.cluster = Cluster(findings(tolerates))
    with served(made.cluster, tmp_path) as made.kubeconfig:
        yield made
    made.nodes.stop()


@pytest.mark.parametrize("tolerates", [300])
def test_job_stays_continuous_while_its_nodes_move(trial: OnKubernetes) -> None:
    trial.train()
    done = trial.run()
    assert done.rc == 0, done.out
    assert "continuous, moved: all" in done.out and sorted(trial.moved()) == WORKERS
    verdict = json.loads(trial.kept("verdict.json"))
    assert (verdict["breaches"], verdict["unproven"]) == ([], [])
    ranks = {worker: [PODS.index(name)] for name, worker in PLACES.items()}
    assert {one["worker"]: one["ranks"] for one in verdict["moves"]} == ranks
    (warm,) = trial.values("warm")
    assert warm["hosts"] == ranks
    message = " ".join(done.out.split())
    assert "rank 0 in pod train-worker-0 on worker03" in message and "with rank 1 in pod train-worker-1" in message
    # Each move was asked about, and the job of the test is gone where it was read.
    assert len(trial.values("request")) == len(WORKERS)
    assert JOB not in trial.cluster.answers and trial.cluster.written == [JOB]


@pytest.mark.parametrize("tolerates", [10])
def test_short_pod_toleration_prevents_the_first_move(trial: OnKubernetes) -> None:
    trial.train()
    done = trial.run()
    assert done.rc == 2 and trial.moved() == [], done.out
    assert "the job's pods tolerate a silent node for 10 s (tolerationSeconds), and a stun may" in " ".join(
        done.out.split()
    )
    (found,) = trial.values("request")
    assert [one["rule"] for one in found["findings"] if one["severity"] == "stop"] == ["toleration"]
