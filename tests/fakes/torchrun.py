"""Takes the place of torchrun in nodes and pods without PyTorch: starts the ranks of a node with torchrun's variables.

It reads the variables with which Kubeflow Trainer configures torchrun. tests/fixtures/torchrun has torchrun's output.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

PREFIX = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"
FAILED = """Root Cause (first observed failure):
[0]:
  rank      : {rank} (local_rank: {local})
  exitcode  : {code} (pid: {pid})
"""


def start(command: list[str], local: int) -> tuple[int, subprocess.Popen[str]]:
    """Start a rank of this node, and return its number."""
    nodes, ranks, node = (int(os.environ[f"PET_{name}"]) for name in ("NNODES", "NPROC_PER_NODE", "NODE_RANK"))
    rank = node * ranks + local
    place = {"RANK": rank, "WORLD_SIZE": nodes * ranks, "LOCAL_RANK": local, "LOCAL_WORLD_SIZE": ranks}
    meeting = {name: os.environ[f"PET_{name}"] for name in ("MASTER_ADDR", "MASTER_PORT")}
    own = {**{name: str(value) for name, value in place.items()}, **meeting, "TORCHELASTIC_RUN_ID": "none"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return rank, subprocess.Popen(command, env={**os.environ, "GROUP_RANK": str(node), **own}, text=True, **pipes)


def show(rank: int, process: subprocess.Popen[str]) -> None:
    """Copy the output of a rank, each line with its prefix."""
    assert process.stdout
    for line in process.stdout:
        sys.stdout.write(os.environ[PREFIX].replace("${rank}", str(rank)) + line)
        sys.stdout.flush()


def main() -> int:
    """Start the ranks, and end all of them when one fails."""
    command = sys.argv[sys.argv.index("--no-python") + 1 :]
    started = [start(command, local) for local in range(int(os.environ["PET_NPROC_PER_NODE"]))]
    shown = [threading.Thread(target=show, args=one) for one in started]
    for thread in shown:
        thread.start()
    for local, (rank, process) in enumerate(started):
        if code := process.wait():
            for thread in shown[: local + 1]:
                thread.join()
            sys.stdout.write(FAILED.format(rank=rank, local=local, code=code, pid=process.pid))
            for _rank, other in started:
                other.kill()
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
