"""Write step records of a training script: one JSON line per optimizer step, in one file per rank.

PyTorch and custom training loops (including TensorFlow)::

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

Mark other work than training: ``with records.phase("eval"): ...`` (or ``checkpoint``, ``input``, ``compile``).
The files are in the folder DML_RECORDS or else in the working directory. Horovod need not be imported first.
"""

# No "from __future__ import annotations" here: the Python of TensorFlow 1 does not support it.

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
# Whether the script records its steps, and the records of dml_steps.py in this process.
is_used, _automatic = False, []  # type: Any


def start(folder: str = "", stride: int = 0, first_step: int = 1) -> "Records":
    """Start the records of this rank; ``first_step`` is for a script that continues from a checkpoint."""
    global is_used  # noqa: PLW0603 # dml_steps.py reads it
    is_used = True
    return _started(folder, stride, max([first_step, *(records.next_step for records in _automatic)]))


def automatic(first_step: int = 1) -> "Records":
    """Start the records of a script that starts none itself."""
    _automatic.append(_started(first_step=first_step))
    return _automatic[-1]


def _started(folder: str = "", stride: int = 0, first_step: int = 1) -> "Records":
    stride = stride or int(os.environ.get(STRIDE, "1"))
    return Records(folder or os.environ.get(FOLDER, "."), stride, first_step)


class Records:
    """The record file of one rank."""

    def __init__(self, folder: str, stride: int, first_step: int) -> None:
        if stride < 1 or first_step < 0:
            raise ValueError("stride must be 1 or more and first_step 0 or more")
        self._stride, self._step = stride, first_step - 1
        self._generation, self._images, self._paused = 0, 0, 0.0
        self._has_reported = self.is_in_phase = self._is_torn = False
        self._last = None  # type: Any
        # Further keys of each record, if another program than the script counts its steps.
        self.source = {}  # type: dict[str, Any]
        self._who = _identity()
        os.makedirs(folder, exist_ok=True)
        self._path = os.path.join(folder, f"rank{self.rank}.jsonl")
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    @property
    def rank(self) -> int:
        """Return the MPI rank of this process."""
        return int(self._who["rank"])

    @property
    def size(self) -> int:
        """Return the number of ranks in the job."""
        return int(self._who["size"])

    @property
    def next_step(self) -> int:
        """Return the number of the next step."""
        return self._step + 1

    def step(self, images: int = 0, loss: Any = None) -> None:
        """Record that an optimizer step on ``images`` images of this rank is complete."""
        self._step += 1
        self._images += images
        if self._step % self._stride:
            return
        self._write({"phase": "train", "loss": _number(loss), "images_per_sec": self._rate()})

    def report(self, step: int, images_per_sec: Any = None, loss: Any = None) -> None:
        """Record the steps up to this one, for a script with its own counter and timer."""
        if self._has_reported:
            self._stride = max(1, step - self._step)
        self._step, self._has_reported = step, True
        self._write({"phase": "train", "loss": _number(loss), "images_per_sec": _number(images_per_sec)})

    def log(self, loss: Any) -> None:
        """Record the loss of the last step, which a framework logs after it."""
        self._write({"phase": "train", "loss": _number(loss), "images_per_sec": None, "mark": "loss"})

    @contextlib.contextmanager
    def phase(self, name: str) -> "Iterator[None]":
        """Mark the enclosed work as a phase other than training: eval, checkpoint, input or compile."""
        self.begin(name)
        try:
            yield
        finally:
            self.end(name)

    def begin(self, name: str) -> None:
        """Begin a phase if ``with phase()`` is not applicable."""
        if name not in PHASES:
            raise ValueError(f"phase {name!r} is not one of {', '.join(PHASES)}")
        self._began, self.is_in_phase = time.monotonic(), True
        self._write({"phase": name, "loss": None, "images_per_sec": None, "mark": "begin"})

    def end(self, name: str) -> None:
        """End a phase."""
        self._paused += time.monotonic() - self._began
        self.is_in_phase = False
        self._write({"phase": name, "loss": None, "images_per_sec": None, "mark": "end"})

    def reset(self) -> None:
        """Record that an elastic launcher created a new communicator: rank and size may have changed."""
        self._generation += 1
        self._who.update(_place())

    def _rate(self) -> Any:
        now = time.monotonic()
        seconds = 0.0 if self._last is None else now - self._last - self._paused
        rate = self._images / seconds if seconds > 0 and self._images else None
        self._last, self._images, self._paused = now, 0, 0.0
        return rate

    def _write(self, facts: "dict[str, Any]") -> None:
        """Write a line with one call; after a partial write, write the rest, so that the system reports the error."""
        place = {"t": time.time(), "step": max(self._step, 0), "stride": self._stride, "generation": self._generation}
        line = json.dumps(dict(place, **self._who, **facts, **self.source)) + "\n"
        # The rest of a line that was written in part must not become one with this line.
        data = b"\n" * self._is_torn + line.encode()
        try:
            while data:
                count = os.write(self._file, data)
                data, self._is_torn = data[count:], count < len(data)
        except OSError as error:
            error.filename = self._path
            raise


def keras_callback(records: Records, images: int) -> Any:
    """Return a Keras callback that records each batch of ``images`` images on this rank and marks evaluation."""
    import tensorflow  # a script of another framework has none

    class Callback(tensorflow.keras.callbacks.Callback):  # type: ignore[misc] # tensorflow is not read by mypy
        """Record batches."""

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            """One step."""
            del batch
            records.step(images, (logs or {}).get("loss"))

        def on_test_begin(self, logs: Any = None) -> None:
            """Mark the start of an evaluation."""
            del logs
            records.begin("eval")

        def on_test_end(self, logs: Any = None) -> None:
            """Mark the end of an evaluation."""
            del logs
            records.end("eval")

    return Callback()


def session_hook(records: Records, images: int, loss: Any = None) -> Any:
    """Return a TensorFlow 1 session hook that records each run of ``images`` images on this rank."""
    import tensorflow  # a script of another framework has none

    train = tensorflow.compat.v1.train

    class Hook(train.SessionRunHook):  # type: ignore[misc] # tensorflow is not read by mypy
        """Record runs."""

        def before_run(self, run_context: Any) -> Any:
            """Request the loss too."""
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
    """Return a loss for JSON: tensors and NumPy numbers as floats, NaN and infinities as text."""
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else str(number)
