"""Two nodes with Debian 13, whose Python is 3.13, are prepared by the roles and train with PyTorch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.ansible import Outcome
from tests.lab.benchmark import NAMES, Cluster
from tests.lab.conftest import computers
from tests.lab.images import FILES
from tests.lab.training.test_benchmark import options

pytestmark = pytest.mark.slow
STACK = Path(__file__).with_name("debian13.yml")
ENVIRONMENT = "/opt/dml/trial"
PLAYBOOK = """
- hosts: workers
  become: true
  tasks:
    - ansible.builtin.include_role: {name: dml.vsphere.python_environment}
"""
STEPS = 15


def guests(nodes: Cluster, *arguments: str, **more: Any) -> Outcome:
    """Run the playbook for guests with the stack."""
    result = json.dumps({"stack": str(STACK), "pytorch_venv_shared": True, **more})
    return nodes.ansible.playbook(
        "playbooks/guests.yml", "-i", str(nodes.inventory), "-e", result, *arguments, timeout=3600
    )


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes with the user, the settings and the OpenMPI of that stack."""
    venv = FILES / "pytorch-debian13"
    venv.mkdir(parents=True, exist_ok=True)
    with computers(tmp_path_factory.mktemp("trixie"), "trixie", f"{venv}:/opt/dml/pytorch:rw", "trixie") as made:
        done = guests(made, "--tags", "node,openmpi")
        assert done.rc == 0, done.out[-4000:]
        yield made


def test_the_nodes_have_debian_13_and_its_python(nodes: Cluster) -> None:
    for name in NAMES:
        result = nodes.inside(name, ". /etc/os-release; echo $VERSION_ID; python3 --version").split()
        assert (result[0], result[2].rpartition(".")[0]) == ("13", "3.13")


def test_verifies_openmpi_and_changes_nothing_again(nodes: Cluster) -> None:
    facts = [json.loads(nodes.inside(name, "cat /etc/ansible/facts.d/dml_openmpi.fact")) for name in NAMES]
    assert [one["proven"] for one in facts] == [True, True]
    for again in (guests(nodes, "--tags", "node,openmpi", "--check"), guests(nodes, "--tags", "node,openmpi")):
        assert again.rc == 0, again.out[-4000:]
        assert set(again.changes.values()) == {0}, again.out[-4000:]


def test_a_virtual_environment_has_packages_by_their_checksums(nodes: Cluster) -> None:
    stack = yaml.safe_load(STACK.read_text())
    expected = [one for one in stack["framework"]["packages"] if one["name"] in {"jinja2", "markupsafe"}]
    book = nodes.folder / "environment.yml"
    book.write_text(PLAYBOOK)
    variables = {
        "python_environment_folder": ENVIRONMENT,
        "python_environment_packages": expected,
        "python_environment_system_packages": stack["python"]["packages"]["debian-13"],
        "python_environment_python": stack["python"]["interpreter"],
        "python_environment_shared": False,
    }
    for changes in (True, False):
        done = nodes.ansible.playbook(book, "-i", str(nodes.inventory), "-e", json.dumps(variables), timeout=1200)
        assert done.rc == 0, done.out[-4000:]
        assert {count > 0 for count in done.changes.values()} == {changes}, done.out[-4000:]
    assert nodes.inside("n1", f"{ENVIRONMENT}/bin/python -c 'import jinja2; print(jinja2.__version__)'") == "3.1.6\n"


def test_they_train(nodes: Cluster) -> None:
    done = guests(nodes)
    assert done.rc == 0, done.out[-4000:]
    _result, result = nodes.train("debian13", **options("--steps", STEPS, "--evaluate-every", STEPS))
    assert (result["asked"]["framework"], result["proof"]["transport"]) == ("pytorch_ddp", "tcp")
