"""An interpreter that the distribution does not have comes to a node from an archive, by its own role."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.ansible import Outcome
from tests.lab.benchmark import SERVED, Cluster
from tests.lab.conftest import computers
from tests.lab.images import FILES, interpreter

pytestmark = pytest.mark.slow
VENV = "/opt/dml/trial"
PLAYBOOK = """
- hosts: n1
  become: true
  tasks:
    - ansible.builtin.include_role: {name: dml.vsphere.python_environment}
"""
WHICH = "import sys; print(sys.base_prefix, '.'.join(map(str, sys.version_info[:3])))"


class Node:
    """A node, and the part of the role that fills an environment."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.python = cluster, interpreter()
        shutil.copy(FILES / self.python["archive"]["path"], cluster.served)
        self.book = cluster.folder / "framework.yml"
        self.book.write_text(PLAYBOOK)
        self.archive = {"url": f"file://{SERVED}/{self.python['archive']['path']}", **self.python["archive"]}
        del self.archive["base"], self.archive["path"]

    def __call__(self, *arguments: str, **more: Any) -> Outcome:
        variables = {
            "python_environment_system_packages": [{"name": "unzip"}, {"name": "python3-venv"}],
            "python_environment_folder": VENV,
            "python_environment_shared": False,
            "python_environment_python": self.python["interpreter"],
            "python_environment_archive": self.archive,
            "python_environment_prefix": self.python["prefix"],
            **more,
        }
        where = ("-i", str(self.cluster.inventory), "-e", json.dumps(variables))
        return self.cluster.ansible.playbook(self.book, *where, *arguments, timeout=600)

    def changes(self, *arguments: str, **more: Any) -> int:
        """Run it, which must go well; how many tasks changed something."""
        done = self(*arguments, **more)
        assert done.rc == 0, done.out[-4000:]
        return done.changes["n1"]

    def of(self, python: str) -> str:
        """Return what an interpreter says of itself."""
        return self.cluster.inside("n1", f'{python} -c "{WHICH}"').strip()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("interpreter")
    (folder / "venv").mkdir()
    with computers(folder, "interpreter", f"{folder / 'venv'}:/opt/dml/horovod:rw") as made:
        yield Node(made)


def test_unpacks_once_and_builds_the_environment_with_it(node: Node) -> None:
    assert node("--check").rc == 0
    assert node.cluster.inside("n1", f"ls -d {node.python['prefix']} {VENV}", check=False) == ""
    assert node.changes() > 0
    expected = f"{node.python['prefix']} 3.7.9"
    assert [node.of(node.python["interpreter"]), node.of(f"{VENV}/bin/python")] == [expected, expected]
    assert node.changes() == 0


def test_another_interpreter_recreates_the_environment(node: Node) -> None:
    assert node.changes(python_environment_python="/usr/bin/python3", python_environment_archive={}) > 0
    assert node.of(f"{VENV}/bin/python").startswith("/usr 3.11.")
    assert node.changes(python_environment_python="/usr/bin/python3", python_environment_archive={}) == 0


def test_refuses_a_foreign_folder_and_a_changed_archive(node: Node) -> None:
    node.cluster.inside("n1", "sudo mkdir -p /opt/theirs && sudo touch /opt/theirs/kept")
    refused = node(python_environment_prefix="/opt/theirs")
    message = " ".join(refused.out.split())
    assert refused.rc != 0 and "the folder exists, and this role did not create it" in message
    assert node.cluster.inside("n1", "ls /opt/theirs") == "kept\n"
    node.cluster.inside("n1", "sudo ln -s /opt/theirs /opt/linked && sudo python3 -m venv /opt/mine")
    node.cluster.inside("n1", "sudo mkdir -p /opt/mine/lib/python3.11/site-packages/mine-1.0.dist-info")
    node.cluster.inside(
        "n1",
        "printf 'Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n' | "
        "sudo tee /opt/mine/lib/python3.11/site-packages/mine-1.0.dist-info/METADATA",
    )
    for folder in ("/opt/theirs", "/opt/linked", "/opt/mine"):
        refused = node(python_environment_folder=folder)
        message = " ".join(refused.out.split())
        assert refused.rc != 0 and "the folder contains files, and this role did not create it" in message, message
    assert node.cluster.inside("n1", "ls /opt/theirs") == "kept\n"
    assert "mine" in node.cluster.inside("n1", "/opt/mine/bin/python -m pip list")
    other = node(python_environment_archive={**node.archive, "sha256": "0" * 64})
    assert other.rc != 0 and "0" * 64 in other.out
    assert node.of(node.python["interpreter"]) == f"{node.python['prefix']} 3.7.9"
