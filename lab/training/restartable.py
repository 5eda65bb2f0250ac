"""The regression of train.py without an end: it saves a checkpoint every few steps, and continues from one."""

from __future__ import annotations

import argparse
import array
import json
import os
import random
import time
import zipfile
from pathlib import Path

import dml_records
import mpi
from train import RATE, SEED, WEIGHTS, gradients, samples

# Lower, so that the loss still decreases after a restart.
BATCH, SLOW = 16, RATE / 10
# A rank has its own samples in each step, so that a repeated step has the loss that it had.
APART = 1_000_000


def saved(step: int, weights: array.array[float]) -> None:
    """Write the checkpoint after a step; only a complete one has its name."""
    part = Path("outputs/.part")
    with zipfile.ZipFile(part, "w") as archive:
        archive.writestr("step", json.dumps(step))
        archive.writestr("weights", weights.tobytes())
    part.replace(f"outputs/step{step}.ckpt")


def loaded(path: str) -> tuple[int, array.array[float]]:
    """Return the step and the weights of a checkpoint; those of a new training without one."""
    if not path:
        return 0, array.array("f", [0.0] * WEIGHTS)
    with zipfile.ZipFile(path) as archive:
        weights = array.array("f")
        weights.frombytes(archive.read("weights"))
        return int(json.loads(archive.read("step"))), weights


def main() -> None:
    """Train until the job is stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resume", default="", help="the checkpoint to continue from")
    parser.add_argument("--pace", type=float, default=0.2, help="seconds between two steps")
    parser.add_argument("--every", type=int, default=50, help="steps between two checkpoints")
    chosen, ranks = parser.parse_args(), mpi.Mpi()
    common = random.Random(SEED)
    truth = [common.gauss(0.0, 1.0) for _weight in range(WEIGHTS)]
    step, weights = loaded(chosen.resume)
    records = dml_records.start(first_step=step + 1)
    while True:
        step += 1
        time.sleep(chosen.pace)
        draw = random.Random(step * APART + records.rank)
        *added, loss = ranks.add(gradients(weights, samples(draw, truth, BATCH)))
        for number, gradient in enumerate(added):
            weights[number] -= SLOW * gradient
        records.step(images=BATCH, loss=loss / records.size)
        if records.rank == 0 and step % chosen.every == 0:
            os.makedirs("outputs", exist_ok=True)
            with records.phase("checkpoint"):
                saved(step, weights)


if __name__ == "__main__":
    main()
