"""Train a network on synthetic images or a folder of images with PyTorch only, and record each step."""

from __future__ import annotations

import os
from typing import Any

import dml_pytorch
import dml_torchrun
import torch
import torch.distributed as dist


class Ranks:
    """Communication between ranks with DistributedDataParallel, over NCCL or, on CPUs, over Gloo."""

    def __init__(self, is_on_cpu: bool) -> None:
        dml_torchrun.set_environment()
        self.local_rank, self._is_on_cpu = int(os.environ["LOCAL_RANK"]), is_on_cpu
        if not is_on_cpu:
            torch.cuda.set_device(self.local_rank)
        dist.init_process_group("gloo" if is_on_cpu else "nccl")
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def optimizer(self, plain: Any, model: Any) -> Any:
        """Return the optimizer unchanged, because the model joins the ranks."""
        del model
        return plain

    def joined(self, model: Any) -> Any:
        """Return a model that starts with the parameters of rank 0 and averages the gradients of all ranks."""
        devices = None if self._is_on_cpu else [self.local_rank]
        return torch.nn.parallel.DistributedDataParallel(model, device_ids=devices)

    def share(self, model: Any, optimizer: Any) -> None:
        """Broadcast the optimizer of rank 0 to all ranks; joining the model broadcasts the model."""
        del model
        optimizer.load_state_dict(self.same(optimizer.state_dict()))

    def same(self, value: Any) -> Any:
        """Return the value of rank 0."""
        held = [value]
        dist.broadcast_object_list(held, 0)
        return held[0]

    def gather(self, value: Any) -> Any:
        """Return the values of all ranks."""
        found = [None] * self.size
        dist.all_gather_object(found, value)
        return found

    def update(self, optimizer: Any, scaler: Any) -> None:
        """Make a step; the gradients are already those of all ranks."""
        scaler.step(optimizer)


def main() -> None:
    """Train, then close the process group."""
    chosen = dml_pytorch.options(__doc__)
    dml_pytorch.train(chosen, Ranks(chosen.cpu))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
