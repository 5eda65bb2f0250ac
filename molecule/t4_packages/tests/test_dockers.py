# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Docker of the stack is held, and its settings are merged with those of packages and other users."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from testinfra.host import Host

from tests.scenario import debs, node, proof, run, stack

FOLDER = Path(__file__).parents[1]
CONTAINER = stack("bare-2019", FOLDER)["container"]
PACKAGES = {one["name"]: one["version"] for one in CONTAINER["packages"]["ubuntu-18.04"]}
IMAGE = "nvidia/cuda@sha256:" + "d" * 64


@pytest.fixture(scope="module")
def host() -> Host:
    return node("u2")


def test_every_package_is_of_the_stack_and_held_though_newer_ones_are_there(host: Host) -> None:
    assert len(PACKAGES) == 8
    assert debs(host, PACKAGES) == PACKAGES
    assert set(run(host, "apt-mark showhold").split()) == set(PACKAGES)
    for name in ("docker-ce", "nvidia-docker2", "libnvidia-container1"):
        assert len(run(host, f"apt-cache madison {name}").splitlines()) == 2
    run(host, "apt-get --yes --quiet dist-upgrade")
    assert debs(host, PACKAGES) == PACKAGES


def test_each_archive_is_trusted_by_its_own_key_alone(host: Host) -> None:
    for repository, key in (("docker", "docker"), ("nvidia-docker", "nvidia-container")):
        assert f"Signed-By: /etc/apt/keyrings/dml-{key}.asc" in run(
            host, f"cat /etc/apt/dml.sources.d/dml-{repository}.sources"
        )


def test_settings_of_others_stay_beside_ours(host: Host) -> None:
    settings = json.loads(run(host, "cat /etc/docker/daemon.json"))
    assert settings["data-root"] == "/scratch/docker"
    assert settings["runtimes"]["nvidia"] == {"path": "nvidia-container-runtime", "runtimeArgs": []}
    assert settings["registry-mirrors"] == ["http://hub.example.org:5000", "http://theirs.example.org"]


def test_docker_runs_with_the_settings_and_reports_them(host: Host) -> None:
    result = json.loads(run(host, "docker info --format '{{json .}}'"))
    assert result["ServerVersion"] == CONTAINER["docker"]
    assert result["Runtimes"]["nvidia"]["path"] == "nvidia-container-runtime"
    assert result["RegistryConfig"]["Mirrors"][0] == "http://hub.example.org:5000/"
    assert run(host, "systemctl is-active docker") == "active"
    assert run(host, "systemctl is-enabled docker") == "enabled"


def test_the_image_came_once_by_its_digest(host: Host) -> None:
    assert run(host, "cat /var/lib/docker/images").split() == [IMAGE]


def test_the_proof_is_kept(host: Host) -> None:
    kept = proof(host, "container_runtime")
    assert (kept["proven"], kept["why"], kept["versions"]) == (True, "", {"docker": "18.09.7"})
    assert (kept["packages"], kept["image"], kept["gpus"]) == (PACKAGES, IMAGE, [])
