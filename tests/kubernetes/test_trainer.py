"""TrainJobs with the real controllers of Trainer and JobSet: one trains to its end, one while its nodes move."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.kubernetes import kubeflow
from lab.running import KUBERNETES
from tests.fakes import torchrun
from tests.integration.ansible import Outcome
from tests.integration.test_vmotion import TAGGED
from tests.kubernetes.conftest import READY_SECONDS
from tests.kubernetes.test_vmotion import LIBRARY, STUN, TEST_SECONDS, hand_over, inventory, values, variables
from tests.lab.conftest import laboratory
from tests.lab.places import Place, desired, until
from tests.lab.trial import WORKERS

STEPS = 40
# The ranks wait for each other in each step, as those of PyTorch do, over the address that Trainer gives to torchrun.
RANK = """
import os, socket, time
import dml_records
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))


def connected():
    if rank == 0:
        server = socket.create_server(("", place[1]))
        return [server.accept()[0] for _peer in range(size - 1)]
    while True:
        try:
            return [socket.create_connection(place)]
        except OSError:
            time.sleep(0.2)


peers, records = connected(), dml_records.start()
for number in range(1, 1_000_000):
    time.sleep(0.2)
    for peer in peers:
        peer.sendall(b"x")
    if not all(peer.recv(1) for peer in peers):
        raise ConnectionError("another rank has ended")
    records.step(images=8, loss=1.0 / number)
"""


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Four workers that are members of a Kubernetes with Trainer and JobSet; their pods need no Horovod."""
    with laboratory(tmp_path_factory.mktemp("trainer"), TAGGED, "trainer", kubernetes=True) as made:
        built = made.ansible.module("worker_vm", **desired(made))
        assert built.rc == 0, built.out
        lab, cluster = made.lab, made.lab.kubernetes
        cluster.wait_for(WORKERS, READY_SECONDS)
        parts = kubeflow.ensure(lab.podman, KUBERNETES, cluster.built.programs / "kubectl", print)
        kubeflow.install(cluster, lab.podman, lab.podman.containers(f"dml-lab={lab.lab}"), parts)
        hand_over(made)
        yield made


def play(place: Place, tmp_path: Path, playbook: str, launcher: str = "mpirun", **more: Any) -> Outcome:
    """Run a playbook with a TrainJob."""
    given = variables(place, tmp_path)
    given["training_kubernetes"]["job"].update(api="trainjob", launcher=launcher)
    words = ("-i", str(inventory(place, tmp_path)), "-e", json.dumps({**given, **more}))
    return place.ansible.playbook(f"playbooks/{playbook}.yml", *words, timeout=TEST_SECONDS)


def objects_left(place: Place, job: str) -> list[str]:
    """Return the names of the objects that belong to a TrainJob."""
    kinds = "trainjobs,trainingruntimes,jobsets,jobs,pods"
    names = [each["metadata"]["name"] for each in place.lab.kubernetes.get(kinds)["items"]]
    return [name for name in names if name.startswith(job)]


def test_a_trainjob_trains_to_its_end(trainer: Place, tmp_path: Path) -> None:
    command = ["python3", "-u", f"{LIBRARY}/train.py", "--seconds", "0.2", "--steps", str(STEPS)]
    more: dict[str, Any] = {"training_nodes": WORKERS[:2], "training_results": str(tmp_path / "results")}
    done = play(trainer, tmp_path, "train", training_command=command, **more)
    assert done.rc == 0, done.out[-6000:]
    result = json.loads((tmp_path / "results" / f"{tmp_path.name}.json").read_text())
    assert (result["job"]["state"], result["steps"]) == ("finished", STEPS)
    (jobset,) = trainer.lab.kubernetes.get("jobsets")["items"]
    counts = {each["name"]: each["template"]["spec"]["completions"] for each in jobset["spec"]["replicatedJobs"]}
    assert counts == {"node": 2, "launcher": 1}


def test_trainjob_survives_moves_of_all_its_nodes(trainer: Place, tmp_path: Path) -> None:
    trainer.lab.hypervisor.ask("PUT", "/moves", {"precopy_seconds": 1, "stun_seconds": STUN})
    done = play(trainer, tmp_path, "vmotion_test")
    assert done.rc == 0, done.out[-6000:]
    (evidence,) = (tmp_path / "tests").iterdir()
    verdict = json.loads((evidence / "verdict.json").read_text())
    assert (verdict["verdict"], verdict["moved"], verdict["unproven"]) == ("continuous", "all", [])
    assert sorted(rank for one in verdict["moves"] for rank in one["ranks"]) == [0, 1, 2, 3]
    assert all(STUN - 0.5 <= one["gap_s"] < 60 for one in verdict["moves"])
    (warm,) = values(evidence, "warm")
    assert sorted(one["worker"] for one in warm["pods"].values()) == WORKERS
    # The test had started the job.
    (job,) = {pod.rpartition("-node-")[0] for pod in warm["pods"]}
    until(lambda: not objects_left(trainer, job), f"{job} is gone", 90)


def test_trainjob_with_torchrun_survives_moves_of_all_nodes(trainer: Place, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    (folder / "torch" / "distributed").mkdir(parents=True)
    # The image of the pods has no PyTorch.
    (folder / "torch" / "distributed" / "run.py").write_text(Path(torchrun.__file__).read_text())
    (folder / "train.py").write_text(RANK)
    given = {"training_folder": str(folder), "training_framework": "pytorch_ddp", "training_python": "/usr/bin/python3"}
    trainer.lab.hypervisor.ask("PUT", "/moves", {"precopy_seconds": 1, "stun_seconds": STUN})

    done = play(trainer, tmp_path, "vmotion_test", "torchrun", **given, training_command=["python", "train.py"])

    assert done.rc == 0, done.out[-6000:]
    (evidence,) = (tmp_path / "tests").iterdir()
    verdict = json.loads((evidence / "verdict.json").read_text())
    assert (verdict["verdict"], verdict["moved"]) == ("continuous", "all"), verdict
    assert sorted(rank for one in verdict["moves"] for rank in one["ranks"]) == [0, 1, 2, 3]
    assert all(STUN - 0.5 <= one["gap_s"] < 60 for one in verdict["moves"])
    (warm,) = values(evidence, "warm")
    assert sorted(one["worker"] for one in warm["pods"].values()) == WORKERS
    assert all("-node-0-" in pod for pod in warm["pods"]), "the job has no launcher"
