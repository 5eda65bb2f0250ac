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
BOOT_SECONDS = 3600  # on a busy machine without KVM
AGENT_SECONDS = 600
ALONE = "host1"  # host of the guests that belong to no virtual machine
LOSE_RDMA = "lose_rdma"
GONE = ("failed to get domain", "Domain not found", "is not running", "no domain")


class Machines:
    """Virtual machines as a hypervisor's guests, on any number of hosts."""

    def __init__(self, lab: str, folder: Path, network: Network, roots: Roots, accelerator: str) -> None:
        self.lab, self.folder, self.network, self.roots = lab, folder / host.FOLDER, network, roots
        self.accelerator = accelerator
        self.disks: Sequence[tuple[Path, str]] = ()  # read-only disks, with their mount points
        self.memory_mib = MEMORY_MIB  # for each machine
        self.proxy: str | None = None
        self.stopping = threading.Event()
        self.known: dict[str, Guest] = {}
        self._places: dict[str, Host] = {}
        self._hosts: dict[str, Host] = {}
        self._broken: dict[str, str] = {}
        self._without_rdma: set[str] = set()
        self._making = threading.Lock()

    def prepare(self) -> None:
        """Add the migration network to the lab's networks."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for command in wires.switch(self.lab):
            run(*command)

    def start(self, guest: Guest, at: str) -> Guest:
        """Boot a machine on a host, making its disk if it does not exist, and return it with its addresses."""
        given = leased(guest, self.known, self.network.subnet)
        if guest.key in self._without_rdma:
            given = dataclasses.replace(given, cards=tuple(card for card in given.cards if card.network != RDMA))
        self.known[guest.key] = given
        # vCenter's metadata describes the cards only if the lab did not have to choose an address.
        replaced = {METADATA, f"{METADATA}.encoding"} if guest.cards[:1] != given.cards[:1] else set()
        requested = {key: value for key, value in guest.extra_config.items() if key not in replaced}
        place = self.host(at)
        path = self._folder(guest.key) / "machine.xml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(domain.written(self.lab, given, self._blueprint(given, requested)))
        place.virsh("create", str(path))
        self._places[guest.key] = place
        self._broken.pop(guest.key, None)
        return given

    def wait(self, guest: Guest) -> None:
        """Return when the sshd and the agent of a machine answer."""
        await_sshd(guest, BOOT_SECONDS)
        self._ask(guest.key, {"execute": "guest-ping"}, BOOT_SECONDS)

    def stop(self, key: str) -> None:
        """Power a machine off without a shutdown."""
        if place := self._places.pop(key, None):
            place.virsh("destroy", key, refused=GONE)

    # An emulated guest takes minutes to shut down.
    shut_down = stop

    def remove(self, key: str) -> None:
        """Remove a machine and its disk."""
        self.stop(key)
        shutil.rmtree(self._folder(key), ignore_errors=True)
        self.known.pop(key, None)
        self._without_rdma.discard(key)

    def move(self, key: str, target: str, how: Move, report: Callable[[int], None]) -> None:
        """Migrate a machine, and check that it is intact afterwards."""
        source, there = self._place(key), self.host(target)
        if there is source:
            return
        before = self._condition(key)
        migration = Migration(key, source, there, how, report, self.stopping, self.accelerator == domain.KVM)
        try:
            stun_seconds = migration.run()
        finally:
            self._places[key] = migration.at
        self._examine(key, before, stun_seconds)

    def stun(self, key: str, seconds: float) -> None:
        """Suspend a machine for a time; if the hypervisor ends meanwhile, the machine continues."""
        place = self._place(key)
        place.virsh("suspend", key)
        try:
            if self.stopping.wait(seconds):
                raise LabError("The hypervisor is shutting down.")
        finally:
            resume(place, key)

    def harm(self, key: str, kind: str) -> None:
        """Kill a machine, unplug or plug its network cables, or remove its RDMA card from its next boot on."""
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
            raise LabError(f"Unknown harm {kind}: use one of {', '.join((*HARMS, LOSE_RDMA))}.")

    def clear(self) -> None:
        """Remove every machine and host of this lab, also those of a killed lab."""
        host.clear(self.lab, self.folder.parent)
        self.known.clear()

    def host(self, name: str) -> Host:
        """Return the host that represents an ESXi host, starting it when it is first needed."""
        with self._making:
            if name not in self._hosts:
                number = len(self._hosts) + 1
                made = Host(self.lab, number, name or ALONE, self.folder / f"host{number}")
                made.start(self.roots, (self.folder, *{disk.parent for disk, _there in self.disks}))
                self._hosts[name] = made
            return self._hosts[name]

    def _blueprint(self, guest: Guest, requested: dict[str, str]) -> domain.Blueprint:
        folder = self._folder(guest.key)
        folder.mkdir(parents=True, exist_ok=True)
        files = surroundings.files(SUITE, self.proxy)
        settings = {}
        for name, text in seed.settings(guest, requested, files, [there for _disk, there in self.disks]).items():
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
            raise LabError(f"The machine {key} does not run: it was never started, or it was powered off or removed.")
        return self._places[key]

    def _examine(self, key: str, before: Condition, stun_seconds: float) -> None:
        """Raise LabFailure if the lab broke a guest, and mark the guest as broken, so that it is not used again."""
        console = self._console(key)
        try:
            after = self._condition(key)
        except LabError as error:
            why = f"its agent no longer answers: {error}"
        else:
            log = console.read_bytes()[before.log_bytes :].decode(errors="replace") if console.exists() else ""
            why = health.doubt(before, after, stun_seconds, log)
        if why:
            message = f"The lab failed, not the job: the move damaged {key}: {why}."
            self._broken[key] = message
            raise LabFailure(message)

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
