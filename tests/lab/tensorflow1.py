"""A small convolutional network by TensorFlow 1 and Horovod of 2019, whose steps the session hook records."""

# No "from __future__ import annotations" here: TensorFlow 1 runs on a Python that does not know it.

import argparse
import time

import dml_records
import horovod.tensorflow as hvd
import tensorflow as tf

BATCH, SIZE, CLASSES = 8, 32, 10


def loss_of(images, labels):
    """The loss of the network; images are synthetic, as those of a benchmark."""
    one = tf.layers.conv2d(images, 8, 3, activation=tf.nn.relu)
    two = tf.layers.conv2d(one, 16, 3, strides=2, activation=tf.nn.relu)
    logits = tf.layers.dense(tf.layers.flatten(two), CLASSES)
    return tf.losses.sparse_softmax_cross_entropy(labels, logits)


def main():
    """Train that many steps, none of which is shorter than given."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000000)
    parser.add_argument("--seconds", type=float, default=0.1)
    chosen = parser.parse_args()
    hvd.init()
    tf.set_random_seed(hvd.rank())
    images = tf.random_normal([BATCH, SIZE, SIZE, 3])
    labels = tf.random_uniform([BATCH], maxval=CLASSES, dtype=tf.int32)
    loss = loss_of(images, labels)
    optimizer = hvd.DistributedOptimizer(tf.train.GradientDescentOptimizer(0.01))
    train = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
    hooks = [hvd.BroadcastGlobalVariablesHook(0), tf.train.StopAtStepHook(last_step=chosen.steps)]
    hooks += [dml_records.session_hook(dml_records.start(), images=BATCH, loss=loss)]
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tf.train.MonitoredTrainingSession(hooks=hooks, config=config) as session:
        while not session.should_stop():
            began = time.monotonic()
            session.run(train)
            time.sleep(max(0.0, began + chosen.seconds - time.monotonic()))


if __name__ == "__main__":
    main()
