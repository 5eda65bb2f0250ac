# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""playbooks/train.yml on Kubernetes: the same playbook, job, records, pace and result by another backend.

The API server of this test keeps what is applied, and starts the launcher's command, a real mpirun, as a process of
this machine; kubectl runs here the commands meant for a pod. The operator and real pods are those of the lab.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.kubernetes import Cluster, served
from tests.integration.training import Playbook

KUBECTL = """#!/bin/sh
# Runs here what stands behind the two dashes.
while [ "$1" != -- ]; do shift; done; shift
exec "$@"
"""
CORE = "/api/v1/namespaces/default"
JOB = "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs/dml-one"
POD = "dml-one-launcher-x"


class Operator:
    """Runs the launcher of the one job as a process, and reports it as the operator and the kubelets do."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster, self._folder = cluster, folder
        self._process: subprocess.Popen[str] | None = None
        cluster.operator = self.look

    def look(self, cluster: Cluster) -> None:
        """Take the job up as soon as it is there."""
        if JOB not in cluster.answers or self._process is not None:
            return
        replicas = cluster.answers[JOB]["spec"]["mpiReplicaSpecs"]
        terms = replicas["Worker"]["template"]["spec"]["affinity"]["nodeAffinity"]
        named = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        nodes = [one["matchFields"][0]["values"][0] for one in named]
        cluster.answers["/api/v1/nodes"] = [{"metadata": {"name": name}, "status": {}} for name in nodes]
        self._start(replicas["Launcher"]["template"]["spec"]["containers"][0], len(nodes))
        running = {"running": {"startedAt": "2026-11-22T07:12:03Z"}}
        workers = [_pod(f"dml-one-worker-{number}", name, "worker", running) for number, name in enumerate(nodes)]
        self._tell("Running", [_pod(POD, nodes[0], "launcher", running), *workers])

    def _start(self, launcher: dict[str, Any], workers: int) -> None:
        hosts = self._folder / "hostfile"
        hosts.write_text(f"localhost slots={workers}\n")
        given = {one["name"]: one["value"] for one in launcher.get("env", [])}
        environment = {**os.environ, **given, "OMPI_MCA_orte_default_hostfile": str(hosts)}
        self._process = subprocess.Popen(
            launcher["command"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        assert self._process
        output, _none = self._process.communicate()
        code = self._process.returncode
        ended = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}
        phase = "Failed" if code else "Succeeded"
        self._cluster.answers[f"{CORE}/pods/{POD}/log"] = output
        self._tell(phase, [{**_pod(POD, "any", "launcher", ended, phase)}])

    def _tell(self, condition: str, pods: list[dict[str, Any]]) -> None:
        told = [{"type": kind, "status": "True", "reason": f"MPIJob{kind}"} for kind in ("Created", condition)]
        self._cluster.answers[JOB]["status"] = {"conditions": told}
        self._cluster.answers[f"{CORE}/pods"] = pods

    def end(self) -> None:
        """End what still runs."""
        if self._process and self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, 15)
            self._process.wait()


def _pod(name: str, node: str, role: str, state: dict[str, Any], phase: str = "Running") -> dict[str, Any]:
    labels = {"training.kubeflow.org/job-name": "dml-one", "training.kubeflow.org/job-role": role}
    status = {"phase": phase, "containerStatuses": [{"restartCount": 0, "state": state}]}
    metadata = {"name": name, "uid": name, "labels": labels, "ownerReferences": [{"uid": f"uid-of-{JOB}"}]}
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": status}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Cluster, str]]:
    made = Cluster({f"{CORE}/pods": [], f"{CORE}/events": [], "/api/v1/nodes": []})
    operator = Operator(made, tmp_path)
    with served(made, tmp_path) as kubeconfig:
        yield made, kubeconfig
    operator.end()


@pytest.mark.slow
def test_the_same_playbook_trains_on_kubernetes(cluster: tuple[Cluster, str], tmp_path: Path) -> None:
    made, kubeconfig = cluster
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(KUBECTL)
    kubectl.chmod(0o755)
    playbook = Playbook(tmp_path)
    nodes = [playbook.nodes.here, "n2"]
    kubernetes = {"image": "example.com/train:1", "kubeconfig": kubeconfig, "kubectl": str(kubectl), "interface": "lo"}
    backend = {"training_backend": "kubernetes", "training_kubernetes": kubernetes, "training_name": "one"}
    more = {**backend, "training_nodes": nodes, "training_prove": False, "training_steps": 60}
    ran = playbook.run(60, 1.5, **more)
    assert ran.returncode == 0, ran.stdout
    (records,) = (tmp_path / "results" / "one").glob("watch-*/records.jsonl")
    told = {(one["rank"], one["step"]) for one in map(json.loads, records.read_text().splitlines())}
    assert told == {(rank, step) for rank in (0, 1) for step in range(1, 61)}
    result = json.loads((tmp_path / "results" / "one.json").read_text())
    assert (result["job"]["state"], result["steps"], result["gpus"]) == ("finished", 60, 2)
    assert result["images_per_sec"] > 0 and made.written == [JOB]
    # Someone deletes the job; its records stay on the nodes.
    made.answers.pop(JOB)
    made.answers[f"{CORE}/pods"] = []
    again = playbook.run(60, 1.5, **more)
    assert again.returncode != 0
    assert "from a job that Kubernetes no longer has. A new job would append to them." in " ".join(again.stdout.split())
    assert made.written == [JOB]
