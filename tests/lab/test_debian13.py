# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Two nodes with Debian 13 become workers by the playbook for guests, and train with PyTorch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.benchmark import NAMES, Cluster
from tests.lab.conftest import computers
from tests.lab.images import FILES
from tests.lab.test_benchmark import options

pytestmark = pytest.mark.slow
STACK = Path(__file__).with_name("debian13.yml")
STEPS = 15


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes with that stack, whose packages lie where an earlier run has left them."""
    venv = FILES / "pytorch-debian13"
    venv.mkdir(parents=True, exist_ok=True)
    with computers(tmp_path_factory.mktemp("trixie"), "trixie", f"{venv}:/opt/dml/pytorch:rw", "trixie") as made:
        made.build(str(STACK), pytorch_venv_shared=True)
        yield made


def test_the_nodes_have_debian_13_and_its_python(nodes: Cluster) -> None:
    for name in NAMES:
        assert nodes.inside(name, ". /etc/os-release; echo $VERSION_ID").strip() == "13"
        assert nodes.inside(name, "/opt/dml/pytorch/bin/python --version").startswith("Python 3.13.")


def test_the_roles_verify_openmpi_and_pytorch(nodes: Cluster) -> None:
    for role in ("openmpi", "pytorch"):
        facts = [json.loads(nodes.inside(name, f"cat /etc/ansible/facts.d/dml_{role}.fact")) for name in NAMES]
        assert [one["proven"] for one in facts] == [True, True]


def test_a_second_run_changes_nothing(nodes: Cluster) -> None:
    again = nodes.ansible.playbook(
        "playbooks/guests.yml", "-i", str(nodes.inventory), "-e", f"stack={STACK}", "-e", "pytorch_venv_shared=true"
    )
    assert again.rc == 0, again.out
    assert sum(again.changes.values()) == 0, again.out


def test_they_train(nodes: Cluster) -> None:
    _said, result = nodes.train("debian13", **options("--steps", STEPS, "--evaluate-every", STEPS))
    assert (result["asked"]["framework"], result["proof"]["transport"]) == ("pytorch_ddp", "tcp")
