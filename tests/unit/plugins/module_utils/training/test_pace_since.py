# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The number of steps of each rank since a given time."""

from __future__ import annotations

from plugins.module_utils.training.pace_since import StepsSince


def record(rank: int, step: int, seen: float, **more: object) -> dict[str, object]:
    return {"rank": rank, "step": step, "seen": seen, "size": 2, "host": f"w{rank}.lab", **more}


def test_only_steps_since_then_count_and_the_slowest_rank_decides() -> None:
    advance = StepsSince(since=10.0)
    advance.feed(record(0, step, 8.0 + step) for step in range(6))
    assert (advance.fewest(), advance.behind(1)) == (0, [1]), "a rank of the job has sent no record"
    advance.feed([record(1, 5, 12.0), record(1, 6, 13.0, stride=3)])
    assert (advance.steps, advance.fewest(), advance.step) == ({0: 4, 1: 4}, 4, 6)
    assert advance.behind(5) == [0, 1]


def test_phases_and_strangers_are_no_steps() -> None:
    advance = StepsSince(since=0.0)
    advance.feed([record(0, 1, 1.0, mark="begin"), {"rank": "x"}, {"rank": 0, "step": 1}])
    assert (advance.size, advance.steps, advance.fewest()) == (0, {}, 0)


def test_ranks_are_found_by_the_name_of_their_node() -> None:
    advance = StepsSince(since=0.0)
    advance.feed([record(0, 1, 1.0), record(1, 1, 1.0), record(2, 1, 1.0, host="w1")])
    assert (advance.ranks_on("w1"), advance.ranks_on("w0.other"), advance.ranks_on("w9")) == ([1, 2], [0], [])
