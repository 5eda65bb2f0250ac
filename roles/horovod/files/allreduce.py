# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A rank that adds its number to those of all others by Horovod; one line of JSON."""

from __future__ import annotations

import json
import platform
import sys
from typing import Any


def by_tensorflow() -> tuple[Any, str, float]:
    """Horovod, the framework's version, and the sum of all ranks, counted from 1."""
    import horovod.tensorflow as hvd
    import tensorflow

    hvd.init()
    summed = hvd.allreduce(tensorflow.constant([hvd.rank() + 1.0]), op=hvd.Sum)
    return hvd, tensorflow.__version__, float(summed.numpy()[0])


def by_pytorch() -> tuple[Any, str, float]:
    """Horovod, the framework's version, and the sum of all ranks, counted from 1."""
    import horovod.torch as hvd
    import torch

    hvd.init()
    # Only what lies on a GPU goes by NCCL; TensorFlow puts it there by itself.
    device = torch.device("cuda", hvd.local_rank()) if torch.cuda.is_available() else torch.device("cpu")
    summed = hvd.allreduce(torch.tensor([hvd.rank() + 1.0], device=device), op=hvd.Sum)
    return hvd, torch.__version__, float(summed[0])


def main(framework: str) -> None:
    """Add up all ranks, and write the sum and the versions."""
    import horovod

    hvd, version, total = {"tensorflow": by_tensorflow, "pytorch": by_pytorch}[framework]()
    said = {
        "rank": hvd.rank(),
        "size": hvd.size(),
        "sum": total,
        "node": platform.node(),
        "horovod": horovod.__version__,
        "framework": version,
        "python": platform.python_version(),
        "mpi": bool(hvd.mpi_enabled()),
    }
    sys.stdout.write("allreduce " + json.dumps(said, sort_keys=True) + "\n")
    sys.stdout.flush()
    hvd.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
