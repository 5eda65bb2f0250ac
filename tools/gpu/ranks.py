"""Starts ranks of a script as the role training does, and returns their output and their records."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SCRIPTS, FILES = Path(__file__).parent / "scripts", ROOT / "roles" / "training" / "files"
# A machine that does much else takes a minute to import PyTorch.
LIMIT = 200.0


@dataclass
class Ranks:
    """The ranks of one script, on this machine."""

    folder: Path
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def outputs(self, seconds: float = LIMIT) -> list[str]:
        """Return the output of each rank when it has ended; a rank that does not end in time is killed."""
        deadline, texts = time.monotonic() + seconds, []
        for process in self.processes:
            try:
                texts.append(process.communicate(timeout=max(1.0, deadline - time.monotonic()))[0])
            except subprocess.TimeoutExpired:
                # Its child processes hold its output open.
                os.killpg(process.pid, signal.SIGKILL)
                texts.append(process.communicate()[0] + "\nkilled after its time")
        return texts

    @property
    def codes(self) -> list[int | None]:
        """Return the exit code of each rank."""
        return [process.returncode for process in self.processes]

    def signal(self, rank: int, number: signal.Signals) -> None:
        """Send a signal to a rank."""
        self.processes[rank].send_signal(number)

    def records(self, rank: int = 0) -> list[dict[str, Any]]:
        """Return the records of a rank; none before its first step."""
        path = self.folder / "run" / f"rank{rank}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def wait_for_step(self, rank: int, step: int, seconds: float = LIMIT) -> bool:
        """Wait until a rank has made a step."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if any(record.get("step", 0) >= step for record in self.records(rank)):
                return True
            if all(process.poll() is not None for process in self.processes):
                return False
            time.sleep(0.2)
        return False


def start(
    folder: Path,
    script: Path | str,
    words: Sequence[str] = (),
    size: int = 1,
    environment: Mapping[str, str] | None = None,
) -> Ranks:
    """Start a script in ranks, with steps recorded as for a job of the role training."""
    folder.mkdir(parents=True, exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    path = str(SCRIPTS / script) if isinstance(script, str) else str(script)
    command = [sys.executable, "-u", str(FILES / "dml_torchrun.py"), path, *words]
    job = {"DML_STEPS_BY": "auto", "DML_RECORDS": str(folder / "run"), "PYTHONPATH": str(FILES), "HF_HUB_OFFLINE": "1"}
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    shared = {**os.environ, **job, **meeting, **(environment or {})}
    return Ranks(folder, [_rank(command, folder, {**shared, **_place(rank, size)}) for rank in range(size)])


def _place(rank: int, size: int) -> dict[str, str]:
    """Return the variables with which mpirun numbers a rank."""
    numbers = {"RANK": rank, "SIZE": size, "LOCAL_RANK": rank, "LOCAL_SIZE": size}
    return {f"OMPI_COMM_WORLD_{name}": str(number) for name, number in numbers.items()}


def _rank(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
