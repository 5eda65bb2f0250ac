# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Explore random histories of the simulated site for a time, each with another seed.

A history that breaks a promise is shrunk and printed as Python, which reads like a story and can be pasted into a test.
"""

from __future__ import annotations

import argparse
import time

from hypothesis import seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.unit.simulation.machine import SiteMachine
from tests.unit.simulation.test_simulation import HISTORIES

AT_ONCE = 200


def explore(seconds: float, first: int) -> int:
    """Explore until the time is over, and return the number of histories."""
    ends, count = time.monotonic() + seconds, 0
    how = settings(HISTORIES, max_examples=AT_ONCE, derandomize=False, database=None)
    while time.monotonic() < ends:
        machine = type("SiteMachine", (SiteMachine,), {})
        try:
            run_state_machine_as_test(seed(first + count)(machine), settings=how)
        except BaseException:
            print(f"Found with SEED={first + count}", flush=True)
            raise
        count += AT_ONCE
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
