# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which runs of the crowd are good: not one with a race of ours, nor with a failed client."""

from __future__ import annotations

import pytest

from tools.crowd import faults

RACE = """==================
WARNING: DATA RACE
Write at 0x00c0001a7ad8 by goroutine 3610:
  {first}
      github.com/vmware/govmomi@v0.56.0/simulator/registry.go:501 +0x276

Previous read at 0x00c0001a7ad8 by goroutine 3609:
  {second}
      github.com/vmware/govmomi@v0.56.0/simulator/datastore.go:74 +0x8d

Goroutine 3610 (running) created at:
  github.com/vmware/govmomi/simulator.(*Datastore).resolve()
==================
"""
THEIRS = RACE.format(first="a.RemoveReference()", second="github.com/vmware/govmomi/simulator.(*Datastore).resolve()")
OURS = RACE.format(first="a.(*Methods).clone()", second="b.c.func8()")
ROUNDS = "    crowd_test.go:84: clones: 20 rounds\n"
RACED = "    testing.go:1712: race detected during execution of test\n--- FAIL: TestACrowdOfClients (162.41s)\nFAIL\n"


@pytest.mark.parametrize(
    ("output", "code", "expected"),
    [
        (ROUNDS + "PASS\n", 0, []),
        (THEIRS + ROUNDS + RACED, 1, []),
        (
            THEIRS + OURS + RACED,
            1,
            ["data race: a.(*Methods).clone() and b.c.func8()"],
        ),
        (THEIRS + "    crowd_test.go:66: client 3: EOF\n" + RACED, 1, ["crowd_test.go:66: client 3: EOF"]),
        (THEIRS + RACED + "panic: no name\n", 2, ["go test ended with exit code 2"]),
        ("# dml.vsphere/lab/vcenter\nbuild failed\n", 1, ["go test ended with exit code 1"]),
    ],
    ids=["good", "inherited", "ours", "a client failed", "it died", "it was not built"],
)
def test_a_run(output: str, code: int, expected: list[str]) -> None:
    assert faults(output, code) == expected
