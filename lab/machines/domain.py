"""The libvirt domain of a guest."""

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
# The oldest machine type with PCI Express that this QEMU and later ones support.
MACHINE = "pc-q35-7.2"
# cloud-init detects VMware from the product name; network cards have the same names as in the lab's nodes.
PRODUCT = "VMware7,1"
COMMAND_LINE = (
    "root=/dev/vda ro console=ttyS0 net.ifnames=0 mitigations=off audit=0 fsck.mode=skip quiet loglevel=5 "
    # On a busy machine, an emulated guest exceeds systemd's default timeouts.
    "systemd.default_timeout_start_sec=900 systemd.service_watchdogs=no"
)
AGENT = "org.qemu.guest_agent.0"


@dataclass(frozen=True)
class Blueprint:
    """All settings of a machine except those of its guest."""

    roots: Roots
    accelerator: str
    memory_mib: int
    overlay: Path
    console: Path
    settings: Mapping[str, Path]  # settings that the guest reads through the firmware, a file for each
    disks: Sequence[Path] = ()  # read-only disks after the first disk


def written(lab: str, guest: Guest, made: Blueprint) -> str:
    """Return the XML of a machine."""
    top = ET.Element("domain", type=made.accelerator)
    _text(top, "name", guest.key)
    _text(top, "uuid", str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{guest.key}.{lab}")))
    _text(top, "memory", str(made.memory_mib), unit="MiB")
    # One of two possible CPUs: before 8.1, QEMU emulates a guest with only one possible CPU without memory barriers.
    # Network cards then lose wake-ups, and a queue stops permanently.
    _text(top, "vcpu", "2", current="1")
    _boot(top, made)
    features = ET.SubElement(top, "features")
    for name in ("acpi", "apic"):
        ET.SubElement(features, name)
    ET.SubElement(top, "cpu", mode="host-passthrough" if made.accelerator == KVM else "maximum")
    # A guest that resets itself boots again; a crashed guest is kept for inspection.
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
    """Return the name of a guest's card on its host."""
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
    result = ET.SubElement(top, "sysinfo", type="fwcfg")
    for name, path in made.settings.items():
        ET.SubElement(result, "entry", name=f"opt/dml/{name}", file=str(path))


def _disk(devices: ET.Element, path: Path, name: str, kind: str, is_shared: bool = False) -> None:
    disk = ET.SubElement(devices, "disk", type="file", device="disk")
    # A guest's data may be lost if this machine crashes, because it is removed with the lab anyway.
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
