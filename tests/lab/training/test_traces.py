"""A lab goes without a trace, also one that was killed, and also one whose node is frozen."""

from __future__ import annotations

import os
import signal
import subprocess
import threading

import pytest

from lab.hypervisor.backend import HARMS
from lab.nodes import freezer, programs
from lab.nodes.network import AUTO
from lab.nodes.programs import LabError
from lab.running import Desired, Lab
from lab.simulator import alive
from tests.lab.places import LOGIN, Traces, until

NODES_ALONE = Desired(None, AUTO)


def test_down_leaves_nothing(bare: Lab) -> None:
    traces = Traces(bare)
    before = traces()
    bare.up(NODES_ALONE)
    made = bare.node("n1")
    output = subprocess.run(
        ["ssh", *LOGIN, "-i", made["identity_file"], f"{made['user']}@{made['address']}", "hostname"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert output.stdout == "n1\n", output.stderr
    during = traces()
    assert all(during[kind] != before[kind] for kind in before if kind != "volumes"), during
    bare.down()
    assert traces() == before


@pytest.mark.parametrize("how", ["down", "up"])
def test_killed_lab_is_cleaned(bare: Lab, how: str) -> None:
    traces = Traces(bare)
    before = traces()
    bare.up(NODES_ALONE)
    bare.node("n1")
    stun = threading.Thread(target=_stun, args=(bare,), daemon=True)
    stun.start()
    container = bare.podman.containers(f"dml-lab={bare.lab}")[0]
    group = freezer.group_of(bare.podman.pid(container))
    until(lambda: freezer.is_frozen(group), "n1 is stunned")
    pid = bare.facts("hypervisor")["pid"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid), "the hypervisor is gone")
    stun.join(10)
    assert traces()["containers"] == [container]
    if how == "up":
        bare.up(NODES_ALONE)
        assert bare.hypervisor.ask("GET", "/nodes") == []
        assert traces()["containers"] == []
    bare.down()
    assert traces() == before


def test_refuses_impossible_options(bare: Lab) -> None:
    bare.up(NODES_ALONE)
    bare.node("n1")
    other = Lab("other")
    try:
        with pytest.raises(LabError, match="this machine routes"):
            other.up(Desired(None, bare.environment["LAB_NETWORK"]))
        assert Traces(other)()["namespaces"] == []
    finally:
        other.down()
    with pytest.raises(RuntimeError, match=r"n2 cannot have the address 10\.99\.0\.1/24: the lab's network is"):
        bare.node("n2", address="10.99.0.1/24")
    with pytest.raises(RuntimeError, match=f"Unknown harm gossip: use one of {', '.join(HARMS)}"):
        bare.hypervisor.ask("POST", "/nodes/n1/harm", {"kind": "gossip"})


def test_names_the_missing_root_rights_or_programs(monkeypatch: pytest.MonkeyPatch, bare: Lab) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 1000)
        with pytest.raises(LabError, match="need root"):
            bare.up(NODES_ALONE)
    monkeypatch.setattr(programs, "PROGRAMS", ("podman", "no-such-program"))
    with pytest.raises(LabError, match=r"no-such-program not found on this machine\. Run make setup-nodes"):
        bare.up(NODES_ALONE)


def _stun(lab: Lab) -> None:
    try:
        lab.hypervisor.ask("POST", "/nodes/n1/stun", {"seconds": 60})
    except OSError:  # it was killed meanwhile
        return
