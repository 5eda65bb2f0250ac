# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Trains a network on synthetic images, or on a folder of them, by PyTorch and Horovod, recording each step."""

from __future__ import annotations

from typing import Any

import dml_pytorch
import horovod.torch as hvd


class Ranks:
    """How ranks reach each other by Horovod."""

    def __init__(self) -> None:
        hvd.init()
        self.rank, self.size, self.local_rank = hvd.rank(), hvd.size(), hvd.local_rank()

    def optimizer(self, plain: Any, model: Any) -> Any:
        """An optimizer that adds up the gradients of all ranks."""
        return hvd.DistributedOptimizer(plain, named_parameters=model.named_parameters())

    def joined(self, model: Any) -> Any:
        """The model itself: here the optimizer joins the ranks."""
        return model

    def share(self, model: Any, optimizer: Any) -> None:
        """Give all ranks what rank 0 has."""
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    def same(self, value: Any) -> Any:
        """What rank 0 has."""
        return hvd.broadcast_object(value, 0)

    def gather(self, value: Any) -> Any:
        """What each rank has."""
        return hvd.allgather_object(value)

    def update(self, optimizer: Any, scaler: Any) -> None:
        """Make a step; the scaler must see the gradients of all ranks, not those of this one."""
        optimizer.synchronize()
        with optimizer.skip_synchronize():
            scaler.step(optimizer)


if __name__ == "__main__":
    dml_pytorch.train(dml_pytorch.options(__doc__), Ranks())
