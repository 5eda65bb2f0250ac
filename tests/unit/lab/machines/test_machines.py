# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The backend of virtual machines: where a guest is, what it boots with, and what becomes of one that the lab broke."""

from __future__ import annotations

import base64
import ipaddress
import json
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import pytest

from lab.hypervisor.backend import Move
from lab.machines import machines as module
from lab.machines.health import LabFailure
from lab.machines.machines import Machines
from lab.machines.roots import Roots
from lab.nodes.cloudinit import guest
from lab.nodes.network import Network, address_for
from lab.nodes.programs import LabError

QUICK = Move(0.0, 0.0)
METADATA = {
    "local-hostname": "worker01",
    "network": {
        "ethernets": {
            "management": {"match": {"macaddress": address_for("m")}, "addresses": ["10.0.1.11/24"]},
            "rdma0": {"match": {"macaddress": address_for("r")}, "addresses": ["10.216.1.11/16"], "mtu": 9000},
        }
    },
}
EXTRA_CONFIG = {"guestinfo.metadata": json.dumps(METADATA), "sched.cpu.min": "1"}


class Host:
    """A libvirtd of which the guests have a boot id; ``fault`` fails what ``virsh`` is asked first by that name."""

    boot_ids: ClassVar[dict[str, str]] = {}
    fault = ""

    def __init__(self, lab: str, number: int, name: str, folder: Path) -> None:
        self.number, self.name, self.address = number, name, f"198.18.0.{number}"
        self.requests: list[str] = []

    def start(self, roots: Roots, shared: Sequence[Path]) -> None:
        self.requests.append("start")

    def virsh(self, *words: str, refused: Sequence[str] = ()) -> str:
        self.requests.append(" ".join(words[:2]))
        if words[0] == Host.fault:
            raise LabError(f"virsh {words[0]} failed")
        if words[0] == "qemu-agent-command":
            return json.dumps({"return": self._answer(words[3], json.loads(words[4])["execute"])})
        return "running\n" if words[0] == "domstate" else ""

    def command(self, *words: str) -> list[str]:
        return ["false" if Host.fault == words[0] else "true"]

    def inside(self, *words: str) -> list[str]:
        Path(words[-1]).touch()
        return ["true"]

    def _answer(self, key: str, command: str) -> Any:
        boot_id = base64.b64encode(Host.boot_ids.get(key, "first").encode()).decode()
        answers = {"guest-get-time": int(time.time() * 1e9), "guest-file-read": {"buf-b64": boot_id}}
        return answers.get(command, 0)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    """A backend on which one guest runs, on the host a."""
    network = Network("dml0")
    network.subnet = ipaddress.IPv4Network("10.0.1.0/24")
    roots = Roots(Path("/engine"), Path("/g/root.ext4"), Path("/g/vmlinuz"), Path("/g/initrd.img"))
    Host.boot_ids, Host.fault = {}, ""
    with mock.patch.object(module, "Host", Host), mock.patch.object(module, "AGENT_SECONDS", 0):
        made = Machines("dml0", tmp_path, network, roots, "qemu")
        made.start(guest("vm-7", "worker01", EXTRA_CONFIG), "a")
        yield made


def at(machines: Machines) -> str:
    return machines._place("vm-7").name


def booted_with(machines: Machines) -> ET.Element:
    return ET.fromstring((machines.folder / "guests" / "vm-7" / "machine.xml").read_text())  # our own


def test_a_guest_boots_with_the_words_of_its_machine_on_the_host_that_was_named(machines: Machines) -> None:
    folder = machines.folder / "guests" / "vm-7"
    assert at(machines) == "a"
    assert (folder / "guestinfo.metadata").read_text() == EXTRA_CONFIG["guestinfo.metadata"]
    assert not (folder / "sched.cpu.min").exists()
    assert [card.address for card in machines.known["vm-7"].cards] == ["10.0.1.11/24", "10.216.1.11/16"]


def test_finds_and_reports_an_address_that_was_left_open(machines: Machines) -> None:
    started = machines.start(guest("vm-8", "worker02", {}), "a")
    result = json.loads((machines.folder / "guests" / "vm-8" / "guestinfo.metadata").read_text())
    assert started.cards[0].address == "10.0.1.100/24"
    assert result["network"]["ethernets"]["management"]["addresses"] == ["10.0.1.100/24"]


def test_a_host_is_started_when_it_is_first_needed_and_once(machines: Machines) -> None:
    assert machines.host("b").number == 2
    assert machines.host("b") is machines.host("b")
    assert machines.host("b").requests == ["start"]  # type: ignore[attr-defined]


def test_after_a_move_the_guest_is_at_its_target(machines: Machines) -> None:
    machines.move("vm-7", "b", QUICK, lambda _percent: None)
    assert at(machines) == "b"
    machines.stop("vm-7")
    assert machines.host("b").requests[-1] == "destroy vm-7"  # type: ignore[attr-defined]


def test_after_a_failed_move_it_is_at_its_source_and_can_be_moved_again(machines: Machines) -> None:
    Host.fault = "migrate"
    with pytest.raises(LabError) as raised:
        machines.move("vm-7", "b", QUICK, lambda _percent: None)
    assert not isinstance(raised.value, LabFailure)
    assert at(machines) == "a"
    Host.fault = ""
    machines.move("vm-7", "b", QUICK, lambda _percent: None)
    assert at(machines) == "b"


def test_a_guest_broken_by_the_lab_is_marked_and_left_alone_until_power_off(machines: Machines) -> None:
    def reboot(percent: int) -> None:
        Host.boot_ids["vm-7"] = "second"

    words = "The lab failed, not the job: the move damaged vm-7: it rebooted"
    with pytest.raises(LabFailure, match=words):
        machines.move("vm-7", "b", QUICK, reboot)
    for again in (lambda: machines.move("vm-7", "a", QUICK, reboot), lambda: machines.stun("vm-7", 0)):
        with pytest.raises(LabFailure, match=words):
            again()
    machines.stop("vm-7")
    machines.start(guest("vm-7", "worker01", EXTRA_CONFIG), "a")
    machines.stun("vm-7", 0)


def test_a_guest_whose_agent_is_silent_is_not_moved_at_all(machines: Machines) -> None:
    Host.fault = "qemu-agent-command"
    with pytest.raises(LabError) as raised:
        machines.move("vm-7", "b", QUICK, lambda _percent: None)
    assert not isinstance(raised.value, LabFailure)
    assert "suspend vm-7" not in machines.host("a").requests  # type: ignore[attr-defined]


def test_a_lost_rdma_card_is_missing_from_the_next_boot_on(machines: Machines) -> None:
    assert len(booted_with(machines).findall("devices/interface")) == 2
    machines.harm("vm-7", "lose_rdma")
    machines.stop("vm-7")
    machines.start(guest("vm-7", "worker01", EXTRA_CONFIG), "a")
    (card,) = booted_with(machines).findall("devices/interface/source")
    assert card.get("bridge") == "management"
    machines.remove("vm-7")
    machines.start(guest("vm-7", "worker01", EXTRA_CONFIG), "a")
    assert len(booted_with(machines).findall("devices/interface")) == 2


def test_unknown_harms_and_guests_are_refused(machines: Machines) -> None:
    with pytest.raises(LabError, match="Unknown harm gossip: use one of kill, unplug, plug, lose_rdma"):
        machines.harm("vm-7", "gossip")
    with pytest.raises(LabError, match="The machine vm-9 does not run"):
        machines.stun("vm-9", 1)
