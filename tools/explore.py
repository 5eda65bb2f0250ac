"""Explore random histories of the simulated site for a time, each with another seed.

A history that breaks a promise is shrunk and printed as Python, which reads like a story and can be pasted into a test.
"""

from __future__ import annotations

import argparse
import time

from hypothesis import seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.unit.simulation.machine import SiteMachine
from tests.unit.simulation.restarting import SlurmMachine
from tests.unit.simulation.teardowns import BuildingMachine
from tests.unit.simulation.test_simulation import HISTORIES

# The histories of a round. Those with teardowns take ten times as long.
ROUND: dict[type[SiteMachine], int] = {SiteMachine: 160, SlurmMachine: 20, BuildingMachine: 20}


def explore(seconds: float, first: int) -> int:
    """Explore until the time is over, and return the number of histories."""
    ends, count = time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        for whole, number in ROUND.items():
            how = settings(HISTORIES, max_examples=number, derandomize=False, database=None)
            machine = type(whole.__name__, (whole,), {})
            try:
                run_state_machine_as_test(seed(first + count)(machine), settings=how)
            except BaseException:
                print(f"Found with SEED={first + count}", flush=True)
                raise
        count += sum(ROUND.values())
        print(f"{count} histories keep every promise", flush=True)
    return count


def main() -> None:
    """Explore for the given time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    first = given.seed or int(time.time())
    explore(given.seconds, first)


if __name__ == "__main__":
    main()
