"""Add up the rank numbers of all ranks with PyTorch only, and print one line of JSON; dml_torchrun.py runs it."""

from __future__ import annotations

import json
import os
import platform
import sys

import torch
import torch.distributed as ranks


def main() -> None:
    """Add up all ranks and print the sum and the versions."""
    backend, device, nccl = "gloo", torch.device("cpu"), ""
    if torch.cuda.is_available():
        backend, device = "nccl", torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        nccl = ".".join(str(number) for number in torch.cuda.nccl.version())
    ranks.init_process_group(backend)
    total = torch.tensor([ranks.get_rank() + 1.0], device=device)
    ranks.all_reduce(total)
    result = {
        "rank": ranks.get_rank(),
        "size": ranks.get_world_size(),
        "sum": float(total[0]),
        "node": platform.node(),
        "framework": torch.__version__,
        "python": platform.python_version(),
        "backend": backend,
        "nccl": nccl,
    }
    sys.stdout.write("allreduce " + json.dumps(result, sort_keys=True) + "\n")
    sys.stdout.flush()
    ranks.destroy_process_group()


if __name__ == "__main__":
    main()
