# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A sweep of a folder: side by side on groups of nodes, continued after a death, with one table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plugins.module_utils.durable.program import MemoryJournal, Program
from plugins.module_utils.training import manifest
from plugins.module_utils.training.programs.vary import vary
from plugins.module_utils.training.runs.training_run import TrainingFailed, TrainingRun
from plugins.module_utils.training.variations import Variation, variations
from tests.fakes.training_world import TrainingWorld

DIED = {"state": "died", "machine": False, "why": "rank 0: ValueError: no data", "ended": 1.0}


def swept(world: TrainingWorld, size: int = 1) -> dict[str, Any]:
    groups = variations("s", {"lr": [1, 2, 3]}, ["python", "train.py", "{lr}"], list(world.o["nodes"]), size)

    def run_of(variation: Variation) -> TrainingRun:
        o = {**world.o, "command": variation.command, "nodes": variation.nodes, "launcher": variation.nodes[0]}
        nodes = {name: node for name, node in world.run().nodes.items() if name in variation.nodes}
        return replace(world.run(), o=o, nodes=nodes, name=variation.name, first=variation.name)

    def known_of(name: str) -> dict[str, Any]:
        return dict(world.here_files.get(f"/results/{name}/{manifest.FILE}") or {})

    return vary(Program(MemoryJournal(), world), world.site, groups, run_of, known_of)


def test_the_runs_of_a_sweep_train_side_by_side_once_and_end_in_one_table() -> None:
    world = TrainingWorld()

    result = swept(world)

    assert world.starts == {"/runs/s.1": 1, "/runs/s.2": 1, "/runs/s.3": 1}
    assert {path: job.options["host"] for path, job in world.jobs.items()} == {
        "/runs/s.1": "w1",
        "/runs/s.2": "w2",
        "/runs/s.3": "w1",
    }
    lines = [line for line in world.lines if " trains on " in line]
    assert lines[:2] == ["s.1 trains on w1 with lr 1", "s.2 trains on w2 with lr 2"]
    assert [(row["run"], row["lr"], row["state"]) for row in result["rows"]] == [
        (f"s.{number}", str(number), "finished") for number in (1, 2, 3)
    ]
    assert world.watches == set() and world.lines[-4].startswith("run  lr  state")
    swept(world)
    assert sum(world.starts.values()) == 3, "the same command makes only the runs that are left"


def test_a_run_that_fails_does_not_end_the_others() -> None:
    world = TrainingWorld()
    world.ends = [DIED, {"state": "finished", "ended": 9.0}]

    with pytest.raises(TrainingFailed, match=r"1 of 3 runs did not finish\. .*/runs/s\.1 .*ValueError: no data"):
        swept(world, size=2)

    assert sum(world.starts.values()) == 3
    assert any(line.startswith("s.1  1   died") for line in world.lines)
