"""Trains a small network on two spirals with Keras and Horovod, and saves it after each epoch."""

from __future__ import annotations

import argparse
import time
from typing import Any

import horovod.tensorflow.keras as hvd
import tensorflow as tf
from network import network, points

BATCH = 30


class Pace(tf.keras.callbacks.Callback):  # type: ignore[misc]  # tensorflow is not read by mypy
    """Makes each step take a while, because the ranks of a lab share a few processors."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Wait."""
        del batch, logs
        time.sleep(self._seconds)


def main() -> None:
    """Train for a number of epochs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--pace", type=float, default=0.0, help="seconds of each step")
    chosen = parser.parse_args()
    hvd.init()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    model, (places, arms) = network(), points("data/points.csv", hvd.rank(), hvd.size())
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.legacy.Adam(0.01))
    model.compile(optimizer, loss="binary_crossentropy", metrics=["accuracy"])
    callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), Pace(chosen.pace)]
    if hvd.rank() == 0:
        callbacks += [tf.keras.callbacks.ModelCheckpoint("outputs/network.keras")]
        callbacks += [tf.keras.callbacks.CSVLogger("outputs/epochs.csv")]
    model.fit(places, arms, batch_size=BATCH, epochs=chosen.epochs, callbacks=callbacks, verbose=0)


if __name__ == "__main__":
    main()
