"""playbooks/train.yml on Kubernetes: the same playbook, job, records, pace and result by another backend.

The API server of this test keeps what is applied, and starts the launcher's command, a real mpirun, as a process of
this machine; kubectl runs here the commands meant for a pod. The operator and real pods are those of the lab.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import torchrun as fakes_torchrun
from tests.fakes.kubernetes import Cluster, served
from tests.integration.mpi_operator import CORE, JOBS, KUBECTL, Operator
from tests.integration.test_training_again import KILLED
from tests.integration.test_training_folder import add_requirement
from tests.integration.trainer import RUNTIMES, TRAINJOBS, Trainer
from tests.integration.training import Playbook

pytestmark = pytest.mark.slow
# Written for torchrun, with relative paths; "fail" raises on rank 1, and "stay" trains until someone stops it.
TRAIN = """
import os, sys, time
import dml_records
import mylib
given = {name: os.environ[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")}
rank = int(given["RANK"])
assert given == {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "MASTER_ADDR": "localhost",
                 "MASTER_PORT": "29500"}, given
assert os.environ["GLOO_SOCKET_IFNAME"] == "lo"
records = dml_records.start()
rows = open("data/train.csv").read().split()
with open(f"outputs/model{rank}", "w") as file:
    file.write(os.environ.get("DML_RESUME", os.getcwd()))
for number in range(1, 100000 if "stay" in sys.argv else 21):
    time.sleep(0.05)
    records.step(images=len(rows), loss=mylib.loss(number))
    if "fail" in sys.argv and rank == 1 and number == 10:
        raise ValueError("the batch is empty")
"""
FAILING = next(number for number, line in enumerate(TRAIN.splitlines(), 1) if "raise ValueError" in line)


class Kubernetes:
    """The playbooks with a cluster whose nodes are this machine under two names."""

    def __init__(self, cluster: Cluster, kubeconfig: str, folder: Path) -> None:
        self.cluster, self.playbook = cluster, Playbook(folder)
        kubectl = folder / "kubectl"
        kubectl.write_text(KUBECTL)
        kubectl.chmod(0o755)
        place = {
            "kubeconfig": kubeconfig,
            "kubectl": str(kubectl),
            "interface": "lo",
            "node": "{{ inventory_hostname }}",
        }
        self.variables: dict[str, Any] = {
            "training_backend": "kubernetes",
            "training_kubernetes": {"image": "example.com/train:1", **place},
            "training_nodes": [self.playbook.nodes.here, "n2"],
            "training_prove": False,
        }

    def run(self, *arguments: Any, **more: Any) -> str:
        """Return the output of a run that ends well, in one line."""
        ran = self.playbook.run(*arguments, **{**self.variables, **more})
        assert ran.returncode == 0, ran.stdout
        return " ".join(ran.stdout.split())

    def fail(self, *arguments: Any, **more: Any) -> str:
        """Return the output of a run that fails, in one line."""
        ran = self.playbook.run(*arguments, **{**self.variables, **more})
        assert ran.returncode != 0, ran.stdout
        return " ".join(ran.stdout.split())

    def again(self, **more: Any) -> tuple[int, str]:
        """Return the exit code and the output of a run without a program, which would precede that of another run."""
        command = self.playbook.command(**self.variables, **more)
        given = {key: value for key, value in json.loads(command[-1]).items() if key != "training_command"}
        ran = self.playbook.ansible.run([*command[:-1], json.dumps(given)], timeout=600)
        return ran.returncode, " ".join(ran.stdout.split())

    def manifest(self, name: str) -> dict[str, Any]:
        return dict(json.loads((self.playbook.folder / "results" / name / "manifest.json").read_text()))

    def outputs(self, name: str) -> list[Path]:
        return sorted((self.playbook.folder / "results" / name / "outputs").iterdir())


@pytest.fixture
def kubernetes(tmp_path: Path) -> Iterator[Kubernetes]:
    made = Cluster({f"{CORE}/pods": [], f"{CORE}/events": [], "/api/v1/nodes": []})
    operator = Operator(made, tmp_path)
    with served(made, tmp_path) as kubeconfig:
        yield Kubernetes(made, kubeconfig, tmp_path)
    operator.close()


@pytest.fixture
def trainer(tmp_path: Path) -> Iterator[Kubernetes]:
    made = Cluster({f"{CORE}/pods": [], f"{CORE}/events": [], "/api/v1/nodes": []})
    operator = Trainer(made, tmp_path)
    with served(made, tmp_path) as kubeconfig:
        found = Kubernetes(made, kubeconfig, tmp_path)
        found.variables["training_kubernetes"]["job"] = {"api": "trainjob"}
        yield found
    operator.close()


@pytest.fixture
def folder(tmp_path: Path) -> dict[str, Any]:
    """Return the options of a run of a folder with a script, a package and data."""
    made = tmp_path / "mine"
    texts = {
        "train.py": TRAIN,
        "mylib/__init__.py": "def loss(step):\n    return 1.0 / step\n",
        "data/train.csv": "1 2",
    }
    for name, text in texts.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    return {"training_folder": str(made), "training_framework": "pytorch_ddp", "training_command": "python train.py"}


def test_same_playbook_trains_on_kubernetes(kubernetes: Kubernetes, tmp_path: Path) -> None:
    made, more = kubernetes.cluster, {"training_name": "one", "training_steps": 60}
    kubernetes.run(60, 1.5, **more)
    (records,) = (tmp_path / "results" / "one").glob("watch-*/records.jsonl")
    report = {(one["rank"], one["step"]) for one in map(json.loads, records.read_text().splitlines())}
    assert report == {(rank, step) for rank in (0, 1) for step in range(1, 61)}
    result = json.loads((tmp_path / "results" / "one.json").read_text())
    assert (result["job"]["state"], result["steps"], result["gpus"]) == ("finished", 60, 2)
    assert result["images_per_sec"] > 0 and made.written == [f"{JOBS}/dml-one"]
    # Someone deletes the job; its records stay on the nodes.
    made.answers.pop(f"{JOBS}/dml-one")
    made.answers[f"{CORE}/pods"] = []
    again = kubernetes.fail(60, 1.5, **more)
    assert "from a job that Kubernetes no longer has. A new job would append to them." in again
    assert made.written == [f"{JOBS}/dml-one"]


FIND = """
- hosts: workers
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: dml.vsphere.training, tasks_from: find}
    - ansible.builtin.copy: {content: "{{ training_started | to_json }}", dest: "{{ found }}", mode: "0600"}
      run_once: true
"""


def test_window_finds_the_running_job_and_its_pods(kubernetes: Kubernetes, tmp_path: Path) -> None:
    kubernetes.run(100000, 0.1, training_name="stays", training_follow=False)
    (tmp_path / "find.yml").write_text(FIND)
    result = tmp_path / "found.json"
    command = kubernetes.playbook.command(**kubernetes.variables, training_name="stays", found=str(result))
    command[command.index("playbooks/train.yml")] = str(tmp_path / "find.yml")
    ran = kubernetes.playbook.ansible.run(command)
    assert ran.returncode == 0, ran.stdout
    found = json.loads(result.read_text())
    assert (found["kubernetes"]["name"], found["run_dir"]) == ("dml-stays", str(tmp_path / "runs" / "stays"))
    assert found["kubernetes"]["names"]["n2"] == "n2"
    assert sorted(node["name"] for node in found["nodes"]) == sorted([kubernetes.playbook.nodes.here, "n2"])
    assert found["nodes"][0]["reach"][0] == str(tmp_path / "kubectl"), "records are read in the pods"


def test_folder_trains_as_a_trainjob(trainer: Kubernetes, folder: dict[str, Any], tmp_path: Path) -> None:
    trainer.run(training_name="ten", training_environment={"TOKEN": "of-a-user"}, **folder)

    made = trainer.cluster
    assert made.written[1:] == [f"{RUNTIMES}/dml-ten", f"{TRAINJOBS}/dml-ten"]
    assert [path.name for path in trainer.outputs("ten")] == ["model0", "model1"]
    result = json.loads((tmp_path / "results" / "ten.json").read_text())
    assert (result["job"]["state"], result["steps"]) == ("finished", 20)
    assert trainer.manifest("ten")["rank_0_on"] == "n2"
    key = tmp_path / ".dml-key"
    assert key.read_text() == "a key\n" and key.stat().st_mode & 0o777 == 0o600, "ssh refuses a key that others read"


@pytest.fixture
def torchrun(trainer: Kubernetes, folder: dict[str, Any]) -> Kubernetes:
    """Return a cluster whose jobs start their ranks with torchrun; its ranks are the only ones of their nodes."""
    trainer.variables["training_kubernetes"]["job"]["launcher"] = "torchrun"
    mine = Path(folder["training_folder"])
    (mine / "torch" / "distributed").mkdir(parents=True)
    (mine / "torch" / "distributed" / "run.py").write_text(Path(fakes_torchrun.__file__).read_text())
    script = mine / "train.py"
    script.write_text(TRAIN.replace('"LOCAL_RANK": str(rank)', '"LOCAL_RANK": "0"').replace("29500", "29400"))
    return trainer


def test_folder_trains_as_a_trainjob_with_torchrun(
    torchrun: Kubernetes, folder: dict[str, Any], tmp_path: Path
) -> None:
    torchrun.run(training_name="ten", **folder)

    assert [path.name for path in torchrun.outputs("ten")] == ["model0", "model1"]
    result = json.loads((tmp_path / "results" / "ten.json").read_text())
    assert (result["job"]["state"], result["steps"]) == ("finished", 20)
    assert torchrun.manifest("ten")["rank_0_on"] == "n2"


def test_reports_the_error_of_a_torchrun_rank(torchrun: Kubernetes, folder: dict[str, Any]) -> None:
    output = torchrun.fail(training_name="ten", **{**folder, "training_command": "python train.py fail"})

    assert re.search(r"rank 1 on \S+ ended: ValueError: the batch is empty", output), output


def test_folder_trains_on_kubernetes_as_on_nodes(
    kubernetes: Kubernetes, folder: dict[str, Any], tmp_path: Path
) -> None:
    output = kubernetes.run(training_name="one", **folder)
    assert "dml.vsphere.stop -e training_name=one" in output
    work, second = tmp_path / "runs" / "one" / "work", kubernetes.playbook.nodes.here
    assert [(path.name, path.read_text()) for path in kubernetes.outputs("one")] == [
        ("model0", str(work)),
        ("model1", str(work)),
    ]
    manifest = kubernetes.manifest("one")
    assert (manifest["backend"], manifest["image"]) == ("kubernetes", "example.com/train:1")
    assert (manifest["rank_0_on"], manifest["nodes"]) == ("n2", [second, "n2"])
    assert (manifest["end"]["state"], manifest["end"]["steps"]) == ("finished", 20)
    # By its name, the run is followed with its own settings.
    written = list(kubernetes.cluster.written)
    kubernetes.run(training_name="one", training_command=[])
    assert kubernetes.cluster.written == written
    refused = kubernetes.fail(training_name="one", training_command=[], training_backend="mpi")
    assert "The training run one has the backend kubernetes, but the backend of this command is mpi." in refused


def test_reports_rank_error_and_line_on_kubernetes(kubernetes: Kubernetes, folder: dict[str, Any]) -> None:
    result = kubernetes.fail(training_name="two", **{**folder, "training_command": "python train.py fail"})
    cause = f"rank 1 on dml-two-worker-1 ended: ValueError: the batch is empty (train.py, line {FAILING})"
    assert cause in result
    assert kubernetes.manifest("two")["end"]["cause"] == cause
    assert [path.name for path in kubernetes.outputs("two")] == ["model0", "model1"]


def test_stops_a_kubernetes_run_by_name(kubernetes: Kubernetes, folder: dict[str, Any], tmp_path: Path) -> None:
    stays = {**folder, "training_command": "python train.py stay", "training_follow": False}
    kubernetes.run(training_name="three", **stays)
    assert f"{JOBS}/dml-three" in kubernetes.cluster.answers
    kubernetes.playbook.nodes.run_dir = tmp_path / "runs" / "three"
    kubernetes.run(playbook="stop", ansible_become=False, training_name="three")
    assert f"{JOBS}/dml-three" not in kubernetes.cluster.answers
    manifest = kubernetes.manifest("three")
    assert manifest["end"]["state"] == "stopped" and manifest["end"]["cause"].startswith("stopped by ")
    assert [path.name for path in kubernetes.outputs("three")] == ["model0", "model1"]


def worker_volume(kubernetes: Kubernetes, job: str, volume: str) -> tuple[str, list[str]]:
    """Return the folder of a volume of the workers on the node, and the containers that can write it."""
    replicas = kubernetes.cluster.answers[f"{JOBS}/dml-{job}"]["spec"]["mpiReplicaSpecs"]
    spec = replicas["Worker"]["template"]["spec"]
    (path,) = (each["hostPath"]["path"] for each in spec["volumes"] if each["name"] == volume)
    mounts = [
        (each["name"], one) for each in (*spec["initContainers"], *spec["containers"]) for one in each["volumeMounts"]
    ]
    return path, [name for name, one in mounts if one["name"] == volume and not one.get("readOnly")]


def test_image_installs_requirements_before_the_ranks_start(
    kubernetes: Kubernetes, folder: dict[str, Any], tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    add_requirement(mine)
    (mine / "train.py").write_text(f"import extra{TRAIN}")
    (tmp_path / "pods").mkdir()
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "pods")], check=True)
    folder["training_python"] = str(tmp_path / "pods" / "bin" / "python")
    kubernetes.run(training_name="four", **folder)
    assert [path.name for path in kubernetes.outputs("four")] == ["model0", "model1"]
    (mine / "requirements.txt").write_text("--no-index\nextra==2.0\n")
    result = kubernetes.fail(training_name="five", **folder)
    cause = "pod dml-five-worker-0 does not start on n2: container setup ended with exit code 1: could not install the"
    assert f"{cause} requirements: ERROR: " in result and "No matching distribution found for extra==2.0" in result
    store = tmp_path / "library" / "pod-environments"
    assert len(list(store.glob("*/*/complete"))) == 1
    # The folder of run "five" has other requirements, so that its pods see nothing of the packages of run "four".
    mounted = [worker_volume(kubernetes, name, "environments") for name in ("four", "five")]
    assert {path for path, _writable in mounted} == {str(path) for path in store.iterdir() if path.is_dir()}
    assert [writable for _path, writable in mounted] == [["setup"], ["setup"]]


def test_resumes_and_repeats_a_kubernetes_run(kubernetes: Kubernetes, folder: dict[str, Any], tmp_path: Path) -> None:
    kubernetes.run(training_name="six", **folder)
    code, result = kubernetes.again(training_name="seven", training_resume="six", training_checkpoints=["model0"])
    assert code == 0, result
    checkpoint = tmp_path / "runs" / "seven" / "work" / "outputs" / "model0"
    assert [path.read_text() for path in kubernetes.outputs("seven")] == [str(checkpoint)] * 2
    code, result = kubernetes.again(training_name="eight", training_repeat="six")
    assert code == 0, result
    six, eight = (kubernetes.manifest(name) for name in ("six", "eight"))
    assert (eight["repeats"], eight["code"]["sha256"], eight["words"]) == ("six", six["code"]["sha256"], six["words"])
    kubernetes.variables["training_kubernetes"]["image"] = "example.com/train:2"
    code, result = kubernetes.again(training_name="nine", training_repeat="six")
    assert code != 0 and "cannot be repeated on these nodes: image of its manifest differ today" in result


def test_machine_failure_on_kubernetes_starts_another_attempt(
    kubernetes: Kubernetes, folder: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "mine" / "train.py").write_text(KILLED)
    more = {**folder, "training_command": "python train.py well", "training_attempts": 2}
    output = kubernetes.run(training_name="ten", **more)
    assert "Attempt 2 of 2: the training run ten failed with a machine: rank 0 on" in output
    assert [path.name for path in kubernetes.outputs("ten-2")] == ["epoch1.pt", "got0", "got1"]
    assert kubernetes.manifest("ten-2")["end"]["state"] == "finished"
