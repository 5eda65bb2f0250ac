"""playbooks/hosts.yml with window_by=restart around an MPIJob and a TrainJob, whose ranks run on all workers.

The API server of this test starts the command of the launcher, a real mpirun, as a process of this machine, and ends it
with its job. Real pods are those of the lab.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.kubernetes import Cluster, served
from tests.integration.ansible import Start
from tests.integration.killing import wait_for
from tests.integration.mpi_operator import CORE, JOBS, KUBECTL, Operator
from tests.integration.releases import NEWEST
from tests.integration.test_vmotion_test import LONG, WORKERS
from tests.integration.test_window_restart import FULL, HOSTS, NAME, ONCE, PROGRAM, FullCluster, full_cluster
from tests.integration.trainer import Trainer
from tests.integration.training import FILES, one_card

pytestmark = [pytest.mark.slow, pytest.mark.release(NEWEST)]
KINDS: dict[str, tuple[type[Operator], str]] = {"v2beta1": (Operator, "mpijobs"), "trainjob": (Trainer, "trainjobs")}
NEWEST_SAVED = """
import glob, os
os.environ["DML_RESUME"] = max(glob.glob("outputs/step*.pt"), key=os.path.getmtime, default="")
"""


@pytest.fixture
def kubernetes() -> Cluster:
    return Cluster({f"{CORE}/pods": [], f"{CORE}/events": [], "/api/v1/nodes": []})


@pytest.fixture
def full(start: Start, tmp_path: Path, kubernetes: Cluster, request: pytest.FixtureRequest) -> Iterator[FullCluster]:
    api, kubectl = str(request.param), tmp_path / "kubectl"
    kubectl.write_text(KUBECTL)
    kubectl.chmod(0o755)
    operator = KINDS[api][0](kubernetes, tmp_path)
    with full_cluster(start(text=FULL), tmp_path) as made, served(kubernetes, tmp_path) as kubeconfig:
        place = {
            "kubeconfig": kubeconfig,
            "kubectl": str(kubectl),
            "interface": "lo",
            "node": "{{ inventory_hostname }}",
        }
        options = {"image": "example.com/train:1", "job": {"api": api}, **place}
        made.training |= {"training_backend": "kubernetes", "training_kubernetes": options, "training_prove": False}
        yield made
    operator.close()


def foreign_job(full: FullCluster) -> dict[str, Any]:
    """Return an MPIJob whose program takes the newest checkpoint in its folder by itself."""
    (full.folder / "train.py").write_text(NEWEST_SAVED + PROGRAM)
    (full.folder / "outputs").mkdir()
    words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(len(WORKERS)), *one_card()]
    variables = {"DML_RECORDS": str(full.folder / "records"), "PYTHONPATH": str(FILES), "MASTER_ADDR": "127.0.0.1"}
    container = {
        "name": "launcher",
        "command": [*words, sys.executable, "train.py", "saves", "5000"],
        "env": [{"name": name, "value": value} for name, value in variables.items()],
    }
    terms = [{"matchFields": [{"key": "metadata.name", "values": [worker]}]} for worker in WORKERS]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    specs = {
        "Launcher": {"containers": [container]},
        "Worker": {"containers": [{"name": "worker"}], "affinity": affinity},
    }
    replicas = {role: {"replicas": 4, "template": {"spec": spec}} for role, spec in specs.items()}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "theirs"},
        "spec": {"slotsPerWorker": 1, "mpiReplicaSpecs": replicas},
    }


@pytest.mark.hosts_out(2)
@pytest.mark.parametrize("full", ["v2beta1"], indirect=True)
def test_job_of_another_tool_is_suspended_and_resumed(full: FullCluster, kubernetes: Cluster) -> None:
    kubernetes.apply(f"{JOBS}/theirs", foreign_job(full), dry=False)
    wait_for(lambda: bool(list((full.folder / "outputs").glob("step*.pt"))), LONG)
    place = {key: full.training["training_kubernetes"][key] for key in ("kubeconfig", "kubectl")}
    named = {"run_dir": str(full.folder / "records"), "kubernetes": {"name": "theirs", **place}}
    lacking = full.change("--check", window_by="restart", maintenance_job=named)
    assert lacking.rc != 0 and "it lacks launcher, checkpoints" in " ".join(lacking.out.split()), lacking.out
    job = {**named, "launcher": WORKERS[0], "checkpoints": str(full.folder / "outputs")}

    done = full.change(window_by="restart", maintenance_job=job)

    assert done.rc == 0, done.out
    assert full.booted() == dict.fromkeys(HOSTS, 1) and full.powered() == ONCE
    restart, object_now = full.kept("restart.json"), kubernetes.answers[f"{JOBS}/theirs"]
    assert (restart["started"]["run"], restart["verdict"]["verdict"]) == ("theirs", "inconclusive"), restart
    assert object_now["spec"]["runPolicy"] == {"suspend": False} and not object_now["metadata"].get("annotations")
    steps = [json.loads(line)["step"] for line in (full.folder / "records" / "rank0.jsonl").read_text().splitlines()]
    again = next(index for index, step in enumerate(steps) if index and step <= steps[index - 1])
    assert steps[again] == restart["stop"]["checkpoint"]["step"] + 1, "it goes on after the checkpoint"


@pytest.mark.hosts_out(2)
@pytest.mark.parametrize("full", sorted(KINDS), indirect=True)
def test_job_in_pods_restarts_around_its_hosts(full: FullCluster, kubernetes: Cluster) -> None:
    full.train()

    done = full.change(window_by="restart")

    assert done.rc == 0, done.out
    assert f"{NAME}-2: resumed" in " ".join(done.out.split()), done.out
    assert full.booted() == dict.fromkeys(HOSTS, 1) and full.powered() == ONCE
    restart = full.kept("restart.json")
    assert restart["verdict"]["verdict"] == "resumed" and restart["stop"]["stopped"]["state"] == "stopped", restart
    kind = KINDS[full.training["training_kubernetes"]["job"]["api"]][1]
    jobs = [path for path in kubernetes.answers if f"/{kind}/" in path]
    assert len(jobs) == 1 and jobs[0].endswith("-2"), jobs
    nodes = [path for path in kubernetes.written if path.startswith("/api/v1/nodes/")]
    assert len(nodes) == 8, "each node is cordoned and uncordoned"
    assert not any(one.get("spec", {}).get("unschedulable") for one in kubernetes.answers["/api/v1/nodes"])
