"""Faults on the last node: the run repairs each fault, or fails with an error that names it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host

from tests.scenario import GUESTS, ROOT, meet, node, proof, run, start, workers

CACHE = ROOT / ".cache"
RING = Path(__file__).with_name("ring.yml")
VERIFIER = Path(__file__).parents[1] / "tests" / "test_guests.py"
NODES = workers()
VICTIM = NODES[-1]
# A short compilation: it leaves out the parts for the frameworks.
WITHOUT = ("GLOO", "TENSORFLOW", "PYTORCH", "MXNET")
WITHOUT_FRAMEWORK = {"HOROVOD_WITH_MPI": "1", **{f"HOROVOD_WITHOUT_{what}": "1" for what in WITHOUT}}
SSHD = "/etc/ssh/sshd_config.d/00-dml.conf"
# A package with a version that the stack does not have.
PLANT_DEB = r"""
set -e; rm -rf /tmp/planted; mkdir -p /tmp/planted/DEBIAN
printf 'Package: openmpi-common\nVersion: 9:9-1\nArchitecture: all\n' > /tmp/planted/DEBIAN/control
printf 'Maintainer: none <none@localhost>\nDescription: bait\n' >> /tmp/planted/DEBIAN/control
dpkg-deb --build /tmp/planted /tmp/planted.deb && dpkg --install --force-all /tmp/planted.deb
"""
# A dpkg that reports success when it should hold a package, but does not hold it.
DEAF = r"""
printf '#!/bin/sh\ncase "$*" in *--set-selections*) cat >/dev/null;; *) exec /usr/bin/dpkg "$@";; esac\n' \
  > /usr/local/sbin/dpkg
chmod +x /usr/local/sbin/dpkg && apt-mark unhold libopenmpi3
"""


@pytest.fixture(scope="module")
def victim() -> Host:
    return node(VICTIM)


def converge(tags: str, *, good: bool, cache: Path = CACHE, playbook: Path = GUESTS, **variables: Any) -> str:
    """Run the roles with these tags on all nodes, and return the output in one line."""
    running = start(playbook, "--tags", tags, "-e", json.dumps(variables), cache=cache)
    output, _nothing = running.communicate(timeout=1500)
    assert (running.returncode == 0) == good, output
    return " ".join(output.split())


def verifier(*only: str) -> set[str]:
    """Return the tests of the scenario that fail now."""
    command = [sys.executable, "-m", "pytest", VERIFIER, "-k", " or ".join(only)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stdout
    return set(re.findall(r"^FAILED [^ ]*::(\S+)", done.stdout, re.MULTILINE))


def why(host: Host, role: str) -> str:
    """Return the reason of a failed proof from the node."""
    kept = proof(host, role)
    assert kept["proven"] is False
    return str(kept["why"])


def test_restores_versions_and_holds_where_allowed(victim: Host) -> None:
    run(victim, PLANT_DEB)
    run(victim, "apt-mark unhold libopenmpi3")
    assert run(victim, "dpkg-query --show openmpi-common").split()[1] == "9:9-1"
    test = "test_packages_are_at_their_versions_and_held"
    assert verifier(test) == {f"{test}[{VICTIM}-openmpi-common]", f"{test}[{VICTIM}-libopenmpi3]"}
    converge("openmpi", good=False)
    assert f"{VICTIM} has packages with other versions" in why(victim, "openmpi")
    assert "openmpi-common" in why(victim, "openmpi")
    mended = converge("openmpi", good=True, packages_replace=True)
    assert f"changed: [{VICTIM}] => (item=libopenmpi3)" in mended
    assert run(victim, "dpkg-query --show openmpi-common").split()[1] == "4.1.4-3"
    assert {"libopenmpi3", "openmpi-common"} <= set(run(victim, "apt-mark showhold").split())


def test_a_hold_that_is_not_kept_fails(victim: Host) -> None:
    run(victim, DEAF)
    output = converge("openmpi", good=False)
    run(victim, "rm /usr/local/sbin/dpkg && apt-mark hold libopenmpi3")
    assert f"The packages of {VICTIM} are not as they should be: The package libopenmpi3 is not held at " in output
    assert "libopenmpi3 is not held" in why(victim, "openmpi")


def test_names_both_versions_when_ranks_differ(victim: Host) -> None:
    output = converge("openmpi", good=False, openmpi_version="4.1.5")
    assert "The ranks are linked to OpenMPI 4.1.4, not 4.1.5." in output
    assert "not 4.1.5" in why(victim, "openmpi")


def test_names_a_version_that_no_archive_has(victim: Host) -> None:
    converge("openmpi", good=False, openmpi_packages=[{"name": "hello", "version": "99"}])
    assert "no available installation candidate for hello=99" in why(victim, "openmpi")


def test_wrong_checksum_fails_with_the_words_of_pip(victim: Host) -> None:
    wrong = [{"name": "six", "version": "1.17.0", "sha256": "0" * 64}]
    converge("horovod", good=False, horovod_packages=wrong, horovod_venv="/opt/dml/planted")
    result = why(victim, "horovod")
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in result
    assert "Expected sha256 " + "0" * 64 in result


def test_refuses_a_wheel_changed_on_the_controller(victim: Host, tmp_path: Path) -> None:
    shutil.copytree(CACHE / "horovod", tmp_path / "horovod")
    for wheel in tmp_path.glob("horovod/*/*.whl"):
        wheel.write_bytes(wheel.read_bytes() + b"\0")
    converge("horovod", good=False, cache=tmp_path)
    assert "on the controller was changed after the compilation: its SHA-256 is" in why(victim, "horovod")


def test_a_node_without_its_device_fails(victim: Host) -> None:
    output = converge("rdma", good=False, rdma_expected=True, rdma_memlock="8192")
    words = "No device was found: check that the VM has an RDMA card"
    assert f"The RDMA device of {VICTIM} does not match its settings: {words}" in output
    assert words in why(victim, "rdma")


def test_each_node_reaches_the_next_through_the_firewall() -> None:
    output = converge("all", good=True, playbook=RING)
    for writer, reader in zip(NODES, [*NODES[1:], NODES[0]], strict=True):
        assert f"The bandwidth from planted0 of {writer} to {reader}, in Gbit/s: 23.55." in output


def test_slow_ring_fails_and_names_the_pairs() -> None:
    output = converge("all", good=False, playbook=RING, rdma_least_gbits=40)
    assert f"ib_write_bw from {NODES[0]} to {NODES[1]} measured 23.55 Gbit/s, less than 40." in output


def test_names_a_keepalive_that_would_end_a_job(victim: Host) -> None:
    run(victim, "printf 'Host *\\n  ServerAliveInterval 2\\n' > /etc/ssh/ssh_config.d/00-a.conf")
    output = converge("node", good=False)
    run(victim, "rm /etc/ssh/ssh_config.d/00-a.conf")
    assert "ssh's serveraliveinterval gives up on a silent node after 6 s: a stun may take 100 s." in output
    assert "serveraliveinterval" in why(victim, "node")


def test_loads_settings_that_a_killed_run_wrote(victim: Host) -> None:
    run(victim, f"touch {SSHD}")
    _before, _title, after = converge("node", good=True).partition("Reload the settings of sshd]")
    assert f"changed: [{VICTIM}]" in after.partition("TASK [")[0]
    assert run(victim, f"find {SSHD} -newer /run/sshd.pid") == ""


def test_compiles_horovod_once_and_fails_without_the_framework(victim: Host, tmp_path: Path) -> None:
    # A new recipe each time, so that the nodes do not have the wheel yet.
    desired_workers = {"horovod_build_environment": {**WITHOUT_FRAMEWORK, "PLANTED": str(tmp_path)}}
    with (tmp_path / "log").open("w") as out:
        killed = start(GUESTS, "--tags", "horovod", "-e", json.dumps(desired_workers), cache=tmp_path, out=out)
        compiling = meet(killed, node(NODES[0]), "pgrep -f [p]ip.wheel")
        killed.kill()
        killed.wait()
    assert compiling, (tmp_path / "log").read_text()
    assert not list(tmp_path.glob("horovod/*/built.json"))
    converge("horovod", good=False, cache=tmp_path, **desired_workers)
    (kept,) = tmp_path.glob("horovod/*/built.json")
    assert len(list(kept.parent.glob("horovod-*.whl"))) == 1
    compilations = f"cat /var/cache/dml/horovod/{kept.parent.name}/compilations 2>/dev/null | wc -l"
    assert [int(run(node(name), compilations)) for name in NODES] == [1, 0]
    assert "reinstall Horovod with HOROVOD_WITH_TENSORFLOW=1" in why(victim, "horovod")


def test_nodes_of_different_versions_fail_and_are_named(victim: Host) -> None:
    fact = "/etc/ansible/facts.d/dml_node.fact"
    run(victim, f'cp -p {fact} /root/kept && sed -i \'s/"system": "[^"]*"/"system": "other"/\' {fact}')
    output = converge("versions", good=False)
    run(victim, f"mv /root/kept {fact}")
    assert re.search(rf"system is Debian 12[.0-9]* on {', '.join(NODES[:-1])} and other on {VICTIM}[.]", output), output
