"""Common parts of the benchmark scripts: options, end condition, checkpoints, and the summary of each rank."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

# A file next to the records of rank 0 that requests the job to end with the epoch.
FINISH = "finish"
BLOCK = 1 << 20
SWITCHES = {
    "--fp16": "compute in half precision",
    "--xla": "compile with XLA (TensorFlow) or torch.compile (PyTorch)",
    "--cpu": "train on the CPU",
    "--resume": "continue from the newest checkpoint if there is one",
}


class BenchmarkError(Exception):
    """A request that cannot be met; readers of the output find the message by the name of this class."""


def options(description: str) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", choices=["resnet50", "small"], default="resnet50")
    parser.add_argument("--batch-size", type=int, default=32, help="images per rank and step")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--data", default="", help="a folder of images, one subfolder per class; else synthetic")
    parser.add_argument("--steps", type=_positive, default=100, help="steps per rank and epoch")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0, help="train for this time instead of a number of epochs")
    parser.add_argument("--warmup", type=int, default=10, help="initial steps that the summary omits")
    parser.add_argument("--step-seconds", type=float, default=0, help="minimum duration of a step")
    parser.add_argument("--evaluate-every", type=int, default=0, help="steps between evaluations; 0 for none")
    parser.add_argument("--checkpoint-every", type=int, default=0, help="steps between checkpoints; 0 for none")
    parser.add_argument("--checkpoints", default="checkpoints", help="the checkpoint folder of rank 0")
    for name, text in SWITCHES.items():
        parser.add_argument(name, action="store_true", help=text)
    return parser.parse_args()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def check_folder(chosen: argparse.Namespace, images: int, classes: int, ranks: int) -> None:
    """Raise an error if the folder has too few images for all ranks or too many classes for the network."""
    if images < chosen.batch_size * ranks:
        raise BenchmarkError(
            f"{chosen.data} has {images} images, too few for one batch of {chosen.batch_size} on each of {ranks} ranks"
        )
    if classes > chosen.classes:
        raise BenchmarkError(f"{chosen.data} has {classes} classes, and --classes is {chosen.classes}: raise it")


class Pace:
    """Count the steps of a rank and measure their times."""

    def __init__(self, chosen: argparse.Namespace, done: int = 0) -> None:
        self.chosen = chosen
        self.epoch_seconds: list[float] = []
        self._done, self._began = done, 0.0
        self._steps: list[float] = []

    def steps(self, stop_together: Any) -> Iterator[int]:
        """Yield the numbers of the steps to make; ``stop_together(wish)`` lets rank 0 decide when to stop."""
        chosen, number, began = self.chosen, self._done, time.monotonic()
        while number < chosen.steps * chosen.epochs or chosen.seconds:
            epoch_began, left = time.monotonic(), chosen.steps - number % chosen.steps
            for _step in range(left):
                self._began, number = time.monotonic(), number + 1
                yield number
            if left == chosen.steps:
                self.epoch_seconds.append(time.monotonic() - epoch_began)
            if stop_together(self._is_over(began)):
                return

    def end_step(self) -> None:
        """End a step after its minimum duration; work of the script before the next step does not count."""
        time.sleep(max(0.0, self.chosen.step_seconds - (time.monotonic() - self._began)))
        self._steps.append(time.monotonic() - self._began)

    def _is_over(self, began: float) -> bool:
        """Return whether the time is over or a file requests the end after this epoch."""
        is_late = self.chosen.seconds > 0 and time.monotonic() - began >= self.chosen.seconds
        return is_late or os.path.exists(os.path.join(_folder(), FINISH))

    def is_due(self, every: int, number: int) -> bool:
        """Return whether a periodic action is due after this step."""
        return every > 0 and number % every == 0

    def summary(self, rank: int, size: int, parameters: Iterable[bytes]) -> dict[str, Any]:
        """Return the measurements of this rank and a checksum of its parameters, which must be equal on all ranks."""
        measured = self._steps[self.chosen.warmup :] or self._steps
        checksum, count = hashlib.sha256(), 0
        for part in parameters:
            checksum.update(part)
            count += len(part)
        return {
            "rank": rank,
            "size": size,
            "steps": len(self._steps),
            "images_per_sec": self.chosen.batch_size / statistics.median(measured) if measured else None,
            "seconds_per_epoch": statistics.median(self.epoch_seconds) if self.epoch_seconds else None,
            # Ranks exchange gradients in full precision, like the parameters: mixed precision is only within a step.
            "gradient_bytes": count,
            "parameters_sha256": checksum.hexdigest(),
        }


def keep(summary: dict[str, Any], gather: Callable[[Any], list[Any]]) -> None:
    """Write the summary next to the rank's records, with the checksums of all ranks; fail if these differ."""
    summary["sha256_of_ranks"] = gather(summary["parameters_sha256"])
    with open(os.path.join(_folder(), f"summary{summary['rank']}.json"), "w") as file:
        json.dump(summary, file)
    if len(set(summary["sha256_of_ranks"])) > 1:
        raise BenchmarkError(f"the ranks ended with different parameters: {', '.join(summary['sha256_of_ranks'])}")


class Checkpoints:
    """The checkpoints of a job on rank 0: each is a complete file with a separate checksum file."""

    def __init__(self, chosen: argparse.Namespace, suffix: str) -> None:
        self._chosen, self._suffix = chosen, suffix

    def keep(self, number: int, write: Callable[[Any], None]) -> None:
        """Save the file that ``write`` writes as the checkpoint of this step."""
        folder = self._chosen.checkpoints
        os.makedirs(folder, exist_ok=True)
        name = f"step{number}{self._suffix}"
        # A search for the newest checkpoint ignores a name that starts with a dot.
        written, path = os.path.join(folder, f".{name}"), os.path.join(folder, name)
        with open(written, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        with open(f"{path}.sha256", "w") as beside:
            beside.write(f"{_checksum(written)}  {name}\n")
        os.replace(written, path)

    def restore(self, read: Callable[[Any], None]) -> int:
        """Let ``read`` read the newest checkpoint and return its step; 0 if there is no checkpoint."""
        number, path = self._newest()
        if not path:
            return 0
        with open(f"{path}.sha256") as beside:
            if beside.read().split()[:1] != [_checksum(path)]:
                raise BenchmarkError(f"the checkpoint {path} does not match its checksum: remove it")
        if not self._chosen.seconds and number >= self._chosen.steps * self._chosen.epochs:
            raise BenchmarkError(f"the checkpoint {path} is that of the last step: increase --epochs")
        with open(path, "rb") as file:
            read(file)
        return number

    def _newest(self) -> tuple[int, str]:
        folder = self._chosen.checkpoints
        names = os.listdir(folder) if os.path.isdir(folder) else []
        found = [(re.fullmatch(rf"step(\d+){re.escape(self._suffix)}", name), name) for name in names]
        return max(((int(match[1]), os.path.join(folder, name)) for match, name in found if match), default=(0, ""))


def _checksum(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(BLOCK), b""):
            digest.update(block)
    return digest.hexdigest()


def _folder() -> str:
    return os.environ.get("DML_RECORDS", ".")
