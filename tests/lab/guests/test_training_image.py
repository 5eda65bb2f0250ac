"""The versions of 2019 train in containers on two workers, and go on while both are moved."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lab.nodes import image
from lab.nodes.network import AUTO
from lab.running import Desired, Lab
from tests.integration.ansible import Ansible
from tests.integration.test_vmotion import TAGGED
from tests.lab.images import FILES, SERVED, WORKERS, Pair, archives, check_moved, in_image, install_registry, registry
from tests.lab.places import Place

pytestmark = pytest.mark.slow
STEPS, STUN = 20, 5.0


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two workers that have the image, which is built where no earlier run has left it."""
    folder = tmp_path_factory.mktemp("images")
    (folder / "datacentre.yml").write_text(TAGGED)
    lab = Lab("images")
    lab.down()
    FILES.mkdir(parents=True, exist_ok=True)
    lab.up(Desired(folder / "datacentre.yml", AUTO, [f"{FILES}:{SERVED}"], containers=True))
    try:
        made = Pair(Place(lab, Ansible(lab.environment, folder)), in_image(archives(lab.podman, image.tag())))
        made.build()
        done = made.play("guests")
        assert done.rc == 0, done.out[-4000:]
        made.bring()
        yield made
    finally:
        lab.down()


def fact(pair: Pair, number: int) -> dict[str, Any]:
    return dict(json.loads(pair.place.inside(number, "cat /etc/ansible/facts.d/dml_training_image.fact").stdout))


def test_both_nodes_get_the_image_of_2019(pair: Pair) -> None:
    first, second = fact(pair, 1), fact(pair, 2)
    assert first == second
    assert first["proven"] is True
    assert {name: first["versions"][name] for name in ("Python", "tensorflow", "horovod")} == {
        "Python": "3.7.9",
        "tensorflow": "1.13.1",
        "horovod": "0.16.4",
    }


def test_a_second_run_changes_nothing(pair: Pair) -> None:
    again = pair.play("guests", "--tags", "training_image")
    assert again.rc == 0, again.out
    assert set(again.changes.values()) == {0}, again.out


def test_training_runs_in_a_container_on_each_node(pair: Pair) -> None:
    command = [*pair.variables["training_command"], "--steps", str(STEPS)]
    done = pair.play("train", training_name="steps", training_command=command)
    assert done.rc == 0, done.out[-4000:]
    result = json.loads((pair.results / "steps.json").read_text())
    assert result["asked"]["image"] == fact(pair, 1)["image"]
    for rank, name in enumerate(WORKERS):
        steps = [one for one in pair.records("steps") if one["rank"] == rank and "mark" not in one]
        assert [one["step"] for one in steps] == list(range(1, STEPS + 1))
        assert {(one["host"], one["size"]) for one in steps} == {(name, len(WORKERS))}
    assert pair.containers() == []


def test_job_continues_while_its_workers_move(pair: Pair) -> None:
    check_moved(pair.moved(STUN))
    assert pair.containers() == []


THERE = "dml/trained:2019"
# An image that was built on the node has its own digest beside the registry's.
PULLED = "image inspect --format '{{.RepoDigests}}'"


@pytest.fixture
def pulled(pair: Pair) -> dict[str, Any]:
    """A registry on the first worker that has the image, and what makes the role take it from there by its digest."""
    address = registry(pair.place)
    install_registry(pair.place, 300)
    for number, _name in enumerate(WORKERS, 1):
        plain = f'[[registry]]\\nlocation = "{address}"\\ninsecure = true\\n'
        pair.place.inside(number, f"printf '{plain}' | sudo tee /etc/containers/registries.conf.d/test.conf")
    built = fact(pair, 1)["image"].rpartition(":")[2]
    pair.place.inside(1, f"sudo podman push --digestfile=/run/digest {built} {address}/{THERE}", seconds=600)
    digest = pair.place.inside(1, "sudo cat /run/digest").stdout.strip()
    return {"training_image_recipe": {}, "training_image_name": f"{address}/{THERE}", "training_image_digest": digest}


def test_pulls_a_registry_image_by_digest(pair: Pair, pulled: dict[str, Any]) -> None:
    built, expected = fact(pair, 1)["versions"], pulled["training_image_digest"]
    done = pair.play("guests", "--tags", "training_image", **pulled)
    assert done.rc == 0, done.out[-4000:]
    reference = f"{pulled['training_image_name'].rpartition(':')[0]}@{expected}"
    for number, _name in enumerate(WORKERS, 1):
        assert reference in pair.place.inside(number, f"sudo podman {PULLED} {reference}").stdout
        assert fact(pair, number)["proven"] is True
        assert fact(pair, number)["versions"] == built
    again = pair.play("guests", "--tags", "training_image", **pulled)
    assert again.rc == 0, again.out
    assert set(again.changes.values()) == {0}, again.out
    other = f"sha256:{'0' * 64}"
    refused = pair.play("guests", "--tags", "training_image", **{**pulled, "training_image_digest": other})
    assert refused.rc != 0
    assert fact(pair, 1)["proven"] is False
    assert pair.play("guests", "--tags", "training_image").rc == 0, "the image that was built holds again"
