"""A scaling measurement makes each run once, in order, and goes on where an earlier controller ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from plugins.module_utils.durable.program import MemoryJournal, Program
from plugins.module_utils.training.programs.vary import sweep
from plugins.module_utils.training.runs.training_run import TrainingFailed, TrainingRun
from tests.fakes.deaths import MOST_CONTROLLERS, Killed, histories
from tests.fakes.training_world import TrainingWorld

POINTS = [{"name": f"scaling-{size}", "nodes": size, "transport": "tcp", "on": ["w1", "w2"][:size]} for size in (1, 2)]


def made(deaths: Iterable[int] = ()) -> TrainingWorld:
    world = TrainingWorld(deaths)
    world.left = [{**point, "again": False} for point in POINTS]
    return world


def run_of(world: TrainingWorld, point: Any) -> TrainingRun:
    run = world.run()
    nodes = {name: node for name, node in run.nodes.items() if name in point["on"]}
    return replace(run, nodes=nodes, name=point["name"], first=point["name"])


def to_its_end(world: TrainingWorld) -> list[str]:
    for _controller in range(MOST_CONTROLLERS):
        world.is_dead = False
        world.watches.clear()
        try:
            sweep(Program(MemoryJournal(), world), world.site, world.o, lambda point: run_of(world, point))
        except Killed:
            continue
        return sorted(world.starts)
    raise AssertionError("the measurement never ended")


def test_any_death_leads_to_one_job_per_run() -> None:
    for world, starts in histories(made, to_its_end, pairs=30):
        assert starts == ["/runs/scaling-1", "/runs/scaling-2"]
        assert set(world.starts.values()) == {1}
        assert [world.result(point["name"])["name"] for point in POINTS] == ["scaling-1", "scaling-2"]


def test_a_run_with_an_unusable_result_starts_again() -> None:
    world = made()
    to_its_end(world)
    world.left = [{**POINTS[1], "again": True}]
    world.here_files.pop("/results/scaling-2.json")
    to_its_end(world)
    assert world.starts == {"/runs/scaling-1": 1, "/runs/scaling-2": 2}


def test_measures_a_network_with_findings_only_if_accepted() -> None:
    world = made()
    world.network = ["w1 and w2: 3 of 100 Gbit/s."]
    with pytest.raises(TrainingFailed, match=r"has findings.* w1 and w2: 3 of 100 Gbit/s\. Correct them"):
        to_its_end(world)
    assert world.starts == {}
    world.o["fabric_accepted"] = True
    assert len(to_its_end(world)) == 2
