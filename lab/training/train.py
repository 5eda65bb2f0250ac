"""A small training without a framework: a linear regression, with Open MPI adding up the gradients of all ranks."""

from __future__ import annotations

import array
import random
from collections.abc import Sequence

import dml_options
import dml_records
import mpi

# Each sample has some of all features, as a text has some of all words, and the model predicts several values for it:
# the RDMA check needs a node to send at least 64 KiB in a step.
FEATURES, VALUES, OF_A_SAMPLE, RATE, SEED = 1024, 32, 16, 0.5, 16
WEIGHTS = FEATURES * VALUES
NETWORK = f"a linear regression of {VALUES} values on {FEATURES} features"
Sample = tuple[Sequence[int], Sequence[float]]


def samples(draw: random.Random, truth: Sequence[float], number: int) -> list[Sample]:
    """Return a number of samples, each with its features and the values to predict."""
    drawn = [draw.sample(range(FEATURES), OF_A_SAMPLE) for _sample in range(number)]
    return [(features, predict(features, truth)) for features in drawn]


def predict(features: Sequence[int], weights: Sequence[float]) -> list[float]:
    """Return the values that the weights predict for a sample."""
    rows = [weights[feature * VALUES : (feature + 1) * VALUES] for feature in features]
    return [sum(column) for column in zip(*rows)]


def gradients(weights: Sequence[float], batch: Sequence[Sample]) -> list[float]:
    """Return the gradient of each weight, followed by the loss."""
    found = [0.0] * (WEIGHTS + 1)
    for features, targets in batch:
        errors = [value - right for value, right in zip(predict(features, weights), targets)]
        for feature in features:
            for number, error in enumerate(errors, start=feature * VALUES):
                found[number] += error / OF_A_SAMPLE
        found[WEIGHTS] += sum(error * error for error in errors) / len(errors) / len(batch)
    return found


def main() -> None:
    """Train with the options of the benchmarks."""
    chosen, ranks = dml_options.options(__doc__ or ""), mpi.Mpi()
    records = dml_records.start()
    common = random.Random(SEED)
    truth = [common.gauss(0.0, 1.0) for _weight in range(WEIGHTS)]
    weights, draw = array.array("f", [0.0] * WEIGHTS), random.Random(SEED + records.rank)
    pace = dml_options.Pace(chosen)
    # Only rank 0 decides when the training ends.
    for _number in pace.steps(lambda stop: ranks.add([float(stop and records.rank == 0)])[0] > 0):
        *added, loss = ranks.add(gradients(weights, samples(draw, truth, chosen.batch_size)))
        for number, gradient in enumerate(added):
            weights[number] -= RATE * gradient
        pace.end_step()
        records.step(images=chosen.batch_size, loss=loss / records.size)
    summary = pace.summary(records.rank, records.size, [weights.tobytes()])
    dml_options.keep({**summary, "network": NETWORK}, ranks.gather)
    ranks.end()


if __name__ == "__main__":
    main()
