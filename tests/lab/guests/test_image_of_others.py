"""An image with PyTorch and without Horovod, as NVIDIA's of PyTorch, trains on two workers by being named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lab.nodes import nesting
from lab.nodes.network import AUTO
from lab.running import Desired, Lab
from tests.integration.ansible import Ansible, Outcome
from tests.integration.test_vmotion import TAGGED
from tests.lab.images import MPI, Pair, check_moved, check_run, made_elsewhere
from tests.lab.places import Place

pytestmark = pytest.mark.slow
IMAGE, SERVED = "localhost/pytorch:bookworm", "/srv/images"
OPTIONS = ["--cpu", "--model", "small", "--image-size", "32", "--batch-size", "8", "--steps"]
STEPS, STUN = 20, 5.0


def given(checksum: str) -> dict[str, Any]:
    """Return a user's options for the image: its place, its content, and how its containers run on a node."""
    return {
        "training_image_engine": "podman",
        "training_image_packages": [{"name": "podman"}, {"name": "runc"}],
        "training_image_name": IMAGE,
        "training_image_archive": f"file://{SERVED}/image.tar",
        "training_image_sha256": checksum,
        "training_image_wanted": {"framework": "pytorch", "horovod": ""},
        "training_image_arguments": list(nesting.RUN_ARGUMENTS),
        "training_image_ulimits": {},
    }


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two workers that have the image."""
    archive, checksum = made_elsewhere(IMAGE, (*MPI, "python3-torch"))
    folder = tmp_path_factory.mktemp("others")
    (folder / "datacentre.yml").write_text(TAGGED)
    roles = [{"role": "dml.vsphere.node"}, {"role": "dml.vsphere.training_image", "vars": given(checksum)}]
    (folder / "bring.yml").write_text(json.dumps([{"hosts": "workers", "become": True, "roles": roles}]))
    lab = Lab("others")
    lab.down()
    lab.up(Desired(folder / "datacentre.yml", AUTO, [f"{archive.parent}:{SERVED}"], containers=True))
    try:
        made = Pair(Place(lab, Ansible(lab.environment, folder)), {})
        made.build()
        done = bring(made)
        assert done.rc == 0, done.out[-4000:]
        yield made
    finally:
        lab.down()


def bring(pair: Pair) -> Outcome:
    """Run the roles that bring the image."""
    ansible = pair.place.ansible
    return ansible.playbook(str(ansible.folder / "bring.yml"), "-i", str(pair.inventory), timeout=1800)


def test_confirms_the_image_and_changes_nothing_again(pair: Pair) -> None:
    read = [pair.place.inside(number, "cat /etc/ansible/facts.d/dml_training_image.fact").stdout for number in (1, 2)]
    first, second = map(json.loads, read)
    assert first == second
    assert (first["proven"], first["framework"], first["uses_nccl"]) == (True, "pytorch_ddp", False)
    assert first["versions"]["pytorch"].startswith("1.13") and "horovod" not in first["versions"]
    again = bring(pair)
    assert again.rc == 0, again.out[-4000:]
    assert set(again.changes.values()) == {0}, again.out[-4000:]


def test_training_runs_in_a_container_on_each_node(pair: Pair) -> None:
    done = pair.play("train", training_name="steps", training_options=[*OPTIONS, str(STEPS)])
    assert done.rc == 0, done.out[-4000:]
    result = json.loads((pair.results / "steps.json").read_text())
    assert (result["asked"]["framework"], result["asked"]["image"][: len(IMAGE)]) == ("pytorch_ddp", IMAGE)
    assert (result["proof"]["transport"], result["gpus"]) == ("tcp", 2)
    check_run(pair, "steps", 1, STEPS)
    assert pair.containers() == []


def test_job_continues_while_both_workers_move(pair: Pair) -> None:
    check_moved(pair.moved(STUN, training_options=[*OPTIONS, "100", "--step-seconds", "0.2", "--seconds", "100000"]))
    assert pair.containers() == []
