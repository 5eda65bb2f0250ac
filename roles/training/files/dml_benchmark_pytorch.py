"""Train a network on synthetic images or a folder of images with PyTorch and Horovod, and record each step."""

from __future__ import annotations

from typing import Any

import dml_pytorch
import horovod.torch as hvd


class Ranks:
    """Communication between ranks with Horovod."""

    def __init__(self) -> None:
        hvd.init()
        self.rank, self.size, self.local_rank = hvd.rank(), hvd.size(), hvd.local_rank()

    def optimizer(self, plain: Any, model: Any) -> Any:
        """Return an optimizer that adds up the gradients of all ranks."""
        return hvd.DistributedOptimizer(plain, named_parameters=model.named_parameters())

    def joined(self, model: Any) -> Any:
        """Return the model unchanged, because the optimizer joins the ranks."""
        return model

    def share(self, model: Any, optimizer: Any) -> None:
        """Broadcast the model and optimizer of rank 0 to all ranks."""
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    def same(self, value: Any) -> Any:
        """Return the value of rank 0."""
        return hvd.broadcast_object(value, 0)

    def gather(self, value: Any) -> Any:
        """Return the values of all ranks."""
        return hvd.allgather_object(value)

    def update(self, optimizer: Any, scaler: Any) -> None:
        """Make a step; the scaler needs the gradients of all ranks, not only those of this rank."""
        optimizer.synchronize()
        with optimizer.skip_synchronize():
            scaler.step(optimizer)


if __name__ == "__main__":
    dml_pytorch.train(dml_pytorch.options(__doc__), Ranks())
