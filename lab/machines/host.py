"""A hypervisor host: a separate libvirtd in its own namespaces."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from lab.machines import kept, wires
from lab.machines.roots import Roots
from lab.nodes.network import GONE
from lab.nodes.programs import LabError, run

START_SECONDS = 180
END_SECONDS = 30
LOOK_SECONDS = 0.1
FOLDER = "machines"  # in the lab's folder
SCRIPT = Path(__file__).parent / "host.sh"
LIBVIRTD = """\
listen_tls = 0
listen_tcp = 1
listen_addr = "{address}"
auth_tcp = "none"
auth_unix_rw = "none"
unix_sock_group = "root"
host_uuid = "{identity}"
log_outputs = "3:stderr"
"""
QEMU = """\
user = "root"
group = "root"
security_driver = "none"
namespaces = []
cgroup_controllers = []
remember_owner = 0
dynamic_ownership = 0
stdio_handler = "file"
migration_host = "{address}"
"""


class Host:
    """A host with its number in the lab; ``name`` is the name of the ESXi host that it represents."""

    def __init__(self, lab: str, number: int, name: str, folder: Path) -> None:
        self.lab, self.number, self.name, self.folder = lab, number, name, folder
        self.namespace = wires.namespace(lab, number)
        self.address = wires.address(number)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, roots: Roots, shared: Sequence[Path]) -> None:
        """Make the host's namespaces and start its libvirtd; return when libvirtd answers."""
        self.folder.mkdir(parents=True)
        for name, text in configuration(self.lab, self.number).items():
            (self.folder / name).write_text(text)
        for command in wires.host(self.lab, self.number):
            run(*command)
        cache = roots.engine.with_suffix(kept.CAPABILITIES)
        cache.mkdir(exist_ok=True)
        with (self.folder / "libvirtd.log").open("wb") as log:
            self._process = subprocess.Popen(
                arguments(self, roots, cache, shared),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._await(self._process)

    def virsh(self, *words: str, refused: Sequence[str] = ()) -> str:
        """Run virsh on this host and return its output."""
        try:
            return run(*self.command(*words), refused=refused)
        except LabError as error:
            message = str(error).partition("): ")[2] or str(error)
            raise LabError(f"virsh {words[0]} failed on {self.name}: {message}") from error

    def inside(self, *words: str) -> list[str]:
        """Return the command line for a program in the namespaces and the root of this host."""
        if self._process is None:
            raise LabError(f"libvirtd of {self.name} does not run: it was not started.")
        return ["nsenter", f"--target={self._process.pid}", "--mount", "--uts", "--net", "--root", "--wd=/", *words]

    def command(self, *words: str) -> list[str]:
        """Return the command line for virsh on this host."""
        return self.inside("virsh", "--quiet", "--connect", "qemu:///system", *words)

    def _await(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self.virsh("list")
            except LabError as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    log = (self.folder / "libvirtd.log").read_text().strip()[-800:]
                    raise LabError(f"The libvirtd of {self.name} does not answer: {error} Its log: {log}") from error
                time.sleep(LOOK_SECONDS)
            else:
                return


def configuration(lab: str, number: int) -> dict[str, str]:
    """Return the configuration files of a host's libvirtd; two hosts with one identity refuse to migrate."""
    values = {"address": wires.address(number), "identity": str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{lab}-{number}"))}
    return {"libvirtd.conf": LIBVIRTD.format(**values), "qemu.conf": QEMU.format(**values)}


def arguments(host: Host, roots: Roots, cache: Path, shared: Sequence[Path]) -> list[str]:
    """Return the command that becomes the libvirtd of a host."""
    enter = ["ip", "netns", "exec", host.namespace, "unshare", "--mount", "--uts", "bash", str(SCRIPT)]
    folders = [str(folder) for folder in (roots.disk.parent, *shared)]
    return [*enter, host.name, str(roots.engine), str(host.folder), str(cache), *folders]


def clear(lab: str, folder: Path) -> None:
    """Remove all hosts of a lab, all processes on them, and their files in the lab's folder."""
    for line in run("ip", "netns", "list").splitlines():
        name = line.split()[0]
        if name.startswith(f"{lab}h"):
            _kill(name)
            run("ip", "netns", "delete", name, refused=GONE)
    shutil.rmtree(folder / FOLDER, ignore_errors=True)


def memory_bytes(lab: str) -> int:
    """Return the sum of the peak memory of all running processes of a lab's hosts and guests."""
    namespaces = [line.split()[0] for line in run("ip", "netns", "list").splitlines() if line.startswith(f"{lab}h")]
    pids = [pid for name in namespaces for pid in run("ip", "netns", "pids", name).split()]
    return sum(_peak(Path("/proc", pid, "status")) for pid in pids)


def _peak(status: Path) -> int:
    try:
        found = re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.MULTILINE)
    except OSError:  # it has ended meanwhile
        return 0
    return int(found[1]) << 10 if found else 0


def _kill(namespace: str) -> None:
    deadline = time.monotonic() + END_SECONDS
    while processes := run("ip", "netns", "pids", namespace).split():
        if time.monotonic() > deadline:
            raise LabError(f"{namespace} still contains the processes {', '.join(processes)} after {END_SECONDS} s.")
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(int(process), os.WNOHANG)
        time.sleep(LOOK_SECONDS)
