"""Fixtures of the lab: one lab with four workers that became nodes. It needs root, and fails without."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from lab.demo import SHARED
from lab.kubernetes.images import has_horovod
from lab.nodes import image
from lab.nodes.network import AUTO
from lab.running import FOLDER, HOROVOD, Desired, Lab
from tests.integration.ansible import Ansible
from tests.integration.test_vmotion import TAGGED
from tests.integration.workers import HOSTS
from tests.lab.benchmark import SERVED, Cluster
from tests.lab.images import FILES, Pair
from tests.lab.places import Place, desired
from tests.lab.trial import equip


@contextlib.contextmanager
def laboratory(
    folder: Path, centre: str, name: str, kubernetes: bool = False, shares: Sequence[str] = ()
) -> Iterator[Place]:
    """A separate lab without a worker; the rest of a killed run goes first."""
    (folder / "datacentre.yml").write_text(centre)
    lab = Lab(f"{name}{os.environ.get('PYTEST_XDIST_WORKER', '')}")
    lab.down()
    lab.up(Desired(folder / "datacentre.yml", AUTO, shares, kubernetes=kubernetes))
    try:
        yield Place(lab, Ansible(lab.environment, folder))
    finally:
        lab.down()


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A lab without a worker."""
    with laboratory(tmp_path_factory.mktemp("lab"), HOSTS, "tests") as made:
        yield made


@pytest.fixture(scope="session")
def equipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Four workers with Open MPI on six hosts: two to spare, so that two workers can move at once."""
    with laboratory(tmp_path_factory.mktemp("equipped"), TAGGED.replace("count: 5", "count: 6"), "equipped") as made:
        built = made.ansible.module("worker_vm", **desired(made))
        assert built.rc == 0, built.out
        equip(made)
        yield made


@pytest.fixture(scope="session")
def place(empty: Place) -> Place:
    """A lab with four workers, built by worker_vm."""
    built = empty.ansible.module("worker_vm", **desired(empty))
    assert built.rc == 0, built.out
    return empty


@contextlib.contextmanager
def computers(folder: Path, name: str, venv: str, suite: str = image.SUITE) -> Iterator[Cluster]:
    """Two nodes on which nothing is installed yet; ``venv`` is where they have Horovod's environment in common."""
    (folder / "served").mkdir()
    lab = Lab(name)
    lab.down()
    lab.up(Desired(None, AUTO, [venv, f"{folder / 'served'}:{SERVED}"], suite=suite))
    try:
        yield Cluster(lab, folder)
    finally:
        lab.down()


def build_horovod(folder: Path) -> None:
    """Horovod's environment, built by two nodes where nothing has left it."""
    if not has_horovod(HOROVOD):
        HOROVOD.mkdir(parents=True, exist_ok=True)
        with computers(folder, "horovod", SHARED) as made:
            made.build()
    assert has_horovod(HOROVOD)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes that can train by TensorFlow and Horovod, whose folder the demo and earlier tests may have filled."""
    (FOLDER / "shared").mkdir(parents=True, exist_ok=True)
    with computers(tmp_path_factory.mktemp("cluster"), "benchmark", SHARED) as made:
        made.build()
        yield made


@pytest.fixture(scope="session")
def unbuilt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes on which nothing is installed yet, and nothing was compiled for them before."""
    folder = tmp_path_factory.mktemp("unbuilt")
    (folder / "venv").mkdir()
    with computers(folder, "unbuilt", f"{folder / 'venv'}:/opt/dml/horovod:rw") as made:
        made.ansible.environment["DML_CACHE_DIR"] = str(folder / "cache")
        yield made


@contextlib.contextmanager
def pytorch_pair(folder: Path, name: str, count: int = 2, shares: Sequence[str] = ()) -> Iterator[Pair]:
    """Workers for the stack lab-ddp, whose packages lie where an earlier lab has left them."""
    (folder / "datacentre.yml").write_text(TAGGED)
    (FILES / "pytorch").mkdir(parents=True, exist_ok=True)
    lab = Lab(name)
    lab.down()
    lab.up(Desired(folder / "datacentre.yml", AUTO, [f"{FILES / 'pytorch'}:/opt/dml/pytorch:rw", *shares]))
    try:
        place = Place(lab, Ansible(lab.environment, folder))
        made = Pair(place, {"stack": "lab-ddp", "pytorch_venv_shared": True}, count)
        made.build()
        yield made
    finally:
        lab.down()


@contextlib.contextmanager
def prepared_pair(folder: Path, name: str, count: int = 2, shares: Sequence[str] = ()) -> Iterator[Pair]:
    """Workers on which the stack is installed."""
    with pytorch_pair(folder, name, count, shares) as made:
        done = made.play("guests")
        assert done.rc == 0, done.out[-4000:]
        yield made


@pytest.fixture
def bare(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A lab that is not up, only for nodes."""
    lab = Lab(f"bare{os.environ.get('PYTEST_XDIST_WORKER', '')}")
    lab.down()
    yield lab
    lab.down()
