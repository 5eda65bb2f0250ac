# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The machine of a guest, in the words of libvirt."""

from __future__ import annotations

import hashlib
import uuid
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.machines.roots import Roots
from lab.nodes.cloudinit import Guest
from lab.nodes.network import Card

KVM, TCG = "kvm", "qemu"
# The oldest kind that this QEMU and later ones have with PCI Express.
MACHINE = "pc-q35-7.2"
# cloud-init takes a machine for VMware's by its product; the names of cards are those of the lab's other guests.
PRODUCT = "VMware7,1"
COMMAND_LINE = (
    "root=/dev/vda ro console=ttyS0 net.ifnames=0 mitigations=off audit=0 fsck.mode=skip quiet loglevel=5 "
    # On a machine that has much to do an emulated guest is slower than systemd's patience.
    "systemd.default_timeout_start_sec=900 systemd.service_watchdogs=no"
)
AGENT = "org.qemu.guest_agent.0"


@dataclass(frozen=True)
class Blueprint:
    """All of which a machine is made besides its guest."""

    roots: Roots
    accelerator: str
    memory_mib: int
    overlay: Path
    console: Path
    settings: Mapping[str, Path]  # what the guest reads by the firmware: a file for each
    disks: Sequence[Path] = ()  # read-only ones, after the first


def written(lab: str, guest: Guest, made: Blueprint) -> str:
    """The XML of a machine."""
    top = ET.Element("domain", type=made.accelerator)
    _text(top, "name", guest.key)
    _text(top, "uuid", str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{guest.key}.{lab}")))
    _text(top, "memory", str(made.memory_mib), unit="MiB")
    # One, and a place for another: before 8.1 QEMU emulates a guest that can have but one without memory barriers.
    # Its network cards lose wake-ups by that, and a queue then stands still for ever.
    _text(top, "vcpu", "2", current="1")
    _boot(top, made)
    features = ET.SubElement(top, "features")
    for name in ("acpi", "apic"):
        ET.SubElement(features, name)
    ET.SubElement(top, "cpu", mode="host-passthrough" if made.accelerator == KVM else "maximum")
    # A guest that resets itself boots again; one that crashes stays as it is, to be looked at.
    for event, then in (("on_poweroff", "destroy"), ("on_reboot", "restart"), ("on_crash", "preserve")):
        _text(top, event, then)
    devices = ET.SubElement(top, "devices")
    _text(devices, "emulator", "/usr/bin/qemu-system-x86_64")
    _disk(devices, made.overlay, "vda", "qcow2")
    for number, disk in enumerate(made.disks):
        _disk(devices, disk, f"vd{chr(ord('b') + number)}", "raw", is_shared=True)
    for number, card in enumerate(guest.cards):
        _card(devices, card, tap(lab, guest.key, number))
    _serial(devices, made.console)
    return ET.tostring(top, encoding="unicode")


def tap(lab: str, key: str, number: int) -> str:
    """The name of a card of a guest on its host."""
    return f"v{hashlib.sha256(f'{lab} {key}'.encode()).hexdigest()[:8]}-{number}"


def _boot(top: ET.Element, made: Blueprint) -> None:
    system = ET.SubElement(top, "os")
    _text(system, "type", "hvm", arch="x86_64", machine=MACHINE)
    _text(system, "kernel", str(made.roots.kernel))
    _text(system, "initrd", str(made.roots.initrd))
    _text(system, "cmdline", COMMAND_LINE)
    ET.SubElement(system, "smbios", mode="sysinfo")
    names = ET.SubElement(ET.SubElement(top, "sysinfo", type="smbios"), "system")
    _text(names, "entry", PRODUCT, name="product")
    told = ET.SubElement(top, "sysinfo", type="fwcfg")
    for name, path in made.settings.items():
        ET.SubElement(told, "entry", name=f"opt/dml/{name}", file=str(path))


def _disk(devices: ET.Element, path: Path, name: str, kind: str, is_shared: bool = False) -> None:
    disk = ET.SubElement(devices, "disk", type="file", device="disk")
    # What a guest wrote may be lost when this machine breaks down: it lives as long as the lab.
    ET.SubElement(disk, "driver", name="qemu", type=kind, cache="unsafe" if not is_shared else "writeback")
    ET.SubElement(disk, "source", file=str(path))
    ET.SubElement(disk, "target", dev=name, bus="virtio")
    if is_shared:
        ET.SubElement(disk, "readonly")
        ET.SubElement(disk, "shareable")


def _card(devices: ET.Element, card: Card, name: str) -> None:
    wire = ET.SubElement(devices, "interface", type="bridge")
    ET.SubElement(wire, "mac", address=card.mac)
    ET.SubElement(wire, "source", bridge=card.network)
    ET.SubElement(wire, "target", dev=name)
    ET.SubElement(wire, "model", type="virtio")
    ET.SubElement(wire, "mtu", size=str(max(card.mtu, 1500)))
    ET.SubElement(wire, "rom", enabled="no")


def _serial(devices: ET.Element, console: Path) -> None:
    line = ET.SubElement(devices, "serial", type="file")
    ET.SubElement(line, "source", path=str(console), append="on")
    ET.SubElement(line, "target", port="0")
    agent = ET.SubElement(devices, "channel", type="unix")
    ET.SubElement(agent, "target", type="virtio", name=AGENT)
    ET.SubElement(devices, "memballoon", model="none")
    ET.SubElement(ET.SubElement(devices, "rng", model="virtio"), "backend", model="random").text = "/dev/urandom"


def _text(parent: ET.Element, tag: str, text: str, **attributes: str) -> None:
    ET.SubElement(parent, tag, attributes).text = text
