"""Tests of the lab's Kubernetes: apart from those of nodes, whose labs would take what inotify has to give."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.test_vmotion import TAGGED
from tests.kubernetes.mpijob import Jobs
from tests.lab.conftest import bare, build_horovod, laboratory
from tests.lab.places import Place, desired
from tests.lab.trial import WORKERS

__all__ = ["bare"]
READY_SECONDS = 300


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that compare this machine before and after run before the lab of the others is up."""
    items.sort(key=lambda item: item.path.name != "test_traces.py")


@pytest.fixture(scope="session")
def horovod(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Horovod's environment, of which an image of pods is made; where it is not there two nodes build it first."""
    build_horovod(tmp_path_factory.mktemp("horovod"))


@pytest.fixture(scope="session")
def members(tmp_path_factory: pytest.TempPathFactory, horovod: None) -> Iterator[Place]:
    """One lab for all tests: four workers on five hosts, built by worker_vm, that are members of its Kubernetes."""
    with laboratory(tmp_path_factory.mktemp("kubernetes"), TAGGED, "members", kubernetes=True) as made:
        built = made.ansible.module("worker_vm", **desired(made))
        assert built.rc == 0, built.out
        made.lab.kubernetes.wait_for(WORKERS, READY_SECONDS)
        yield made


@pytest.fixture
def jobs(members: Place) -> Jobs:
    """The jobs of the cluster; a test begins without any."""
    return Jobs.without_any(members.lab.kubernetes)
