# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A small training without a framework: a linear regression whose gradients Open MPI adds up over all ranks."""

from __future__ import annotations

import array
import random
from collections.abc import Sequence

import dml_options
import dml_records
import mpi

# Each sample has some of all features, as a text has some of all words, and several values are to be said of it: a node
# that sends less than 64 KiB in a step proves no RDMA.
FEATURES, VALUES, OF_A_SAMPLE, RATE, SEED = 1024, 32, 16, 0.5, 16
WEIGHTS = FEATURES * VALUES
NETWORK = f"a linear regression of {VALUES} values on {FEATURES} features"
Sample = tuple[Sequence[int], Sequence[float]]


def samples(draw: random.Random, truth: Sequence[float], number: int) -> list[Sample]:
    """So many samples: which features each has, and what the regression should say of it."""
    drawn = [draw.sample(range(FEATURES), OF_A_SAMPLE) for _sample in range(number)]
    return [(features, said_of(features, truth)) for features in drawn]


def said_of(features: Sequence[int], weights: Sequence[float]) -> list[float]:
    """The values that some weights say of a sample."""
    rows = [weights[one * VALUES : (one + 1) * VALUES] for one in features]
    return [sum(column) for column in zip(*rows)]


def gradients(weights: Sequence[float], batch: Sequence[Sample]) -> list[float]:
    """The gradient of each weight, and last the loss."""
    found = [0.0] * (WEIGHTS + 1)
    for features, wanted in batch:
        errors = [said - right for said, right in zip(said_of(features, weights), wanted)]
        for one in features:
            for number, error in enumerate(errors, start=one * VALUES):
                found[number] += error / OF_A_SAMPLE
        found[WEIGHTS] += sum(error * error for error in errors) / len(errors) / len(batch)
    return found


def main() -> None:
    """Train as the benchmarks do, with their options."""
    chosen, ranks = dml_options.options(__doc__ or ""), mpi.Mpi()
    records = dml_records.start()
    common = random.Random(SEED)
    truth = [common.gauss(0.0, 1.0) for _weight in range(WEIGHTS)]
    weights, draw = array.array("f", [0.0] * WEIGHTS), random.Random(SEED + records.rank)
    pace = dml_options.Pace(chosen)
    # Rank 0 alone says when it is over.
    for _number in pace.steps(lambda wish: ranks.add([float(wish and records.rank == 0)])[0] > 0):
        *added, loss = ranks.add(gradients(weights, samples(draw, truth, chosen.batch_size)))
        for one, gradient in enumerate(added):
            weights[one] -= RATE * gradient
        pace.end_step()
        records.step(images=chosen.batch_size, loss=loss / records.size)
    summary = pace.summary(records.rank, records.size, [weights.tobytes()])
    dml_options.keep({**summary, "network": NETWORK}, ranks.gather)
    ranks.end()


if __name__ == "__main__":
    main()
