"""Nodes: containers with systemd that behave like small virtual machines."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.nodes import freezer, nesting, surroundings
from lab.nodes.cloudinit import Guest
from lab.nodes.kinds import Kind
from lab.nodes.leases import address_of, await_sshd, leased
from lab.nodes.network import Network
from lab.nodes.podman import END_SECONDS, Podman
from lab.nodes.programs import LabError, run

LABEL = "dml-lab"
SETTINGS = "/etc/dml-lab"
BOOT_SECONDS = 180
SHUT_DOWN = "37"  # SIGRTMIN+3, at which systemd powers off
SHUT_DOWN_SECONDS = 240  # systemd waits 90 s for a service that does not end
FREEZE_SECONDS = 60
EMPTY_SECONDS = 30
LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Share:
    """A folder of this machine that nodes see, read-only unless ``writable`` is set."""

    here: Path
    there: str
    writable: bool = False

    @classmethod
    def parse(cls, text: str) -> Share:
        """HERE[:THERE[:rw]]"""
        here, _colon, rest = text.partition(":")
        there, _colon, mode = rest.partition(":")
        path = Path(here).resolve()
        if not path.is_dir() or mode not in {"", "ro", "rw"}:
            raise LabError(f"{text} cannot be shared: use HERE[:THERE[:rw]], where HERE is an existing folder.")
        return cls(path, there or str(path), mode == "rw")


class Nodes:
    """The nodes of one lab."""

    def __init__(self, lab: str, folder: Path, podman: Podman, network: Network) -> None:
        self.lab, self.folder, self.podman, self.network = lab, folder, podman, network
        self.kind = Kind()
        self.shares: Sequence[Share] = ()
        self.runs_containers = False
        self.proxy: str | None = None
        self.known: dict[str, Guest] = {}
        self.processes: dict[str, int] = {}  # the first one of each node

    def start(self, guest: Guest) -> Guest:
        """Boot a node, making it if it does not exist, and return it with its addresses."""
        guest = leased(guest, self.known, self.network.subnet)
        self.known[guest.key] = guest
        self._write_settings(guest)
        container = self.container(guest.key)
        if container not in self.podman.containers(f"{LABEL}={self.lab}"):
            self._create(guest, container)
        self.podman("init", container)
        pid = self.processes[guest.key] = self.podman.pid(container)
        run("nsenter", "--target", str(pid), "--uts", "hostname", guest.hostname)
        if self.runs_containers:
            nesting.open_groups(pid)
        self.network.connect(self._cable(guest.key), pid, guest.cards)
        self.podman("start", container)
        return guest

    def wait(self, guest: Guest, seconds: float = BOOT_SECONDS) -> None:
        """Return when the sshd of a node answers."""
        await_sshd(guest, seconds)

    def stop(self, key: str) -> None:
        """Power a node off as a power cut does, without notice to its peers."""
        guest = self.known.get(key)
        if guest is None:
            return
        self.network.unplug(self._cable(key), guest.cards)
        self._end(key, "KILL", END_SECONDS)

    def shut_down(self, key: str) -> None:
        """Have the systemd of a node end its services, and return when the node is off."""
        guest = self.known.get(key)
        if guest is not None:
            self._end(key, SHUT_DOWN, SHUT_DOWN_SECONDS)
            self.network.unplug(self._cable(key), guest.cards)

    def _end(self, key: str, signal_name: str, seconds: float) -> None:
        refused = ("can only kill running", "container state improper")
        self.podman("kill", "--signal", signal_name, self.container(key), refused=refused)
        self.podman.await_end(self.container(key), seconds)

    def remove(self, key: str) -> None:
        """Remove a node and all its data."""
        self.podman("rm", "--force", "--time", "0", self.container(key), refused=("no such container", "no container"))
        shutil.rmtree(self._settings(key), ignore_errors=True)
        shutil.rmtree(self._layers(key), ignore_errors=True)
        shutil.rmtree(self._disk(key), ignore_errors=True)
        self.known.pop(key, None)

    def freeze(self, key: str) -> None:
        """Freeze a node and disconnect it, because its kernel still answers network traffic."""
        self.unplug(key)
        try:
            freezer.freeze(freezer.group_of(self.processes[key]), FREEZE_SECONDS)
        except LabError:
            self.plug(key)
            raise

    def thaw(self, key: str) -> None:
        """Thaw a node and reconnect it."""
        freezer.thaw(freezer.group_of(self.processes[key]))
        self.plug(key)

    def unplug(self, key: str) -> None:
        """Disconnect a node from its networks."""
        self.network.unplug(self._cable(key), self.known[key].cards)

    def plug(self, key: str) -> None:
        """Reconnect a node to its networks."""
        self.network.plug(self._cable(key), self.known[key].cards)

    def clear(self) -> None:
        """Remove every node of this lab, also those of a killed lab."""
        freezer.thaw_below(self.lab)
        if containers := self.podman.containers(f"{LABEL}={self.lab}"):
            self.podman("rm", "--force", "--time", "0", *containers)
        for pattern in (self.lab, f"*/{self.lab}"):  # one hierarchy, or one for each controller
            for group in Path("/sys/fs/cgroup").glob(pattern):
                _drop(group)
        for name in ("nodes", "layers", "disks"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self.known.clear()

    def container(self, key: str) -> str:
        """Return the name of a node's container."""
        return f"{self.lab}-{key}"

    def _create(self, guest: Guest, container: str) -> None:
        volumes = [f"{self._settings(guest.key)}:{SETTINGS}:ro", *self.kind.volumes(self._disk(guest.key))]
        volumes += [f"{share.here}:{share.there}:{'rw' if share.writable else 'ro'}" for share in self.shares]
        arguments = ["create", "--name", container, "--hostname", guest.hostname, "--label", f"{LABEL}={self.lab}"]
        arguments += ["--label", f"name={guest.name}", "--network", "none", "--no-hosts", "--systemd", "always"]
        arguments += ["--cgroup-parent", f"/{self.lab}", *self.kind.rights, "--shm-size", "1g"]
        if self.runs_containers:
            arguments += nesting.ARGUMENTS
            volumes += [f"{self._layer(guest.key, path)}:{path}:rw" for path in nesting.LAYERS]
        arguments += [word for volume in volumes for word in ("--volume", volume)]
        self.podman(*arguments, self.kind.image)

    def _write_settings(self, guest: Guest) -> None:
        settings = {
            "hostname": guest.hostname,
            "users": [dataclasses.asdict(user) for user in guest.users],
            "files": self._files(guest),
        }
        folder = self._settings(guest.key)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "guest.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps(settings))

    def _settings(self, key: str) -> Path:
        return self.folder / "nodes" / key

    def _files(self, guest: Guest) -> dict[str, str]:
        more = {**(nesting.FILES if self.runs_containers else {}), **self.kind.files(guest, address_of(guest))}
        return {**surroundings.files(self.kind.suite, self.proxy), **more}

    def _layers(self, key: str) -> Path:
        return self.folder / "layers" / key

    def _layer(self, key: str, path: str) -> Path:
        """Return a folder of this machine for image layers, because the disk of a node cannot hold overlay layers."""
        folder = self._layers(key) / Path(path).name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _disk(self, key: str) -> Path:
        return self.folder / "disks" / key

    def _cable(self, key: str) -> str:
        return f"v{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def _drop(group: Path) -> None:
    """Remove a cgroup, and kill processes that are left in it."""
    inner = sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True)
    for path in (*inner, group):
        _empty(path)
        path.rmdir()


def _empty(group: Path) -> None:
    """Kill the processes in a cgroup, and return when it is empty: the kernel removes them with a delay."""
    deadline = time.monotonic() + EMPTY_SECONDS
    while processes := (group / "cgroup.procs").read_text().split():
        if time.monotonic() > deadline:
            raise LabError(
                f"{group} still contains the processes {', '.join(processes)} {EMPTY_SECONDS} s after SIGKILL."
            )
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
        time.sleep(LOOK_SECONDS)
