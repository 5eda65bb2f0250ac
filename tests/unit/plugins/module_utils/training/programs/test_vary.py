"""A sweep of a folder: side by side on groups of nodes, continued after a death, with one table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from plugins.module_utils.durable.program import MemoryJournal, Program
from plugins.module_utils.errors import CollectionError
from plugins.module_utils.training.programs.train import train
from plugins.module_utils.training.programs.vary import sweep, vary
from plugins.module_utils.training.results import manifest
from plugins.module_utils.training.runs.any_job import OwnMpirun
from plugins.module_utils.training.runs.training_run import Prepared, TrainingFailed, TrainingRun
from plugins.module_utils.training.runs.variations import Variation, variations
from tests.fakes.deaths import MOST_CONTROLLERS, Killed, histories
from tests.fakes.training_world import TrainingWorld

PREPARED = Prepared(python="python", port=29500)
DIED = {"state": "died", "machine": False, "why": "rank 0: ValueError: no data", "ended": 1.0}
POINTS = [{"name": f"scaling-{size}", "nodes": size, "transport": "tcp", "on": ["w1", "w2"][:size]} for size in (1, 2)]


def swept(world: TrainingWorld, size: int = 1) -> dict[str, Any]:
    groups = variations("s", {"lr": [1, 2, 3]}, ["python", "train.py", "{lr}"], list(world.o["nodes"]), size)

    def run_of(variation: Variation) -> TrainingRun:
        o = {**world.o, "command": variation.command, "nodes": variation.nodes, "launcher": variation.nodes[0]}
        nodes = {name: node for name, node in world.run().nodes.items() if name in variation.nodes}
        return replace(world.run(), o=o, nodes=nodes, name=variation.name, first=variation.name)

    def known_of(name: str) -> dict[str, Any]:
        return dict(world.here_files.get(f"/results/{name}/{manifest.FILE}") or {})

    return vary(Program(MemoryJournal(), world), world.site, groups, run_of, known_of)


def test_sweep_trains_all_runs_once_for_one_table() -> None:
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


def test_failed_run_does_not_end_the_others() -> None:
    world = TrainingWorld()
    world.ends = [DIED, {"state": "finished", "ended": 9.0}]

    with pytest.raises(TrainingFailed, match=r"1 of 3 runs did not finish\. .*/runs/s\.1 .*ValueError: no data"):
        swept(world, size=2)

    assert sum(world.starts.values()) == 3
    assert any(line.startswith("s.1  1   died") for line in world.lines)


def test_failed_copy_of_outputs_ends_no_other_run() -> None:
    """It has finished, so that its missing outputs are an error."""
    world = TrainingWorld()
    world.too_large = {"/results/s.1/outputs"}

    with pytest.raises(TrainingFailed, match=r"1 of 3 runs did not finish\. .*they have 9000 MB"):
        swept(world, size=2)

    assert sum(world.starts.values()) == 3
    world.too_large = set()
    swept(world, size=2)
    assert "/results/s.1/outputs" in world.outputs_at and sum(world.starts.values()) == 3


def test_unprepared_node_ends_no_run_of_other_nodes() -> None:
    world = TrainingWorld()
    world.full = {"w2"}

    with pytest.raises(TrainingFailed) as failed:
        swept(world)

    assert "1 of 3 runs did not finish. w2: could not unpack the code: No space left on device" in str(failed.value)
    assert world.starts == {"/runs/s.1": 1, "/runs/s.3": 1}


def test_same_command_repeats_only_the_failed_run() -> None:
    """A node refuses a run directory that contains a job which has ended otherwise than finished."""
    world = TrainingWorld()
    world.ends = [DIED, {"state": "finished", "ended": 9.0}]
    with pytest.raises(TrainingFailed):
        swept(world, size=2)

    result = swept(world, size=2)

    assert world.starts == {"/runs/s.1": 2, "/runs/s.2": 1, "/runs/s.3": 1}
    assert [row["state"] for row in result["rows"]] == ["finished"] * 3


def test_failed_run_with_outputs_on_nodes_stays_there() -> None:
    world = TrainingWorld()
    world.ends, world.too_large = [DIED, {"state": "finished", "ended": 9.0}], {"/results/s.1/outputs"}
    for _time in range(2):
        with pytest.raises(TrainingFailed, match=r"1 of 3 runs did not finish"):
            swept(world, size=2)

    assert "/runs/s.1" in world.jobs and sum(world.starts.values()) == 3
    expected = "s.1 has died, and its outputs are only on w1: copy them, and remove /runs/s.1 on w1, w2"
    assert any(expected in line for line in world.lines)


@pytest.mark.parametrize(("option", "value"), [("environment", {"SEED": "2"}), ("stack", "other"), ("data", "/b")])
def test_does_not_compare_results_of_another_program(option: str, value: object) -> None:
    world = TrainingWorld(**{option: {"environment": {}, "stack": "lab", "data": ""}[option]})
    swept(world)
    world.o[option] = value

    with pytest.raises(TrainingFailed, match=rf"s\.1 finished with another {option} .*set another training_name"):
        swept(world)


def test_compares_results_of_changed_folders_only_if_accepted() -> None:
    world = TrainingWorld()
    swept(world)
    world.folder_sha256 = "ef" * 32

    with pytest.raises(TrainingFailed, match=r"with another code.*\{\"training_accept\": \[\"code\"\]\}"):
        swept(world)

    world.o["accept"] = ["code"]
    assert [row["state"] for row in swept(world)["rows"]] == ["finished"] * 3


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


def test_repeated_run_that_outlived_its_controller_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its unusable result is that of the first job."""
    world = made()
    to_its_end(world)
    world.left = [{**POINTS[1], "again": True}]
    world.here_files.pop("/results/scaling-2.json")
    starts = histories_of_one_death(monkeypatch, world, "dml.vsphere.training_job on w1")
    assert starts == {"/runs/scaling-1": 1, "/runs/scaling-2": 2}


def histories_of_one_death(monkeypatch: pytest.MonkeyPatch, world: TrainingWorld, name: str) -> dict[str, int]:
    """Let the controller die after the first effect of this name, and another one continue."""
    answer = world.on

    def dies(host: str, module: str, options: Any) -> dict[str, Any]:
        result = answer(host, module, options)
        if f"{module} on {host}" == name:
            monkeypatch.setattr(world, "on", answer)
            world.is_dead = True
            raise Killed
        return result

    monkeypatch.setattr(world, "on", dies)
    to_its_end(world)
    return dict(world.starts)


@pytest.mark.parametrize("why", ["launcher is away", "job waits"])
def test_job_that_may_run_is_not_removed(why: str) -> None:
    world = made()
    world.left = [{**POINTS[1], "again": False}]
    run = run_of(world, POINTS[1])
    world.on("w1", "dml.vsphere.training_job", {**OwnMpirun(world, run).options(PREPARED)})
    world.jobs["/runs/scaling-2"].end = {"state": "waiting"}
    world.jobs["/runs/scaling-2"].looks = 1
    world.away = {"w1": 1e9} if why == "launcher is away" else {}
    with pytest.raises(CollectionError):
        to_its_end(world)
    assert "/runs/scaling-2" in world.jobs and not any(line.startswith("ansible.builtin.file on") for line in world.log)


def test_measures_a_network_with_findings_only_if_accepted() -> None:
    world = made()
    world.network = ["w1 and w2: 3 of 100 Gbit/s."]
    with pytest.raises(TrainingFailed, match=r"has findings.* w1 and w2: 3 of 100 Gbit/s\. Correct them"):
        to_its_end(world)
    assert world.starts == {}
    world.o["fabric_accepted"] = True
    assert len(to_its_end(world)) == 2


def test_forgotten_run_ends_its_ranks_before() -> None:
    world = TrainingWorld(follow=False)
    train(Program(MemoryJournal(), world), world.site, world.run())
    world.jobs["/runs/one"].end, world.jobs["/runs/one"].looks = {"state": "died", "why": "-"}, 2
    world.why_not_stopped = "w1:/runs/one: could not make sure that no process is left: w2: No route to host"
    with pytest.raises(CollectionError, match="no process is left"):
        world.site.job_of(world.run()).forget()
    assert "/runs/one" in world.jobs

    world.why_not_stopped = ""
    world.site.job_of(world.run()).forget()

    assert world.stops == ["/runs/one"] * 2 and "/runs/one" not in world.jobs
