"""The role container_runtime with Docker itself, as Debian has it; a node of the lab lets it run, but no container."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.nodes.network import AUTO
from lab.running import Desired, Lab
from tests.integration.ansible import Ansible, Outcome
from tests.lab.places import LOGIN, ansible_login

NODE, USER = "d1", "debian"
SETTINGS = "/etc/docker/daemon.json"
# Debian 12 has no other; what a node may not do is switched off.
VERSION = "20.10.24"
HERE = {"iptables": False, "ip-forward": False, "bridge": "none", "storage-driver": "vfs"}
MIRROR = "http://hub.example.org:5000"


class Docker:
    """A node with Docker, and the role that works on it; a program that is there stands for NVIDIA's runtime."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.ansible, self.key = Ansible(lab.environment, folder), str(lab.key)
        self.address = str(lab.node(NODE, USER)["address"])
        node = {**ansible_login(self.key, USER), "ansible_host": self.address}
        self.inventory, self.play = folder / "hosts.yml", folder / "play.yml"
        self.inventory.write_text(yaml.safe_dump({"all": {"hosts": {NODE: node}}}))
        roles = [{"role": "dml.vsphere.container_runtime"}]
        self.play.write_text(yaml.safe_dump([{"hosts": NODE, "become": True, "roles": roles}]))

    def converge(self, *options: str, **settings: Any) -> Outcome:
        """Run the role."""
        desired_workers = {
            "container_runtime_version": VERSION,
            "container_runtime_packages": [{"name": "docker.io"}],
            "container_runtime_nvidia": "/usr/sbin/runc",
            "container_runtime_mirrors": [MIRROR],
            "container_runtime_settings": {**HERE, **settings},
        }
        return self.ansible.playbook(
            str(self.play), "-i", str(self.inventory), "-e", json.dumps(desired_workers), *options, timeout=1200
        )

    def inside(self, command: str) -> str:
        """Return what a command says on the node, as root."""
        login = ["ssh", *LOGIN, "-i", self.key, f"{USER}@{self.address}", f"sudo {command}"]
        return subprocess.run(login, capture_output=True, text=True, timeout=60, check=True).stdout

    def info(self) -> dict[str, Any]:
        """Return what Docker reports about itself."""
        return dict(json.loads(self.inside("docker info --format '{{json .}}'")))

    def settings(self) -> dict[str, Any]:
        return dict(json.loads(self.inside(f"cat {SETTINGS}")))


@pytest.fixture(scope="module")
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Docker]:
    """A node on which the role was run once."""
    lab = Lab("docker")
    lab.down()
    lab.up(Desired(None, AUTO, []))
    try:
        made = Docker(lab, tmp_path_factory.mktemp("docker"))
        looked = made.converge("--check")
        assert looked.rc == 0, looked.out
        assert "docker" not in made.inside("ls /etc /usr/bin")
        installed = made.converge()
        assert installed.rc == 0, installed.out
        yield made
    finally:
        lab.down()


def test_docker_runs_with_the_requested_settings(docker: Docker) -> None:
    result = docker.info()
    assert result["ServerVersion"].startswith(VERSION)
    assert result["Runtimes"]["nvidia"]["path"] == "/usr/sbin/runc"
    assert result["RegistryConfig"]["Mirrors"] == [f"{MIRROR}/"]
    kept = json.loads(docker.inside("cat /etc/ansible/facts.d/dml_container_runtime.fact"))
    assert (kept["proven"], kept["versions"]) == (True, {"docker": result["ServerVersion"]})


def test_a_second_run_changes_nothing(docker: Docker) -> None:
    before = docker.inside("cat /run/docker.pid")
    again = docker.converge()
    assert again.rc == 0, again.out
    assert "changed=0" in again.out
    assert docker.inside("cat /run/docker.pid") == before


def test_reverts_settings_with_which_docker_does_not_start(docker: Docker) -> None:
    before = docker.settings()
    refused = docker.converge(**{"no-such-setting": True})
    message = " ".join(refused.out.split())
    assert refused.rc != 0
    assert "Docker did not start on d1 with its new settings, and runs with the previous ones again" in message
    assert "no-such-setting" in message
    assert docker.settings() == before
    assert docker.info()["ServerVersion"].startswith(VERSION)


def test_keeps_and_activates_settings_of_other_users(docker: Docker) -> None:
    assert docker.info()["LoggingDriver"] == "json-file"
    theirs = {**docker.settings(), "log-driver": "journald"}
    docker.inside(f"sh -c 'echo {json.dumps(json.dumps(theirs))} > {SETTINGS}'")
    done = docker.converge()
    assert done.rc == 0, done.out
    assert docker.settings() == theirs
    assert docker.info()["LoggingDriver"] == "journald"
