"""Compiles Horovod for the workers on a separate node, while the demo shows chapters that need no guests."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from lab.kubernetes.images import has_horovod
from lab.running import HOROVOD, Lab
from lab.simulator import ROOT

NODE, USER = "builder", "debian"
PLAYBOOK = Path(sys.executable).parent / "ansible-playbook"
VARIABLES = "inventories/lab/group_vars/workers.yml"  # the login, and the folder that all nodes share


class Prebuild:
    """Runs the playbook for guests on one node, which shares its Horovod with the workers and is removed afterwards."""

    def __init__(self, lab: Lab, work: Path) -> None:
        self._lab, self._work = lab, work
        self._playbook: subprocess.Popen[bytes] | None = None
        self._is_over, self._start = False, threading.Lock()
        self._thread = threading.Thread(target=self._build, daemon=True)

    @property
    def log(self) -> Path:
        """Return the file with the output of the playbook."""
        return self._work / "horovod.log"

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Build in the background, and end the build if the demo ends earlier."""
        self._thread.start()
        try:
            yield
        finally:
            with self._start:
                self._is_over = True
                if self._playbook:
                    self._playbook.terminate()
            self._thread.join()

    def finish(self) -> None:
        """Wait for the end of the build. If it failed, the playbook for guests builds again and reports the reason."""
        if self._thread.is_alive():
            print(f"   Horovod is still being compiled on a separate node. Log: {self.log}", flush=True)
            self._thread.join()
        if not has_horovod(HOROVOD):
            print(f"   The compilation of Horovod failed, and is repeated on a worker. Log: {self.log}", flush=True)

    def _build(self) -> None:
        with self.log.open("wb") as out:
            try:
                self._play(str(self._lab.node(NODE, USER)["address"]), out.fileno())
                self._lab.hypervisor.ask("DELETE", f"/nodes/{NODE}")
            except (OSError, RuntimeError) as error:
                out.write(f"{error}\n".encode())

    def _play(self, address: str, out: int) -> None:
        inventory = self._work / "builder.json"
        inventory.write_text(json.dumps({"workers": {"hosts": {NODE: {"ansible_host": address}}}}))
        command = [
            str(PLAYBOOK),
            "-i",
            str(inventory),
            "-e",
            f"@{VARIABLES}",
            "-e",
            "stack=lab-cpu",
            "playbooks/guests.yml",
        ]
        environment = {**os.environ, **self._lab.environment, "PYTHONUNBUFFERED": "1"}
        with self._start:
            if self._is_over:
                return
            self._playbook = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        self._playbook.wait()
