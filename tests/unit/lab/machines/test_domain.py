# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The machine of a guest: how it is emulated, what it boots from, and what its cards are plugged into."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from lab.machines.domain import Blueprint, tap, written
from lab.machines.roots import Roots
from lab.nodes.cloudinit import Guest, User
from lab.nodes.network import MANAGEMENT, RDMA, Card

ROOTS = Roots(Path("/s/engine"), Path("/s/g/root.ext4"), Path("/s/g/vmlinuz"), Path("/s/g/initrd.img"))
CARDS = (
    Card(MANAGEMENT, "00:50:56:00:00:01", "10.0.1.11/24"),
    Card(RDMA, "00:50:56:00:00:02", "10.216.1.11/16", 9000),
)
GUEST = Guest("vm-7", "worker01", "worker01", (User("debian"),), CARDS)


def made(accelerator: str = "qemu", **more: object) -> ET.Element:
    folder = Path("/lab/vm-7")
    settings = {"guestinfo.metadata": folder / "m"}
    blueprint = Blueprint(ROOTS, accelerator, 640, folder / "disk.qcow2", folder / "console.log", settings, **more)  # type: ignore[arg-type]
    return ET.fromstring(written("dml0", GUEST, blueprint))  # it is our own text


def test_two_cards_on_their_bridges_with_names_and_mtu() -> None:
    cards = made().findall("devices/interface")
    reported = [[one.find(what).attrib for what in ("mac", "source", "target", "mtu")] for one in cards]  # type: ignore[union-attr]
    assert reported == [
        [
            {"address": card.mac},
            {"bridge": card.network},
            {"dev": tap("dml0", "vm-7", number)},
            {"size": str(card.mtu)},
        ]
        for number, card in enumerate(CARDS)
    ]
    assert all(len(tap("dml0", "vm-7", number)) < 16 for number in (0, 1)), "the kernel takes 15 characters"


def test_names_of_cards_differ_between_labs_and_guests() -> None:
    assert len({tap(lab, key, 0) for lab in ("a", "b") for key in ("vm-1", "vm-2")}) == 4


@pytest.mark.parametrize(("accelerator", "cpu"), [("kvm", "host-passthrough"), ("qemu", "maximum")])
def test_the_processor_is_that_of_the_accelerator(accelerator: str, cpu: str) -> None:
    machine = made(accelerator)
    assert (machine.get("type"), machine.find("cpu").get("mode")) == (accelerator, cpu)  # type: ignore[union-attr]


def test_a_guest_of_one_processor_is_emulated_with_memory_barriers() -> None:
    """QEMU 7.2 leaves them out where there can be no second one; cards of virtio then lose wake-ups."""
    processors = made().find("vcpu")
    assert processors is not None
    assert (processors.get("current"), processors.text) == ("1", "2")


def test_the_own_disk_can_be_written_and_others_cannot() -> None:
    disks = made(disks=(Path("/s/share-1.ext4"), Path("/s/share-2.ext4"))).findall("devices/disk")
    reported = [
        (
            disk.find("target").get("dev"),  # type: ignore[union-attr]
            disk.find("source").get("file"),  # type: ignore[union-attr]
            disk.find("readonly") is not None,
            disk.find("shareable") is not None,
        )
        for disk in disks
    ]
    assert reported == [
        ("vda", "/lab/vm-7/disk.qcow2", False, False),
        ("vdb", "/s/share-1.ext4", True, True),
        ("vdc", "/s/share-2.ext4", True, True),
    ]


def test_cloud_init_finds_a_machine_of_vmware_and_its_settings() -> None:
    machine = made()
    product, entry = (machine.find(f"sysinfo[@type='{kind}']//entry") for kind in ("smbios", "fwcfg"))
    assert product is not None and (product.get("name"), product.text) == ("product", "VMware7,1")
    assert entry is not None and entry.attrib == {"name": "opt/dml/guestinfo.metadata", "file": "/lab/vm-7/m"}


def test_two_labs_with_one_machine_have_two_identities() -> None:
    blueprint = Blueprint(ROOTS, "qemu", 640, Path("/d"), Path("/c"), {})
    found = [ET.fromstring(written(lab, GUEST, blueprint)).findtext("uuid") for lab in ("a", "b", "a")]
    assert found[0] == found[2] != found[1]
