# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Trains a network on synthetic images, or on a folder of them, by TensorFlow 2 and Horovod, recording each step."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import dml_options
import dml_records
import horovod.tensorflow as hvd
import tensorflow as tf


def main() -> None:
    """Train."""
    chosen = dml_options.options(__doc__)
    hvd.init()
    _prepare(chosen)
    records, pace = dml_records.start(), dml_options.Pace(chosen)
    model, batches = _model(chosen), iter(_data(chosen))
    optimizer = _optimizer(chosen)
    step = _step(model, optimizer)
    for number in pace.steps(lambda wish: bool(hvd.broadcast(tf.constant(wish), 0))):
        images, labels = next(batches)
        if number == 1:
            with records.phase("compile"):
                loss = step(images, labels)
                hvd.broadcast_variables(model.variables, root_rank=0)
                hvd.broadcast_variables(optimizer.variables(), root_rank=0)
        else:
            loss = step(images, labels)
        records.step(images=chosen.batch_size, loss=loss)
        _pause(chosen, records, pace, number, model, images)
    parameters = (variable.numpy().tobytes() for variable in model.trainable_variables)
    dml_options.keep(pace.summary(hvd.rank(), hvd.size(), parameters), hvd.allgather_object)


def _prepare(chosen: Any) -> None:
    if chosen.cpu:
        tf.config.set_visible_devices([], "GPU")
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    else:
        cards = tf.config.list_physical_devices("GPU")
        tf.config.set_visible_devices(cards[hvd.local_rank()], "GPU")
        tf.config.experimental.set_memory_growth(cards[hvd.local_rank()], True)
    if chosen.fp16:
        tf.keras.mixed_precision.set_global_policy("mixed_float16")
    if chosen.xla:
        # The clusters of XLA leave out Horovod's operations, which it cannot compile.
        tf.config.optimizer.set_jit("autoclustering")
    tf.random.set_seed(hvd.rank())


def _model(chosen: Any) -> Any:
    shape = (chosen.image_size, chosen.image_size, 3)
    if chosen.model == "resnet50":
        return tf.keras.applications.ResNet50(weights=None, input_shape=shape, classes=chosen.classes)
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Conv2D(8, 3, strides=2, input_shape=shape, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(chosen.classes),
            layers.Activation("softmax", dtype="float32"),
        ]
    )


def _optimizer(chosen: Any) -> Any:
    optimizer = tf.keras.optimizers.legacy.SGD(0.01 * hvd.size(), momentum=0.9)
    return tf.keras.mixed_precision.LossScaleOptimizer(optimizer) if chosen.fp16 else optimizer


def _data(chosen: Any) -> Any:
    size = (chosen.image_size, chosen.image_size)
    if chosen.data:
        folder = tf.keras.utils.image_dataset_from_directory(
            chosen.data, image_size=size, batch_size=None, seed=1, shuffle=True
        )
        mine = folder.shard(hvd.size(), hvd.rank()).repeat().batch(chosen.batch_size, drop_remainder=True)
        return mine.map(lambda images, labels: (images / 255.0, labels)).prefetch(tf.data.AUTOTUNE)
    images = tf.random.uniform([chosen.batch_size, *size, 3])
    labels = tf.random.uniform([chosen.batch_size], 0, chosen.classes, tf.int64)
    return tf.data.Dataset.from_tensors((images, labels)).repeat()


def _step(model: Any, optimizer: Any) -> Callable[[Any, Any], Any]:
    measure = tf.keras.losses.SparseCategoricalCrossentropy()
    is_scaled = isinstance(optimizer, tf.keras.mixed_precision.LossScaleOptimizer)

    @tf.function
    def step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = measure(labels, model(images, training=True))
            scaled = optimizer.get_scaled_loss(loss) if is_scaled else loss
        gradients = hvd.DistributedGradientTape(tape).gradient(scaled, model.trainable_variables)
        if is_scaled:
            gradients = optimizer.get_unscaled_gradients(gradients)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    return step


def _pause(chosen: Any, records: Any, pace: Any, number: int, model: Any, images: Any) -> None:
    if pace.is_due(chosen.evaluate_every, number):
        with records.phase("eval"):
            model(images, training=False)
    if pace.is_due(chosen.checkpoint_every, number):
        with records.phase("checkpoint"):
            if hvd.rank() == 0:
                os.makedirs(chosen.checkpoints, exist_ok=True)
                model.save_weights(os.path.join(chosen.checkpoints, f"step{number}.weights.h5"))


if __name__ == "__main__":
    main()
