"""playbooks/hosts.yml with window_by=restart around pods: on a full cluster, members shut down, and the job goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.kubernetes import kubeflow
from lab.running import KUBERNETES
from lab.simulator import ROOT
from tests.integration.ansible import Outcome
from tests.integration.rolling import times
from tests.integration.test_vmotion import TAGGED
from tests.kubernetes.conftest import READY_SECONDS
from tests.kubernetes.test_vmotion import inventory, variables
from tests.lab.conftest import laboratory
from tests.lab.places import Place, desired
from tests.lab.test_window_restart import HOSTS, verdict_of
from tests.lab.trial import WORKERS

WINDOW_SECONDS = 3600


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """As many members of Kubernetes as hosts, with MPI's operator, Trainer and JobSet."""
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
