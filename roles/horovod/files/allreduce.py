"""Add up the rank numbers of all ranks with Horovod 0.16 to 0.28, and print one line of JSON."""

# No "from __future__ import annotations" here: the Python of TensorFlow 1 does not support it.

import json
import platform
import sys
from typing import Any, Dict, Tuple


def summed(hvd: Any, tensor: Any) -> Any:
    """Return the sum of a tensor over all ranks; Horovod before 0.18 has no named operations."""
    if hasattr(hvd, "Sum"):
        return hvd.allreduce(tensor, op=hvd.Sum)
    return hvd.allreduce(tensor, average=False)


def by_tensorflow() -> Tuple[Any, str, float]:
    """Horovod, the framework's version, and the sum of all ranks, counted from 1."""
    import horovod.tensorflow as hvd
    import tensorflow

    if hasattr(tensorflow, "enable_eager_execution"):  # otherwise TensorFlow 1 builds a graph
        tensorflow.enable_eager_execution()
    hvd.init()
    total = summed(hvd, tensorflow.constant([hvd.rank() + 1.0]))
    return hvd, tensorflow.__version__, float(total.numpy()[0])


def by_pytorch() -> Tuple[Any, str, float]:
    """Horovod, the framework's version, and the sum of all ranks, counted from 1."""
    import horovod.torch as hvd
    import torch

    hvd.init()
    # NCCL reduces only tensors on a GPU; TensorFlow places them there by itself.
    device = torch.device("cuda", hvd.local_rank()) if torch.cuda.is_available() else torch.device("cpu")
    total = summed(hvd, torch.tensor([hvd.rank() + 1.0], device=device))
    return hvd, torch.__version__, float(total[0])


def main(framework: str) -> None:
    """Add up all ranks and print the sum and the versions."""
    import horovod

    hvd, version, total = {"tensorflow": by_tensorflow, "pytorch": by_pytorch}[framework]()
    result: Dict[str, Any] = {
        "rank": hvd.rank(),
        "size": hvd.size(),
        "sum": total,
        "node": platform.node(),
        "horovod": horovod.__version__,
        "framework": version,
        "python": platform.python_version(),
        # Horovod before 0.17 supports only MPI.
        "mpi": bool(hvd.mpi_enabled()) if hasattr(hvd, "mpi_enabled") else True,
    }
    sys.stdout.write("allreduce " + json.dumps(result, sort_keys=True) + "\n")
    sys.stdout.flush()
    hvd.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
