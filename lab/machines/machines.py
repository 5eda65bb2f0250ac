# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The backend whose guests are virtual machines: a move is a migration from one libvirtd to another."""

from __future__ import annotations

import dataclasses
import json
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lab.hypervisor.backend import HARMS, Move
from lab.machines import domain, health, host, seed, wires
from lab.machines.health import Condition, LabFailure
from lab.machines.host import Host
from lab.machines.moving import Migration, resume
from lab.machines.roots import SUITE, Roots
from lab.nodes import surroundings
from lab.nodes.cloudinit import METADATA, Guest
from lab.nodes.leases import await_sshd, leased
from lab.nodes.network import RDMA, Network
from lab.nodes.programs import LabError, run

MEMORY_MIB = 640
BOOT_SECONDS = 3600  # on a machine without KVM that has much else to do
AGENT_SECONDS = 600
ALONE = "host1"  # where guests are that belong to no virtual machine
LOSE_RDMA = "lose_rdma"
GONE = ("failed to get domain", "Domain not found", "is not running", "no domain")


class Machines:
    """Virtual machines as a hypervisor's guests, on as many hosts as they are sent to."""

    def __init__(self, lab: str, folder: Path, network: Network, roots: Roots, accelerator: str) -> None:
        self.lab, self.folder, self.network, self.roots = lab, folder / host.FOLDER, network, roots
        self.accelerator = accelerator
        self.disks: Sequence[tuple[Path, str]] = ()  # read-only ones, and where they belong
        self.memory_mib = MEMORY_MIB  # of each
        self.proxy: str | None = None
        self.stopping = threading.Event()
        self.known: dict[str, Guest] = {}
        self._places: dict[str, Host] = {}
        self._hosts: dict[str, Host] = {}
        self._broken: dict[str, str] = {}
        self._without_rdma: set[str] = set()
        self._making = threading.Lock()

    def prepare(self) -> None:
        """Add the migration network to the lab's."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for command in wires.switch(self.lab):
            run(*command)

    def start(self, guest: Guest, at: str) -> Guest:
        """Boot a machine on a host, making its disk if it is not there; the same with its addresses."""
        given = leased(guest, self.known, self.network.subnet)
        if guest.key in self._without_rdma:
            given = dataclasses.replace(given, cards=tuple(one for one in given.cards if one.network != RDMA))
        self.known[guest.key] = given
        # What vCenter says of cards holds only where it left no address open.
        open_ones = {METADATA, f"{METADATA}.encoding"} if guest.cards[:1] != given.cards[:1] else set()
        asked = {key: value for key, value in guest.told.items() if key not in open_ones}
        place = self.host(at)
        path = self._folder(guest.key) / "machine.xml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(domain.written(self.lab, given, self._blueprint(given, asked)))
        place.virsh("create", str(path))
        self._places[guest.key] = place
        self._broken.pop(guest.key, None)
        return given

    def wait(self, guest: Guest) -> None:
        """Return when its sshd answers, and its agent."""
        await_sshd(guest, BOOT_SECONDS)
        self._ask(guest.key, {"execute": "guest-ping"}, BOOT_SECONDS)

    def stop(self, key: str) -> None:
        """Cut its power."""
        if place := self._places.pop(key, None):
            place.virsh("destroy", key, refused=GONE)

    def remove(self, key: str) -> None:
        """Take it and its disk away."""
        self.stop(key)
        shutil.rmtree(self._folder(key), ignore_errors=True)
        self.known.pop(key, None)
        self._without_rdma.discard(key)

    def move(self, key: str, target: str, how: Move, tell: Callable[[int], None]) -> None:
        """Migrate it, and look whether it came through whole."""
        source, there = self._place(key), self.host(target)
        if there is source:
            return
        before = self._condition(key)
        migration = Migration(key, source, there, how, tell, self.stopping, self.accelerator == domain.KVM)
        try:
            stood = migration.run()
        finally:
            self._places[key] = migration.at
        self._examine(key, before, stood)

    def stun(self, key: str, seconds: float) -> None:
        """Suspend it for a time; a hypervisor that ends meanwhile lets it go."""
        place = self._place(key)
        place.virsh("suspend", key)
        try:
            if self.stopping.wait(seconds):
                raise LabError("The hypervisor ends.")
        finally:
            resume(place, key)

    def harm(self, key: str, kind: str) -> None:
        """Kill it, pull or plug its cables, or let it boot without its RDMA card from now on."""
        place, cards = self._place(key), self.known[key].cards
        taps = [(domain.tap(self.lab, key, number), card.network) for number, card in enumerate(cards)]
        if kind == LOSE_RDMA:
            self._without_rdma.add(key)
        elif kind == "kill":
            self.stop(key)
        elif kind == "unplug":
            wires.cut(self.lab, place.number, tuple(name for name, _network in taps))
        elif kind == "plug":
            wires.join(self.lab, place.number, tuple(taps))
        else:
            raise LabError(f"No harm is called {kind}: there are {', '.join((*HARMS, LOSE_RDMA))}.")

    def clear(self) -> None:
        """Take every machine and host of this lab away, also those of a lab that was killed."""
        host.clear(self.lab, self.folder.parent)
        self.known.clear()

    def host(self, name: str) -> Host:
        """The host that stands for an ESXi host, started when it is first needed."""
        with self._making:
            if name not in self._hosts:
                number = len(self._hosts) + 1
                made = Host(self.lab, number, name or ALONE, self.folder / f"host{number}")
                made.start(self.roots, (self.folder, *{disk.parent for disk, _there in self.disks}))
                self._hosts[name] = made
            return self._hosts[name]

    def _blueprint(self, guest: Guest, asked: dict[str, str]) -> domain.Blueprint:
        folder = self._folder(guest.key)
        folder.mkdir(parents=True, exist_ok=True)
        files = surroundings.files(SUITE, self.proxy)
        settings = {}
        for name, text in seed.settings(guest, asked, files, [there for _disk, there in self.disks]).items():
            settings[name] = folder / name
            settings[name].write_text(text)
        overlay = folder / "disk.qcow2"
        if not overlay.exists():
            self._make_overlay(overlay)
        disks = [disk for disk, _there in self.disks]
        return domain.Blueprint(
            self.roots, self.accelerator, self.memory_mib, overlay, folder / "console.log", settings, disks
        )

    def _make_overlay(self, overlay: Path) -> None:
        part = overlay.with_suffix(".part")
        over = ["-f", "qcow2", "-b", str(self.roots.disk), "-F", "raw", str(part)]
        place = next(iter(self._hosts.values()))
        run(*place.inside("qemu-img", "create", "-q", *over))
        part.rename(overlay)

    def _place(self, key: str) -> Host:
        if key in self._broken:
            raise LabFailure(self._broken[key])
        if key not in self._places:
            raise LabError(f"No machine {key} runs here: it was never started, or is switched off or removed.")
        return self._places[key]

    def _examine(self, key: str, before: Condition, stood: float) -> None:
        """Raise LabFailure for a guest that the lab broke, and remember it: nothing more is done with it."""
        console = self._console(key)
        try:
            after = self._condition(key)
        except LabError as error:
            why = f"its agent does not answer any more: {error}"
        else:
            said = console.read_bytes()[before.said_bytes :].decode(errors="replace") if console.exists() else ""
            why = health.doubt(before, after, stood, said)
        if why:
            words = f"The lab failed, not the job: {key} did not come through its move whole: {why}."
            self._broken[key] = words
            raise LabFailure(words)

    def _condition(self, key: str) -> Condition:
        return health.read(lambda command: self._ask(key, command, AGENT_SECONDS), self._console(key))

    def _ask(self, key: str, command: dict[str, Any], seconds: float) -> Any:
        deadline = time.monotonic() + seconds
        while True:
            try:
                words = ("qemu-agent-command", "--timeout", "30", key, json.dumps(command))
                return health.answer(self._place(key).virsh(*words))
            except LabError:
                if time.monotonic() > deadline or self.stopping.wait(1):
                    raise

    def _console(self, key: str) -> Path:
        return self._folder(key) / "console.log"

    def _folder(self, key: str) -> Path:
        return self.folder / "guests" / key
