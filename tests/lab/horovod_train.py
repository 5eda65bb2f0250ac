"""A small training with Horovod and TensorFlow: a regression whose loss falls, with a record of each step."""

# pylint: disable=missing-function-docstring,import-error # it is a program, for a node that has both
from __future__ import annotations

import argparse
import os
import time

import dml_records
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

SAMPLES, FEATURES, RATE = 64, 256, 0.05


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--steps", type=int, help="without it, the training has no end")
    parser.add_argument("--every", type=int, default=0, help="steps between two checkpoints")
    parser.add_argument("--resume", help="the checkpoint to continue from")
    chosen = parser.parse_args()
    hvd.init()
    desired = tf.linspace(-1.0, 1.0, FEATURES)
    step, weights = tf.Variable(0), tf.Variable(tf.zeros([FEATURES]))
    if chosen.resume and hvd.rank() == 0:
        with np.load(chosen.resume) as kept:
            step.assign(kept["step"])
            weights.assign(kept["weights"])
    hvd.broadcast_variables([step, weights], root_rank=0)
    records = dml_records.start(first_step=int(step) + 1)
    while int(step) != chosen.steps:
        time.sleep(chosen.seconds)
        step.assign_add(1)
        # A rank has its own samples in each step, so that a repeated step has the loss that it had.
        samples = tf.random.stateless_normal([SAMPLES, FEATURES], [int(step), hvd.rank()])
        errors = tf.linalg.matvec(samples, weights - desired)
        gradient = hvd.allreduce(tf.linalg.matvec(samples, errors, transpose_a=True) / SAMPLES, op=hvd.Average)
        weights.assign_sub(RATE * gradient)
        records.step(images=SAMPLES, loss=float(tf.reduce_mean(errors**2)))
        if chosen.every and int(step) % chosen.every == 0 and hvd.rank() == 0:
            with records.phase("checkpoint"):
                save(int(step), weights.numpy())


def save(step: int, weights: np.ndarray) -> None:
    os.makedirs("outputs", exist_ok=True)
    # Only a complete one has the name of a checkpoint.
    with open("outputs/.part", "wb") as part:
        np.savez(part, step=step, weights=weights)
    os.replace("outputs/.part", f"outputs/step{step}.npz")


if __name__ == "__main__":
    main()
