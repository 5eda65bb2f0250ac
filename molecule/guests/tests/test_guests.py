"""The results of the roles on each node, verified independently of the roles."""

from __future__ import annotations

import json
import urllib.request

import pytest
from testinfra.host import Host

from tests.scenario import ROOT, node, proof, run, stack, workers

STACK = stack("lab-cpu")
NODES = workers()
PINNED = STACK["openmpi"]["packages"]["debian-12"]
PYTHON = [*STACK["framework"]["packages"], *STACK["horovod"]["packages"], STACK["horovod"] | {"name": "horovod"}]


@pytest.fixture(params=NODES)
def each(request: pytest.FixtureRequest) -> Host:
    """Return every node in turn."""
    return node(request.param)


def test_finds_two_nodes() -> None:
    assert len(NODES) == 2


@pytest.mark.parametrize("package", PINNED, ids=lambda package: str(package["name"]))
def test_packages_are_at_their_versions_and_held(each: Host, package: dict[str, str]) -> None:
    output = run(each, "dpkg-query --show --showformat '${db:Status-Abbrev}|${Version}' " + package["name"])
    assert output == f"hi |{package['version']}"


def test_an_upgrade_leaves_them_alone(each: Host) -> None:
    output = run(each, "apt-get --simulate --quiet dist-upgrade")
    assert not [line for line in output.splitlines() if line.startswith("Inst") and "mpi" in line]


def test_installs_only_python_packages_of_the_stack(each: Host) -> None:
    listed = json.loads(run(each, "/opt/dml/horovod/bin/pip list --disable-pip-version-check --format json"))
    there = {one["name"].lower().replace("_", "-"): one["version"] for one in listed}
    assert {name: version for name, version in there.items() if name not in {"pip", "setuptools"}} == {
        one["name"]: one["version"] for one in PYTHON
    }


def test_every_role_verifies_its_result(each: Host) -> None:
    assert proof(each, "node")["proven"] is True
    assert proof(each, "openmpi")["proven"] is True
    horovod = proof(each, "horovod")
    assert horovod["proven"] is True
    assert horovod["sum"] == 3.0
    assert horovod["nodes"] == NODES


def test_versions_are_equal() -> None:
    for role in ("openmpi", "horovod"):
        first, second = (proof(node(name), role) for name in NODES)
        assert first == second


def test_horovod_was_compiled_on_one_node_at_most() -> None:
    counts = [run(node(name), "cat /var/cache/dml/horovod/*/compilations 2>/dev/null | wc -l") for name in NODES]
    assert sum(int(count) for count in counts) <= 1


def test_every_package_was_downloaded_once_at_most() -> None:
    hypervisor = json.loads((ROOT / ".cache" / "lab" / "molecule-guests" / "hypervisor.json").read_text())
    with urllib.request.urlopen(f"{hypervisor['address']}/downloads") as answer:
        downloads = json.load(answer)
    assert {name: times for name, times in downloads.items() if times > 1} == {}
    kept = [path.name for path in (ROOT / ".cache" / "lab" / "podman" / "packages").iterdir()]
    for name in ("tensorflow_cpu-2.15.1", "openmpi-bin_4.1.4"):
        assert len([one for one in kept if name in one]) == 1


def test_a_peer_with_another_host_key_is_refused(each: Host) -> None:
    for peer in NODES:
        run(each, f"runuser -u dml -- ssh {peer} true")
        # Testinfra would interpret 255 as a failure of its ssh connection.
        refused = each.run(f"runuser -u dml -- ssh -o GlobalKnownHostsFile=/dev/null {peer} true || exit 1")
        assert refused.rc == 1
        assert "Host key verification failed" in refused.stderr


def test_no_keepalive_gives_a_silent_peer_up(each: Host) -> None:
    client = run(each, f"runuser -u dml -- ssh -G {NODES[-1]}").splitlines()
    server = run(each, "sshd -T").splitlines()
    assert {"serveraliveinterval 0", "tcpkeepalive no"} <= set(client)
    assert {"clientaliveinterval 0", "tcpkeepalive no"} <= set(server)


def test_the_firewall_admits_only_peers(each: Host) -> None:
    status = run(each, "ufw status verbose")
    assert "Status: active" in status and "deny (incoming)" in status
    assert status.count("22,10000:10999/tcp") == len(NODES)
