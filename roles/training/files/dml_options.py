# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the benchmark scripts share: their options, when they end, and the summary of each rank."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

# Beside the records of rank 0: the job is to end with the epoch.
FINISH = "finish"
SWITCHES = {
    "--fp16": "compute in half precision",
    "--xla": "compile by XLA (TensorFlow) or torch.compile (PyTorch)",
    "--cpu": "train on the CPU",
}


def options(description: str) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", choices=["resnet50", "small"], default="resnet50")
    parser.add_argument("--batch-size", type=int, default=32, help="images of one rank in a step")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--data", default="", help="a folder of images, one folder for each class; else synthetic")
    parser.add_argument("--steps", type=int, default=100, help="of one rank in an epoch")
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


class Pace:
    """Counts the steps of a rank and their times."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self.chosen = chosen
        self.epoch_seconds: list[float] = []
        self._steps: list[float] = []

    def steps(self, stop_together: Any) -> Iterator[int]:
        """The numbers of the steps, from 1; ``stop_together(wish)`` lets rank 0 decide for all when it is over."""
        chosen, number, began = self.chosen, 0, time.monotonic()
        epoch = 0
        while epoch < chosen.epochs or chosen.seconds:
            epoch_began, epoch = time.monotonic(), epoch + 1
            for _step in range(chosen.steps):
                step_began, number = time.monotonic(), number + 1
                yield number
                time.sleep(max(0.0, chosen.step_seconds - (time.monotonic() - step_began)))
                self._steps.append(time.monotonic() - step_began)
            self.epoch_seconds.append(time.monotonic() - epoch_began)
            if stop_together(self._is_over(began)):
                return

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
        raise SystemExit(f"the ranks ended with different parameters: {', '.join(summary['sha256_of_ranks'])}")


def _folder() -> str:
    return os.environ.get("DML_RECORDS", ".")
