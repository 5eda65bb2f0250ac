"""playbooks/fabric_check.yml with real mpirun between network namespaces, one of which sends slowly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.training import BEGIN_SECONDS, Playbook

# Slow enough for a busy machine, so that the links and not the processor set the rate.
LINK, SLOW = "8mbit", "2mbit"
NODES, NETWORK = ("w1", "w2", "w3", "w4"), "10.99.77"
SHELL = """#!/bin/sh
node=$1; shift
exec ip netns exec fc{tag}$node unshare --uts sh -c 'hostname "$0" && exec sh -c "$1"' "$node" "$*"
"""
PYTHON = """#!/bin/sh
exec ip netns exec {name} unshare --uts sh -c 'hostname {node} && exec {python} "$@"' python "$@"
"""


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


class Fabric:
    """Nodes in network namespaces with a link each to one bridge; the launcher is the first one."""

    def __init__(self, folder: Path) -> None:
        self.tag = f"{os.getpid() % 10000}"
        self.playbook = Playbook(folder)
        self.folder = folder
        shell = folder / "reach-netns"
        shell.write_text(SHELL.format(tag=self.tag))
        shell.chmod(0o755)
        self.shell = shell
        self._inventory()

    def up(self) -> None:
        self._netns("switch", "add")
        self._in("switch", "ip", "link", "add", "bridge", "type", "bridge")
        self._in("switch", "ip", "link", "set", "bridge", "up")
        for number, node in enumerate(NODES, start=1):
            self._netns(node, "add")
            ends = ("ip", "link", "add", "fab0", "type", "veth", "peer", "name", node, "netns", self._name("switch"))
            self._in(node, *ends)
            self._in(node, "ip", "address", "add", f"{NETWORK}.{number}/24", "dev", "fab0")
            for link in ("lo", "fab0"):
                self._in(node, "ip", "link", "set", link, "up")
            self._in("switch", "ip", "link", "set", node, "master", "bridge", "up")
            self.limit(node, LINK)

    def limit(self, node: str, rate: str, link: str = "fab0", burst: str = "16k") -> None:
        """Limit the rate of a link; packets larger than the burst are lost."""
        shape = ("root", "tbf", "rate", rate, "burst", burst, "latency", "400ms")
        self._in(node, "tc", "qdisc", "replace", "dev", link, *shape)

    def second_link(self, node: str) -> None:
        """Give a node another link, and send through it: the address of the node stays on the first one."""
        ends = ("ip", "link", "add", "fab1", "type", "veth", "peer", "name", f"{node}b", "netns", self._name("switch"))
        self._in(node, *ends)
        self._in(node, "ip", "link", "set", "fab1", "up")
        self._in("switch", "ip", "link", "set", f"{node}b", "master", "bridge", "up")
        for setting in ("all", "fab0", "fab1"):
            self._in(node, "sysctl", "-qw", f"net.ipv4.conf.{setting}.rp_filter=0")
        address = f"{NETWORK}.{NODES.index(node) + 1}"
        self._in(node, "ip", "route", "replace", f"{NETWORK}.0/24", "dev", "fab1", "src", address)
        self.limit(node, LINK, "fab1")

    def down(self) -> None:
        for node in (*NODES, "switch"):
            subprocess.run(["ip", "netns", "delete", self._name(node)], check=False, capture_output=True)

    def check(self, **more: Any) -> subprocess.CompletedProcess[str]:
        return self.play("fabric_check", **more)

    def scale(self, **more: Any) -> subprocess.CompletedProcess[str]:
        return self.play("scaling", training_sweep_nodes=[1], training_sweep_repeats=1, **more)

    def play(self, playbook: str, **more: Any) -> subprocess.CompletedProcess[str]:
        """Run a playbook, with the modules of each node in its namespace."""
        options = {
            "training_remote_shell": str(self.shell),
            "training_mpirun_arguments": ["--mca", "mpi_yield_when_idle", "1"],
            "training_launcher": NODES[0],
            "training_watched": [NODES[0]],
            "training_interface": "fab0",
            # Ranks that wait for the slow link use a core each.
            "training_fabric_seconds": 0.3,
            "training_fabric_repeats": 1,
            "training_fabric_bytes": 4096,
            # A busy machine wakes ranks late.
            "training_fabric_least": 0.6,
            "training_fabric_results": str(self.folder / "fabric"),
            "report_dir": str(self.folder / "report"),
            **more,
        }
        command = self.playbook.command(playbook=playbook, **options)
        command[command.index(str(self.playbook.inventory))] = str(self.inventory)
        return self.playbook.ansible.run(command, timeout=900)

    def first_round(self) -> None:
        """Wait for the end of the first round of a measurement."""
        deadline = time.monotonic() + BEGIN_SECONDS
        while not list((self.folder / "runs").glob("fabric-*/pairs.jsonl")):
            assert time.monotonic() < deadline
            time.sleep(0.2)

    def results(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted((self.folder / "fabric").glob("*/result.json"))]

    def _inventory(self) -> None:
        """Write the inventory: the interpreter of each node runs in its namespace, under its host name."""
        hosts = {}
        for node in NODES:
            program = self.folder / f"python-{node}"
            program.write_text(PYTHON.format(name=self._name(node), node=node, python=sys.executable))
            program.chmod(0o755)
            hosts[node] = {"ansible_connection": "local", "ansible_python_interpreter": str(program)}
        self.inventory = self.folder / "fabric-hosts.yml"
        self.inventory.write_text(yaml.safe_dump({"workers": {"hosts": hosts}}, sort_keys=False))

    def _name(self, node: str) -> str:
        return f"fc{self.tag}{node}"

    def _netns(self, node: str, verb: str) -> None:
        run("ip", "netns", verb, self._name(node))

    def _in(self, node: str, *words: str) -> None:
        run("ip", "netns", "exec", self._name(node), *words)


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[Fabric]:
    if os.geteuid() != 0:
        pytest.skip("network namespaces with links need root")
    one = Fabric(tmp_path)
    try:
        one.up()
        yield one
    finally:
        one.down()


def words(ran: subprocess.CompletedProcess[str]) -> str:
    return " ".join(ran.stdout.split()).replace("''", "'")


def found(result: dict[str, Any]) -> list[tuple[str, list[str]]]:
    return [(each["rule"], each["nodes"]) for each in result["findings"]]


@pytest.mark.slow
def test_faultless_network_has_no_findings(fabric: Fabric) -> None:
    ran = fabric.check()
    assert ran.returncode == 0, ran.stdout
    (result,) = fabric.results()
    assert (found(result), len(result["pairs"])) == ([], 6)
    assert all(0.004 < pair["gbits"] < 0.01 for pair in result["pairs"]), result["pairs"]
    assert {card["device"] for card in result["cards"]} == {"fab0"}


def test_names_a_slow_node_and_stops_scaling(fabric: Fabric) -> None:
    fabric.limit("w3", SLOW)
    ran = fabric.check()
    assert ran.returncode != 0
    (result,) = fabric.results()
    assert found(result) == [("slow-node", ["w3"])], result
    assert "w3 is slow with every other node" in words(ran)
    page = (fabric.folder / "report" / "training.html").read_text()
    assert "w3 is slow with every other node" in page
    scaling = fabric.scale()
    assert scaling.returncode != 0
    assert "The network between the nodes has findings" in words(scaling)


@pytest.mark.slow
def test_names_a_node_that_uses_another_card(fabric: Fabric) -> None:
    fabric.second_link("w2")
    ran = fabric.check()
    (result,) = fabric.results()
    assert found(result) == [("wrong-card", ["w2"])], result
    assert "w2 sends through fab1 and not through fab0" in words(ran)
    accepted = fabric.check(training_fabric_accepted=True)
    assert accepted.returncode == 0, accepted.stdout


@pytest.mark.slow
def test_names_a_pair_that_loses_large_packets(fabric: Fabric) -> None:
    with ThreadPoolExecutor(1) as pool:
        checked = pool.submit(fabric.check, training_fabric_stall=10, training_fabric_repeats=10)
        fabric.first_round()
        fabric.limit("w4", LINK, burst="1000")
        ran = checked.result()
    assert ran.returncode != 0
    (result,) = fabric.results()
    ((rule, nodes),) = found(result)
    assert rule == "stalled-pair" and "w4" in nodes, (result, ran.stdout)
    assert "moved no data for 10 s, so the measurement was stopped" in words(ran)
    assert len(result["pairs"]) >= 2


def test_check_mode_measures_nothing(tmp_path: Path) -> None:
    playbook = Playbook(tmp_path)
    place = {"playbook": "fabric_check", "training_fabric_results": str(tmp_path / "fabric")}
    planned = playbook.ansible.run([*playbook.command(**place), "--check"], timeout=600)
    assert planned.returncode == 0, planned.stdout
    assert "6 pairs of 4 nodes in 3 rounds by tcp, with MPI" in words(planned)
    assert not list(tmp_path.glob("fabric*")) and not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_refuses_nodes_that_train(tmp_path: Path) -> None:
    playbook = Playbook(tmp_path)
    nodes = playbook.nodes
    try:
        assert nodes.start(10_000, 0.05).changed
        nodes.training()
        refused = playbook.run(playbook="fabric_check", continued_runs="none of them")
    finally:
        nodes.stop()
    assert refused.returncode != 0
    assert "runs on this worker. Wait until it ends or stop it, with -e training_wait=SECONDS" in words(refused)
    assert not (tmp_path / "runs").exists()
