"""A small training with Horovod and TensorFlow: a regression whose loss falls, with a record of each step."""

# pylint: disable=missing-function-docstring,import-error # it is a program, for a node that has both
from __future__ import annotations

import argparse
import time

import dml_records
import horovod.tensorflow as hvd
import tensorflow as tf

SAMPLES, FEATURES, RATE = 64, 256, 0.05


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0.05)
    pause = parser.parse_args().seconds
    hvd.init()
    tf.random.set_seed(hvd.rank())
    desired = tf.linspace(-1.0, 1.0, FEATURES)
    weights = tf.Variable(tf.zeros([FEATURES]))
    records = dml_records.start()
    while True:
        time.sleep(pause)
        samples = tf.random.normal([SAMPLES, FEATURES])
        errors = tf.linalg.matvec(samples, weights - desired)
        gradient = hvd.allreduce(tf.linalg.matvec(samples, errors, transpose_a=True) / SAMPLES, op=hvd.Average)
        weights.assign_sub(RATE * gradient)
        records.step(images=SAMPLES, loss=float(tf.reduce_mean(errors**2)))


if __name__ == "__main__":
    main()
