"""Docker itself, on two virtual machines: it runs an image that others made, and a job in it goes on over RDMA."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.ansible import Outcome
from tests.integration.test_vmotion import TAGGED
from tests.lab.images import MPI, install_registry, made_elsewhere, registry
from tests.lab.machines.pair import NUMBERS, PATIENCE, moved_over_rdma, pair
from tests.lab.places import USER, Place, ansible_login, until
from tests.lab.rolling import SSH

pytestmark = pytest.mark.slow
# The packages that MPI needs for RDMA, and no program of ours.
PACKAGES = (*MPI, "ibverbs-providers")
IMAGE, SERVED = "localhost/mpi:bookworm", "/srv/images"
# Debian 12 has no other Docker.
DOCKER = "20.10.24"
MEMORY_MIB = 1024


@dataclass(frozen=True)
class Dockers:
    """The two machines, and the play of both roles."""

    place: Place
    play: Path
    inventory: Path

    def converge(self, **more: Any) -> Outcome:
        """Run both roles."""
        words = [str(self.play), "-i", str(self.inventory), "-e", json.dumps(more)]
        return self.place.ansible.playbook(*words, timeout=3600)

    def fact(self, number: int) -> dict[str, Any]:
        """Return what the role training_image noted."""
        text = "cat /etc/ansible/facts.d/dml_training_image.fact"
        return dict(json.loads(self.place.inside(number, text, seconds=30 * PATIENCE).stdout))

    def containers(self) -> list[int]:
        """How many containers run on each machine."""
        reported = [self.place.inside(one, "sudo docker ps --quiet", seconds=30 * PATIENCE) for one in NUMBERS]
        return [len(one.stdout.split()) for one in reported]


def roles(place: Place, checksum: str) -> list[dict[str, Any]]:
    """Docker as Debian has it, with its own bridge on each machine, and an image by its checksum."""
    docker = {
        "container_runtime_version": DOCKER,
        "container_runtime_packages": [{"name": "docker.io"}],
        "container_runtime_nvidia": "",
        "container_runtime_settings": {"insecure-registries": [registry(place)]},
    }
    image = {
        "training_image_name": IMAGE,
        "training_image_archive": f"file://{SERVED}/image.tar",
        "training_image_sha256": checksum,
        "training_image_folders": [f"/home/{USER}"],
        "training_image_user": USER,
        "training_image_peers": [place.address(number) for number in NUMBERS],
        "training_image_remote_shell": SSH,
        "training_image_proof_timeout": int(30 * PATIENCE),
    }
    result = {"container_runtime": docker, "training_image": image}
    return [{"role": f"dml.vsphere.{name}", "vars": given} for name, given in result.items()]


@pytest.fixture(scope="module")
def dockers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dockers]:
    """Two machines that have the archive on a disk, and Docker and the image by the roles."""
    archive, checksum = made_elsewhere(IMAGE, PACKAGES)
    folder, shares = tmp_path_factory.mktemp("dockers"), [f"{archive.parent}:{SERVED}"]
    with pair(folder, TAGGED, "dockers", proxy=True, shares=shares, memory_mib=MEMORY_MIB) as place:
        slow = {"ansible_pipelining": True, "ansible_ssh_timeout": int(10 * PATIENCE)}
        login = {**ansible_login(place.lab.key), **slow}
        hosts = {f"worker0{number}": {"ansible_host": place.address(number)} for number in NUMBERS}
        (folder / "hosts.yml").write_text(json.dumps({"workers": {"hosts": hosts, "vars": login}}))
        play = [{"hosts": "workers", "become": True, "roles": roles(place, checksum)}]
        (folder / "play.yml").write_text(json.dumps(play))
        made = Dockers(place, folder / "play.yml", folder / "hosts.yml")
        done = made.converge()
        assert done.rc == 0, done.out[-4000:]
        yield made


def test_verifies_a_foreign_image_and_changes_nothing_again(dockers: Dockers) -> None:
    first, second = dockers.fact(1), dockers.fact(2)
    assert first == second
    assert (first["proven"], first["engine"]) == (True, "docker")
    assert set(first["versions"]) >= {"Python", "OpenMPI"}
    again = dockers.converge()
    assert again.rc == 0, again.out[-4000:]
    assert set(again.changes.values()) == {0}, again.out[-4000:]
    assert dockers.containers() == [0, 0]


def test_job_in_containers_continues_while_both_migrate(dockers: Dockers, tmp_path: Path) -> None:
    def has_started() -> None:
        until(lambda: dockers.containers() == [1, 1], "a container on each machine", 30 * PATIENCE)

    inside: dict[str, Any] = {"mpirun": "/opt/dml/bin/dml-mpirun", "daemon_shell": "/opt/dml/bin/dml-shell"}
    moved_over_rdma(dockers.place, tmp_path, started=has_started, **inside)
    until(lambda: dockers.containers() == [0, 0], "no container is left", 30 * PATIENCE)


def test_pulls_a_registry_image_by_digest(dockers: Dockers) -> None:
    place, there = dockers.place, f"{registry(dockers.place)}/others/mpi"
    install_registry(place, 90 * PATIENCE)
    push = f"sudo docker tag {IMAGE} {there}:1 && sudo docker push --quiet {there}:1 > /dev/null"
    look = f"sudo docker image inspect --format '{{{{index .RepoDigests 0}}}}' {there}:1"
    result = place.inside(1, f"{push} && {look}", seconds=90 * PATIENCE)
    digest = result.stdout.strip().rpartition("@")[2]
    named = {"training_image_archive": "", "training_image_name": f"{there}:1"}
    done = dockers.converge(**named, training_image_digest=digest)
    assert done.rc == 0, done.out[-4000:]
    fact, seen = dockers.fact(2), f"sudo docker image inspect --format '{{{{.Id}}}}' {there}@{digest}"
    brought = place.inside(2, seen, seconds=30 * PATIENCE).stdout.strip()
    assert (fact["proven"], fact["image"]) == (True, f"{there}:1@{brought}")
    refused = dockers.converge(**named, training_image_digest=f"sha256:{'0' * 64}")
    assert refused.rc != 0
    assert dockers.fact(2)["proven"] is False
