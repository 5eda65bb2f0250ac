# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the benchmark scripts share: their options, when they end, their checkpoints, and the summary of each rank."""

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

# Beside the records of rank 0: the job is to end with the epoch.
FINISH = "finish"
BLOCK = 1 << 20
SWITCHES = {
    "--fp16": "compute in half precision",
    "--xla": "compile by XLA (TensorFlow) or torch.compile (PyTorch)",
    "--cpu": "train on the CPU",
    "--resume": "go on from the newest checkpoint, where there is one",
}


class BenchmarkError(Exception):
    """Something that was asked for and cannot be; its name lets whoever reads the output find its words."""


def options(description: str) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", choices=["resnet50", "small"], default="resnet50")
    parser.add_argument("--batch-size", type=int, default=32, help="images of one rank in a step")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--data", default="", help="a folder of images, one folder for each class; else synthetic")
    parser.add_argument("--steps", type=_positive, default=100, help="of one rank in an epoch")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0, help="go on for so long instead, whatever the epochs are")
    parser.add_argument("--warmup", type=int, default=10, help="first steps that the summary leaves out")
    parser.add_argument("--step-seconds", type=float, default=0, help="let no step be shorter")
    parser.add_argument("--evaluate-every", type=int, default=0, help="steps between evaluations; 0 for none")
    parser.add_argument("--checkpoint-every", type=int, default=0, help="steps between checkpoints; 0 for none")
    parser.add_argument("--checkpoints", default="checkpoints", help="the folder for them, of rank 0")
    for name, text in SWITCHES.items():
        parser.add_argument(name, action="store_true", help=text)
    return parser.parse_args()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def check_folder(chosen: argparse.Namespace, images: int, classes: int, ranks: int) -> None:
    """Refuse a folder of images that would make ranks wait for ever, or labels that the network has no place for."""
    if images < chosen.batch_size * ranks:
        raise BenchmarkError(
            f"{chosen.data} has {images} images, too few for one batch of {chosen.batch_size} on each of {ranks} ranks"
        )
    if classes > chosen.classes:
        raise BenchmarkError(f"{chosen.data} has {classes} classes, and --classes is {chosen.classes}: raise it")


class Pace:
    """Counts the steps of a rank and their times."""

    def __init__(self, chosen: argparse.Namespace, done: int = 0) -> None:
        self.chosen = chosen
        self.epoch_seconds: list[float] = []
        self._done, self._began = done, 0.0
        self._steps: list[float] = []

    def steps(self, stop_together: Any) -> Iterator[int]:
        """The numbers of the steps to make; ``stop_together(wish)`` lets rank 0 decide for all when it is over."""
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
        """A step is done, and as long as it must be; what a script does until the next is no part of it."""
        time.sleep(max(0.0, self.chosen.step_seconds - (time.monotonic() - self._began)))
        self._steps.append(time.monotonic() - self._began)

    def _is_over(self, began: float) -> bool:
        """Whether time is up, or somebody asked for the end of the epoch by a file."""
        is_late = self.chosen.seconds > 0 and time.monotonic() - began >= self.chosen.seconds
        return is_late or os.path.exists(os.path.join(_folder(), FINISH))

    def is_due(self, every: int, number: int) -> bool:
        """Whether something is done after this step."""
        return every > 0 and number % every == 0

    def summary(self, rank: int, size: int, parameters: Iterable[bytes]) -> dict[str, Any]:
        """What this rank measured, and a checksum of its parameters, which all ranks must share."""
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
            # Gradients are exchanged in full precision, like the parameters: mixed precision is inside of a step.
            "gradient_bytes": count,
            "parameters_sha256": checksum.hexdigest(),
        }


def keep(summary: dict[str, Any], gather: Callable[[Any], list[Any]]) -> None:
    """Write the summary beside the rank's records, with the checksums of all ranks: the job fails where they differ."""
    summary["sha256_of_ranks"] = gather(summary["parameters_sha256"])
    with open(os.path.join(_folder(), f"summary{summary['rank']}.json"), "w") as file:
        json.dump(summary, file)
    if len(set(summary["sha256_of_ranks"])) > 1:
        raise BenchmarkError(f"the ranks ended with different parameters: {', '.join(summary['sha256_of_ranks'])}")


class Checkpoints:
    """The checkpoints of a job: one file for each with its checksum beside it, whole or not there; rank 0 has them."""

    def __init__(self, chosen: argparse.Namespace, suffix: str) -> None:
        self._chosen, self._suffix = chosen, suffix

    def keep(self, number: int, write: Callable[[Any], None]) -> None:
        """Keep what ``write`` writes into a file as the checkpoint of this step."""
        folder = self._chosen.checkpoints
        os.makedirs(folder, exist_ok=True)
        name = f"step{number}{self._suffix}"
        # A name that begins with a dot is no checkpoint to anybody who looks for the newest.
        written, path = os.path.join(folder, f".{name}"), os.path.join(folder, name)
        with open(written, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        with open(f"{path}.sha256", "w") as beside:
            beside.write(f"{_checksum(written)}  {name}\n")
        os.replace(written, path)

    def restore(self, read: Callable[[Any], None]) -> int:
        """Let ``read`` read the newest one; the step that it was made after, 0 where there is none."""
        number, path = self._newest()
        if not path:
            return 0
        with open(f"{path}.sha256") as beside:
            if beside.read().split()[:1] != [_checksum(path)]:
                raise BenchmarkError(f"the checkpoint {path} is not what its checksum says: remove it")
        if not self._chosen.seconds and number >= self._chosen.steps * self._chosen.epochs:
            raise BenchmarkError(f"the checkpoint {path} is of the last step: ask for more epochs")
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
