"""An ordinary folder of PyTorch, unchanged, trains in pods on two workers; so does the benchmark without Horovod."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.kubernetes.images import OPENMPI
from tests.integration.ansible import Outcome
from tests.integration.test_training_folder import add_requirement
from tests.integration.test_vmotion import TAGGED
from tests.kubernetes.conftest import READY_SECONDS
from tests.kubernetes.test_vmotion import LIBRARY, RUNS, inventory
from tests.lab.conftest import laboratory, prepared_pair
from tests.lab.images import FILES
from tests.lab.places import Place, desired, until
from tests.lab.trial import WORKERS

PYTORCH, VENV = FILES / "pytorch", "/opt/dml/pytorch"
TRAIN_SECONDS = 1200
BENCHMARK = ["--cpu", "--model", "small", "--image-size", "32", "--batch-size", "8", "--steps", "20", "--warmup", "3"]
TRAIN = """
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

import extra
import mylib

dist.init_process_group("gloo")
model = DDP(mylib.network())
optimizer = torch.optim.SGD(model.parameters(), 0.05)
rows = torch.tensor([float(cell) for cell in open(os.environ["DML_DATA"]).read().split()]).reshape(-1, 3)
for number in range(100000 if "stay" in sys.argv else 60):
    time.sleep(0.1)
    optimizer.zero_grad()
    model(rows).square().mean().backward()
    optimizer.step()
    if "fail" in sys.argv and dist.get_rank() == 1 and number == 20:
        raise ValueError("the batch is empty")
    if dist.get_rank() == 0 and number == 0:
        torch.save(model.module.state_dict(), "outputs/model.pt")
dist.destroy_process_group()
"""
FAILING = next(number for number, line in enumerate(TRAIN.splitlines(), 1) if "raise ValueError" in line)
MYLIB = "import torch\n\n\ndef network():\n    return torch.nn.Linear(3, 1)\n"


@pytest.fixture(scope="module")
def pytorch(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The environment with PyTorch, which nodes and pods have in common; where it is not there two nodes build it."""
    if not (PYTORCH / "bin" / "python").exists():
        with prepared_pair(tmp_path_factory.mktemp("pytorch"), "pytorch"):
            pass
    return f"{PYTORCH}:{VENV}:ro"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, pytorch: str) -> Iterator[Place]:
    """Workers that are members of Kubernetes and have PyTorch."""
    with laboratory(tmp_path_factory.mktemp("own"), TAGGED, "ownpods", kubernetes=True, shares=[pytorch]) as made:
        built = made.ansible.module("worker_vm", **desired(made))
        assert built.rc == 0, built.out
        made.lab.kubernetes.wait_for(WORKERS, READY_SECONDS)
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the options of a run of a folder with a script, a package, requirements, and separate data."""
    made, rows = tmp_path_factory.mktemp("mine"), tmp_path_factory.mktemp("data") / "train.csv"
    for path, text in {"train.py": TRAIN, "mylib/__init__.py": MYLIB}.items():
        (made / path).parent.mkdir(exist_ok=True)
        (made / path).write_text(text)
    rows.write_text("0.1 0.2 0.3\n" * 8)
    add_requirement(made)
    return {"training_folder": str(made), "training_command": "torchrun train.py", "training_data": str(rows)}


def play(place: Place, folder: Path, playbook: str, **more: Any) -> Outcome:
    """Run a playbook with PyTorch in pods on two workers."""
    environment, venv = place.lab.environment, {"hostPath": {"path": VENV}}
    volumes = [{"name": "pytorch", "path": VENV, "source": venv, "read_only": True}]
    kubernetes = {"image": OPENMPI, "kubectl": environment["LAB_KUBECTL"], "kubeconfig": environment["KUBECONFIG"]}
    variables = {
        "training_backend": "kubernetes",
        "training_kubernetes": {**kubernetes, "job": {"volumes": volumes}},
        "training_framework": "pytorch_ddp",
        "training_python": f"{VENV}/bin/python",
        "training_nodes": WORKERS[:2],
        "training_dir": LIBRARY,
        "training_runs": RUNS,
        "training_results": str(folder / "results"),
        "training_prove": False,
        **more,
    }
    words = ("-i", str(inventory(place, folder)), "-e", json.dumps(variables))
    return place.ansible.playbook(f"playbooks/{playbook}.yml", *words, timeout=TRAIN_SECONDS)


def text_of(outcome: Outcome) -> str:
    return " ".join(outcome.out.replace("\\n", " ").split())


def kept(folder: Path, name: str) -> dict[str, Any]:
    """Return a file of the results."""
    return dict(json.loads((folder / "results" / name).read_text()))


def test_an_unchanged_folder_trains_in_pods(place: Place, tmp_path: Path, folder: dict[str, Any]) -> None:
    done = play(place, tmp_path, "train", training_name="folder", **folder)
    assert done.rc == 0, done.out[-6000:]
    result, manifest = kept(tmp_path, "folder.json"), kept(tmp_path, "folder/manifest.json")
    assert (result["job"]["state"], result["steps"], result["gpus"]) == ("finished", 60, 2)
    assert manifest["rank_0_on"] in WORKERS[:2] and manifest["end"]["state"] == "finished"
    assert [path.name for path in (tmp_path / "results" / "folder" / "outputs").iterdir()] == ["model.pt"]


def test_reports_an_exception_in_a_pod_with_line(place: Place, tmp_path: Path, folder: dict[str, Any]) -> None:
    more = {**folder, "training_command": "torchrun train.py fail"}
    done = play(place, tmp_path, "train", training_name="failing", **more)
    cause = f"rank 1 on dml-failing-worker-1 ended: ValueError: the batch is empty (train.py, line {FAILING})"
    assert done.rc != 0 and cause in text_of(done), done.out[-6000:]
    assert (tmp_path / "results" / "failing" / "outputs" / "model.pt").exists()


def test_stops_a_run_in_pods_by_name(place: Place, tmp_path: Path, folder: dict[str, Any]) -> None:
    more = {**folder, "training_command": "torchrun train.py stay"}
    done = play(place, tmp_path, "train", training_name="staying", training_follow=False, **more)
    assert done.rc == 0, done.out[-6000:]
    steps = f"ls {RUNS}/staying/rank*.jsonl"
    until(lambda: all(place.inside(number, steps, check=False).returncode == 0 for number in (1, 2)), "steps", 180)
    listed = text_of(play(place, tmp_path, "runs"))
    assert "staying " in listed and " running " in listed and "worker01,worker02" in listed, listed
    done = play(place, tmp_path, "stop", training_name="staying")
    assert done.rc == 0, done.out[-6000:]
    assert "dml-staying" not in [each["metadata"]["name"] for each in place.lab.kubernetes.get("mpijobs")["items"]]
    assert kept(tmp_path, "staying/manifest.json")["end"]["state"] == "stopped"
    assert (tmp_path / "results" / "staying" / "outputs" / "model.pt").exists()


def test_the_benchmark_without_horovod_trains_in_pods(place: Place, tmp_path: Path) -> None:
    done = play(place, tmp_path, "train", training_name="benchmark", training_options=BENCHMARK)
    assert done.rc == 0, done.out[-6000:]
    result = kept(tmp_path, "benchmark.json")
    assert (result["job"]["state"], result["steps"], result["gpus"]) == ("finished", 20, 2)
