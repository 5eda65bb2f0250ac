# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Trains a network on synthetic images, or on a folder of them, by PyTorch alone, recording each step."""

from __future__ import annotations

import os
from typing import Any

import dml_pytorch
import dml_torchrun
import torch
import torch.distributed as dist


class Ranks:
    """How ranks reach each other by DistributedDataParallel, over NCCL or, on CPUs, over Gloo."""

    def __init__(self, is_on_cpu: bool) -> None:
        dml_torchrun.tell()
        self.local_rank, self._is_on_cpu = int(os.environ["LOCAL_RANK"]), is_on_cpu
        if not is_on_cpu:
            torch.cuda.set_device(self.local_rank)
        dist.init_process_group("gloo" if is_on_cpu else "nccl")
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def optimizer(self, plain: Any, model: Any) -> Any:
        """The optimizer itself: here the model joins the ranks."""
        del model
        return plain

    def joined(self, model: Any) -> Any:
        """A model whose gradients are those of all ranks, and that begins with what rank 0 has."""
        devices = None if self._is_on_cpu else [self.local_rank]
        return torch.nn.parallel.DistributedDataParallel(model, device_ids=devices)

    def share(self, model: Any, optimizer: Any) -> None:
        """Give all ranks the optimizer of rank 0; the model is given when it is joined."""
        del model
        optimizer.load_state_dict(self.same(optimizer.state_dict()))

    def same(self, value: Any) -> Any:
        """What rank 0 has."""
        held = [value]
        dist.broadcast_object_list(held, 0)
        return held[0]

    def gather(self, value: Any) -> Any:
        """What each rank has."""
        found = [None] * self.size
        dist.all_gather_object(found, value)
        return found

    def update(self, optimizer: Any, scaler: Any) -> None:
        """Make a step: the gradients are those of all ranks by now."""
        scaler.step(optimizer)


def main() -> None:
    """Train, and leave the other ranks in an orderly way."""
    chosen = dml_pytorch.options(__doc__)
    dml_pytorch.train(chosen, Ranks(chosen.cpu))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
