# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Step records of a training script: one JSON line for each optimizer step of each rank, in a file of that rank.

PyTorch, and any loop of one's own (TensorFlow too)::

    import dml_records
    records = dml_records.start()
    for batch in data: ...; records.step(images=len(batch), loss=loss)

Keras::

    import dml_records
    records = dml_records.start()
    model.fit(data, callbacks=[dml_records.keras_callback(records, images=32)])

TensorFlow 1 with a MonitoredSession::

    import dml_records
    records = dml_records.start()
    hooks = [dml_records.session_hook(records, images=32, loss=loss_tensor)]

What is no training is said so: ``with records.phase("eval"): ...`` (or ``checkpoint``, ``input``, ``compile``).
The files lie in the folder that DML_RECORDS names, else in the working folder. Horovod need not be imported before.
"""

# No "from __future__ import annotations" here: TensorFlow 1 runs on a Python that does not know it.

import contextlib
import json
import math
import os
import socket
import time
from collections.abc import Iterator
from typing import Any

PHASES = ("train", "eval", "checkpoint", "input", "compile")
FOLDER, STRIDE = "DML_RECORDS", "DML_RECORDS_STRIDE"


def start(folder: str = "", stride: int = 0, first_step: int = 1) -> "Records":
    """Begin the records of this rank; ``first_step`` is for a script that goes on from a checkpoint."""
    stride = stride or int(os.environ.get(STRIDE, "1"))
    return Records(folder or os.environ.get(FOLDER, "."), stride, first_step)


class Records:
    """The record file of one rank."""

    def __init__(self, folder: str, stride: int, first_step: int) -> None:
        if stride < 1 or first_step < 0:
            raise ValueError("stride must be 1 or more and first_step 0 or more")
        self._stride, self._step = stride, first_step - 1
        self._generation, self._images, self._paused = 0, 0, 0.0
        self._has_told = False
        self._last = None  # type: Any
        self._who = _identity()
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"rank{self.rank}.jsonl")
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    @property
    def rank(self) -> int:
        """The MPI rank of this process."""
        return int(self._who["rank"])

    @property
    def size(self) -> int:
        """How many ranks the job has."""
        return int(self._who["size"])

    def step(self, images: int = 0, loss: Any = None) -> None:
        """Tell that an optimizer step is done, on so many images of this rank."""
        self._step += 1
        self._images += images
        if self._step % self._stride:
            return
        self._write({"phase": "train", "loss": _number(loss), "images_per_sec": self._rate()})

    def tell(self, step: int, images_per_sec: Any = None, loss: Any = None) -> None:
        """Tell of the steps up to this one, for a script that counts and measures by itself."""
        if self._has_told:
            self._stride = max(1, step - self._step)
        self._step, self._has_told = step, True
        self._write({"phase": "train", "loss": _number(loss), "images_per_sec": _number(images_per_sec)})

    @contextlib.contextmanager
    def phase(self, name: str) -> "Iterator[None]":
        """Mark what is done inside as no training: eval, checkpoint, input or compile."""
        self.begin(name)
        try:
            yield
        finally:
            self.end(name)

    def begin(self, name: str) -> None:
        """Begin a phase, where ``with phase()`` does not fit."""
        if name not in PHASES:
            raise ValueError(f"phase {name!r} is none of {', '.join(PHASES)}")
        self._began = time.monotonic()
        self._write({"phase": name, "loss": None, "images_per_sec": None, "mark": "begin"})

    def end(self, name: str) -> None:
        """End a phase."""
        self._paused += time.monotonic() - self._began
        self._write({"phase": name, "loss": None, "images_per_sec": None, "mark": "end"})

    def reset(self) -> None:
        """Tell that an elastic launcher made a new communicator: rank and size may have changed."""
        self._generation += 1
        self._who.update(_place())

    def _rate(self) -> Any:
        now = time.monotonic()
        seconds = 0.0 if self._last is None else now - self._last - self._paused
        rate = self._images / seconds if seconds > 0 and self._images else None
        self._last, self._images, self._paused = now, 0, 0.0
        return rate

    def _write(self, facts: "dict[str, Any]") -> None:
        """One write for each line; of what does not fit the rest is tried too, so that the system says why."""
        place = {"t": time.time(), "step": max(self._step, 0), "stride": self._stride, "generation": self._generation}
        line = json.dumps(dict(place, **self._who, **facts)) + "\n"
        data = line.encode()
        while data:
            data = data[os.write(self._file, data) :]


def keras_callback(records: Records, images: int) -> Any:
    """A Keras callback that tells of each batch of so many images on this rank, and marks evaluation."""
    import tensorflow  # a script of another framework has none

    class Callback(tensorflow.keras.callbacks.Callback):  # type: ignore[misc] # tensorflow is not read by mypy
        """Tells of batches."""

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            """One step."""
            del batch
            records.step(images, (logs or {}).get("loss"))

        def on_test_begin(self, logs: Any = None) -> None:
            """Evaluation begins."""
            del logs
            records.begin("eval")

        def on_test_end(self, logs: Any = None) -> None:
            """Evaluation ends."""
            del logs
            records.end("eval")

    return Callback()


def session_hook(records: Records, images: int, loss: Any = None) -> Any:
    """A hook for the sessions of TensorFlow 1 that tells of each run of so many images on this rank."""
    import tensorflow  # a script of another framework has none

    train = tensorflow.compat.v1.train

    class Hook(train.SessionRunHook):  # type: ignore[misc] # tensorflow is not read by mypy
        """Tells of runs."""

        def before_run(self, run_context: Any) -> Any:
            """Ask for the loss too."""
            del run_context
            return train.SessionRunArgs(loss) if loss is not None else None

        def after_run(self, run_context: Any, run_values: Any) -> None:
            """One step."""
            del run_context
            records.step(images, run_values.results if loss is not None else None)

    return Hook()


def _identity() -> "dict[str, Any]":
    with open("/proc/self/stat", "rb") as stat:
        start_ticks = int(stat.read().rsplit(b")", 1)[1].split()[19])
    with open("/proc/sys/kernel/random/boot_id") as boot:
        boot_id = boot.read().strip()
    job = os.environ.get("PMIX_NAMESPACE") or os.environ.get("OMPI_MCA_ess_base_jobid")  # noqa: SIM112 # MPI spells it so
    process = {"host": socket.gethostname(), "pid": os.getpid(), "start": start_ticks, "boot_id": boot_id, "job": job}
    return dict(process, **_place())


def _place() -> "dict[str, Any]":
    for rank, size in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("HOROVOD_RANK", "HOROVOD_SIZE")):
        if rank in os.environ:
            return {"rank": int(os.environ[rank]), "size": int(os.environ[size])}
    return {"rank": int(os.environ.get("RANK", "0")), "size": int(os.environ.get("WORLD_SIZE", "1"))}


def _number(value: Any) -> Any:
    """A loss as JSON knows it: tensors and NumPy numbers as floats, NaN and infinities as text."""
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else str(number)
