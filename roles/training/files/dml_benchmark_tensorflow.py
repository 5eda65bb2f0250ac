"""Train a network on synthetic images or a folder of images with TensorFlow 2 and Horovod, and record each step."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any

# TensorFlow reads this during import and otherwise excludes the CPU: https://www.tensorflow.org/xla#auto-clustering
if "--xla" in sys.argv and "--cpu" in sys.argv:
    os.environ["TF_XLA_FLAGS"] = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"

import dml_options
import dml_records
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

# The formats that decode_image reads.
IMAGES = (".jpg", ".jpeg", ".png", ".gif", ".bmp")


def main() -> None:
    """Train."""
    chosen = dml_options.options(__doc__)
    hvd.init()
    _prepare(chosen)
    model, optimizer, batches = _model(chosen), _optimizer(chosen), iter(_data(chosen))
    variables, kept = _variables(model, optimizer), dml_options.Checkpoints(chosen, ".npz")
    done = _begin(chosen, variables, kept)
    records, pace = dml_records.start(first_step=done + 1), dml_options.Pace(chosen, done)
    step = _step(model, optimizer)
    for number in pace.steps(lambda stop: bool(hvd.broadcast(tf.constant(stop), 0))):
        images, labels = next(batches)
        with records.phase("compile") if number == done + 1 else contextlib.nullcontext():
            loss = step(images, labels)
        pace.end_step()
        records.step(images=chosen.batch_size, loss=loss)
        if pace.is_due(chosen.evaluate_every, number):
            with records.phase("eval"):
                model(images, training=False)
        if pace.is_due(chosen.checkpoint_every, number):
            with records.phase("checkpoint"):
                _keep(variables, kept, number)
    parameters = (variable.numpy().tobytes() for variable in model.trainable_variables)
    dml_options.keep(pace.summary(hvd.rank(), hvd.size(), parameters), hvd.allgather_object)


def _variables(model: Any, optimizer: Any) -> Any:
    """Return all variables that training changes; a step with zero gradients creates those of the optimizer."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    inner.apply_gradients([(tf.zeros_like(one), one) for one in model.trainable_variables])
    return [*model.variables, *optimizer.variables()]


def _begin(chosen: Any, variables: Any, kept: Any) -> int:
    """Broadcast the state of rank 0, optionally from a checkpoint, and return the number of completed steps."""
    done = kept.restore(lambda file: _read(file, variables)) if chosen.resume and hvd.rank() == 0 else 0
    hvd.broadcast_variables(variables, root_rank=0)
    return int(hvd.broadcast_object(done, 0))


def _keep(variables: Any, kept: Any, number: int) -> None:
    if hvd.rank() == 0:
        kept.keep(number, lambda file: np.savez(file, *(variable.numpy() for variable in variables)))


def _read(file: Any, variables: Any) -> None:
    with np.load(file) as values:
        if [values[name].shape for name in values.files] != [tuple(one.shape) for one in variables]:
            raise dml_options.BenchmarkError(f"the checkpoint {file.name} belongs to another network")
        for name, one in zip(values.files, variables):
            one.assign(values[name])


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
        # XLA clusters exclude Horovod's operations, which XLA cannot compile.
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
        return _folder(chosen, size)
    images = tf.random.uniform([chosen.batch_size, *size, 3])
    labels = tf.random.uniform([chosen.batch_size], 0, chosen.classes, tf.int64)
    return tf.data.Dataset.from_tensors((images, labels)).repeat()


def _folder(chosen: Any, size: Any) -> Any:
    """Return the images of this rank: all ranks shuffle in the same way, and each reads only its share."""
    classes = sorted(entry.name for entry in os.scandir(chosen.data) if entry.is_dir())
    files = [(path, label) for label, name in enumerate(classes) for path in sorted(_images(chosen.data, name))]
    dml_options.check_folder(chosen, len(files), len(classes), hvd.size())

    def load(path: Any, label: Any) -> Any:
        image = tf.io.decode_image(tf.io.read_file(path), channels=3, expand_animations=False)
        return tf.image.resize(image, size) / 255.0, label

    paths, labels = zip(*files)
    order = tf.data.Dataset.from_tensor_slices((list(paths), list(labels))).shuffle(len(files), seed=1)
    mine = order.shard(hvd.size(), hvd.rank()).map(load, tf.data.AUTOTUNE).repeat()
    return mine.batch(chosen.batch_size, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def _images(folder: str, name: str) -> Any:
    """Yield the images of a class, including those in subfolders."""
    for place, _folders, files in os.walk(os.path.join(folder, name)):
        yield from (os.path.join(place, file) for file in files if file.lower().endswith(IMAGES))


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


if __name__ == "__main__":
    main()
