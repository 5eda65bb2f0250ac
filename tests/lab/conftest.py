# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What tests of the lab share: one lab with four workers that became nodes. It needs root, and fails without."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from lab.nodes.network import AUTO
from lab.running import Lab, Wish
from tests.integration.ansible import Ansible
from tests.integration.workers import HOSTS
from tests.lab.places import Place, wish


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A lab without a worker."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "datacentre.yml").write_text(HOSTS)
    lab = Lab(f"tests{os.environ.get('PYTEST_XDIST_WORKER', '')}")
    lab.down()  # that of a killed run
    lab.up(Wish(folder / "datacentre.yml", AUTO))
    try:
        yield Place(lab, Ansible(lab.environment, folder))
    finally:
        lab.down()


@pytest.fixture(scope="session")
def place(empty: Place) -> Place:
    """A lab with four workers, built by worker_vm."""
    built = empty.ansible.module("worker_vm", **wish(empty))
    assert built.rc == 0, built.out
    return empty


@pytest.fixture
def bare(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A lab that is not up, for nodes alone."""
    lab = Lab(f"bare{os.environ.get('PYTEST_XDIST_WORKER', '')}")
    lab.down()
    yield lab
    lab.down()
