# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""SSH servers on this machine that replace nodes, each with its own folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType

DEADLINE = 10.0


class Servers:
    """One sshd for each node; on a machine without sshd, a shell replaces the connection, as ``how`` reports."""

    def __init__(self, folder: Path, count: int) -> None:
        self._folder, self._count = folder, count
        self._sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
        self._running: list[tuple[subprocess.Popen[bytes], int]] = []
        self._log = folder / "sshd.log"
        self.how = "over ssh, including its servers" if self._sshd else "with a shell, because this machine has no sshd"

    @property
    def connections(self) -> int | None:
        """Return the number of accepted connections, or None if a shell replaces the servers."""
        return self._log.read_text().count("Accepted publickey") if self._running else None

    @property
    def pids(self) -> set[int]:
        """Return the process ids of the servers."""
        return {server.pid for server, _port in self._running}

    def __enter__(self) -> Servers:
        if self._sshd:
            for name in ("host", "user"):
                command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self._folder / name)]
                subprocess.run(command, check=True)
            Path("/run/sshd").mkdir(exist_ok=True)
            self._running = [self._start(self._sshd) for _number in range(self._count)]
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for server, _port in self._running:
            server.terminate()
            server.wait()

    def reach(self, number: int) -> list[str]:
        """Return the words of a command that runs the words after it on the node, in the node's folder."""
        inside = f"cd {self._folder}/node{number} &&"
        if not self._running:
            return ["sh", "-c", f'{inside} eval "$0"']
        options = [f"-oIdentityFile={self._folder / 'user'}", "-oBatchMode=yes", "-oStrictHostKeyChecking=no"]
        known = f"-oUserKnownHostsFile={self._folder / 'known'}"
        return ["ssh", "-F/dev/null", *options, known, f"-p{self._running[number][1]}", "127.0.0.1", inside]

    def _start(self, sshd: str) -> tuple[subprocess.Popen[bytes], int]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = int(free.getsockname()[1])
        options = [f"-oHostKey={self._folder / 'host'}", f"-oAuthorizedKeysFile={self._folder / 'user.pub'}"]
        more = ["-oStrictModes=no", "-oUsePAM=no", "-oListenAddress=127.0.0.1", "-oPidFile=none", f"-E{self._log}"]
        server = subprocess.Popen([sshd, "-D", "-f/dev/null", f"-p{port}", *options, *more])
        deadline = time.monotonic() + DEADLINE
        while socket.socket().connect_ex(("127.0.0.1", port)):
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"sshd did not start on port {port}: {self._log.read_text().strip()}")
            time.sleep(0.1)
        return server, port
