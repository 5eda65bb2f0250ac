"""playbooks/hosts.yml with window_by=restart around pods: on a full cluster, members shut down, and the job goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from lab.kubernetes import kubeflow
from lab.running import KUBERNETES
from lab.simulator import ROOT
from plugins.module_utils.kubernetes.suspension import SuspendableJob
from plugins.module_utils.training.runs.controller_site import TrainingCalls
from plugins.module_utils.training.runs.restartable import NamedJob, SeenCheckpoint
from tests.integration.ansible import Outcome
from tests.integration.rolling import times
from tests.integration.test_vmotion import TAGGED
from tests.kubernetes.conftest import READY_SECONDS
from tests.kubernetes.mpijob import Jobs, mpijob
from tests.kubernetes.test_vmotion import inventory, variables
from tests.lab.conftest import laboratory
from tests.lab.moves.test_window_restart import HOSTS, verdict_of
from tests.lab.places import Place, desired
from tests.lab.trial import WORKERS

WINDOW_SECONDS = 3600
KUEUE, QUEUE = "kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/queue-name"


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """As many members of Kubernetes as hosts, with MPI's operator, Trainer, JobSet and Kueue."""
    four = TAGGED.replace("count: 5", "count: 4")
    with laboratory(tmp_path_factory.mktemp("restart"), four, "restartpods", kubernetes=True) as made:
        built = made.ansible.module("worker_vm", **desired(made))
        assert built.rc == 0, built.out
        lab, cluster = made.lab, made.lab.kubernetes
        cluster.wait_for(WORKERS, READY_SECONDS)
        parts = kubeflow.ensure(lab.podman, KUBERNETES, cluster.built.programs / "kubectl", print)
        kubeflow.install(cluster, lab.podman, lab.podman.containers(f"dml-lab={lab.lab}"), parts)
        yield made


def play(place: Place, folder: Path, playbook: str, api: str, **more: Any) -> Outcome:
    """Run a playbook for the run of the folder, which saves checkpoints."""
    given = variables(place, folder)
    given["training_kubernetes"]["job"].update(api=api)
    own = {"training_results": str(folder / "results"), "esxi_host_evidence_dir": str(folder / "evidence")}
    own["training_python"] = "/usr/bin/python3"
    words = ("-i", str(inventory(place, folder)), "-e", json.dumps({**given, **own, **more}))
    return place.ansible.playbook(f"playbooks/{playbook}.yml", *words, timeout=WINDOW_SECONDS)


@pytest.mark.parametrize("api", ["v2beta1", "trainjob"])
def test_job_in_pods_resumes_after_members_boot(full: Place, tmp_path: Path, api: str) -> None:
    program = {
        "training_folder": str(ROOT / "lab/training"),
        "training_command": "python restartable.py --resume {resume}",
        "training_steps_by": "script",
    }
    started = play(full, tmp_path, "train", api, **program, training_follow=False)
    assert started.rc == 0, started.out[-6000:]
    full.lab.control.clear()
    option = {"name": "nmlx5_core", "options": {"max_vfs": len(api)}}
    window = {"under_training": True, "window_by": "restart", "max_out_of_service": 2, "training_command": []}

    done = play(full, tmp_path, "hosts", api, **window, esxi_host_profile={"kernel_modules": [option]})

    assert done.rc == 0, done.out[-6000:]
    assert f"{tmp_path.name}-2: resumed" in " ".join(done.out.split()) and verdict_of(tmp_path) == "resumed", done.out
    writes = full.lab.control.writes()
    assert dict(times(writes, "RebootHost_Task")) == dict.fromkeys(HOSTS, 1)
    assert [write["method"] for write in writes].count("ShutdownGuest") == len(WORKERS)
    nodes = full.lab.kubernetes.get("nodes")["items"]
    assert not [node for node in nodes if node["spec"].get("unschedulable")], "a node stays cordoned"
    stopped = play(full, tmp_path, "stop", api, training_name=f"{tmp_path.name}-2", training_command=[])
    assert stopped.rc == 0, stopped.out[-6000:]


def queue() -> list[dict[str, Any]]:
    """Return a queue of Kueue with two processors."""
    flavor = {"name": "lab", "resources": [{"name": "cpu", "nominalQuota": "2"}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [flavor]}]
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "ResourceFlavor": ("lab", {}),
        "ClusterQueue": ("two", {"namespaceSelector": {}, "resourceGroups": groups}),
        "LocalQueue": ("research", {"clusterQueue": "two"}),
    }
    return [
        {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}
        for kind, (name, spec) in kinds.items()
    ]


def in_queue(name: str) -> dict[str, Any]:
    """Return an MPIJob of another tool in the queue, whose worker needs both processors."""
    job = mpijob(name, 1, ["sleep", "infinity"])
    job["metadata"]["labels"] = {QUEUE: "research"}
    (container,) = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": "2"}}
    return job


class Controller:
    """The modules that a window runs, with the ansible command."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def here(self, module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Run a module."""
        collection, _dot, name = module.rpartition(".")
        done = self.place.ansible.adhoc(name, collection=collection or "dml.vsphere", **options)
        return {**done.result, "failed": done.rc != 0}

    def now(self) -> float:
        """Return the time."""
        return time.time()

    def pause(self) -> None:
        """Pause between two checks."""
        time.sleep(1)

    def must_be_attended(self) -> None:
        """Go on: the test waits for the end."""


def test_suspended_job_keeps_its_place_in_kueue(full: Place) -> None:
    cluster, jobs = full.lab.kubernetes, Jobs(full.lab.kubernetes)
    for each in queue():
        jobs.begin(each)
    jobs.begin(in_queue("first"))
    jobs.until(lambda: jobs.conditions("first").get("Running") == "True", "the job runs")
    where = {"kubectl": full.lab.environment["LAB_KUBECTL"], "kubeconfig": full.lab.environment["KUBECONFIG"]}
    named = {"kubernetes": {"name": "first", "namespace": "default", **where}, "launcher": WORKERS[0], "run_dir": "/"}
    job = SuspendableJob(cast("TrainingCalls", Controller(full)), cast("NamedJob", named), "a window")

    stopped = job.stop()
    jobs.begin(in_queue("second"))
    held = cluster.get("clusterqueue", "two")["spec"]["stopPolicy"]
    job.start_again(cast("SeenCheckpoint", {}))

    assert (stopped["state"], held) == ("stopped", "Hold")
    assert cluster.get("clusterqueue", "two")["spec"]["stopPolicy"] == "None"
    assert not [node for node in cluster.get("nodes")["items"] if node["spec"].get("unschedulable")]
    suspended = {name: cluster.get("mpijob", name)["spec"]["runPolicy"]["suspend"] for name in ("first", "second")}
    assert suspended == {"first": False, "second": True}
    for name in suspended:
        jobs.remove(name)
