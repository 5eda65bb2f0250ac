"""A run is stopped as its user; a measurement of pairs leaves no process behind, however its controller ends."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from plugins.module_utils.durable.program import MemoryJournal, Program
from plugins.module_utils.errors import CollectionError, Refused
from plugins.module_utils.training.programs.fabric_check import compared, fabric_check, require_pairs
from plugins.module_utils.training.programs.stop import stop
from plugins.module_utils.training.programs.train import train
from plugins.module_utils.training.runs import node_setup, run_files
from plugins.module_utils.training.runs.training_run import TrainingFailed, TrainingRun
from tests.fakes.deaths import MOST_CONTROLLERS, Killed, histories
from tests.fakes.training_world import TrainingWorld


def program(world: TrainingWorld) -> Program:
    return Program(MemoryJournal(), world)


def test_stops_run_as_its_user_and_fetches_outputs() -> None:
    world = TrainingWorld(follow=False)
    train(program(world), world.site, world.run())
    assert stop(program(world), world.site, world.run(known=world.kept("one"))) == {"changed": True}
    assert "as carol" in world.log and world.stops == ["/runs/one"]
    end = world.kept("one")["end"]
    assert (end["state"], end["steps"], end["cause"]) == ("stopped", 7, "stopped by me@here")
    assert "/results/one/outputs" in world.outputs_at


def test_follower_keeps_the_user_who_stopped_the_run() -> None:
    world = TrainingWorld(follow=False)
    train(program(world), world.site, world.run())
    run = world.run(known=world.kept("one"))
    stop(program(world), world.site, run)
    run_files.write_end(world, run, {"state": "stopped"}, {"step": 7})
    assert world.kept("one")["end"]["cause"] == "stopped by me@here"


def started(deaths: Iterable[int] = ()) -> TrainingWorld:
    world = TrainingWorld(follow=False)
    train(program(world), world.site, world.run())
    world.deaths, world.points = set(deaths), 0
    return world


def stopped(world: TrainingWorld) -> dict[str, Any]:
    for _controller in range(MOST_CONTROLLERS):
        world.is_dead = False
        try:
            return stop(program(world), world.site, world.run(known=world.kept("one")))
        except Killed:
            continue
    raise AssertionError("the run was never stopped")


def test_any_death_while_stopping_keeps_end_and_outputs() -> None:
    for world, _result in histories(started, stopped, pairs=30):
        end = world.kept("one")["end"]
        assert (end["state"], end["cause"], end["outputs"]) == ("stopped", "stopped by me@here", [])
        assert "/results/one/outputs" in world.outputs_at


def test_second_stop_of_a_run_changes_nothing() -> None:
    world = started()
    stopped(world)
    assert stopped(world) == {"changed": False}


LEFT = "w1:/runs/one: could not make sure that no process is left: w2: No route to host; check these nodes manually"


def test_run_with_a_dead_node_keeps_its_end() -> None:
    world = started()
    world.left_after_stop = LEFT
    with pytest.raises(CollectionError, match="w2: No route to host"):
        stop(program(world), world.site, world.run(known=world.kept("one")))
    end = world.kept("one")["end"]
    assert (end["state"], end["cause"]) == ("stopped", "stopped by me@here")
    assert "/results/one/outputs" in world.outputs_at


def test_run_that_does_not_stop_keeps_no_end() -> None:
    world = started()
    world.why_not_stopped = "w1:/runs/one: could not stop the job: it still runs after 120 s"
    with pytest.raises(CollectionError, match="it still runs after 120 s"):
        stop(program(world), world.site, world.run(known=world.kept("one")))
    assert "end" not in world.kept("one")


def test_stop_keeps_the_end_of_a_run_that_died() -> None:
    world = started()
    world.jobs["/runs/one"].end = {"state": "died", "ended": 4.0, "why": "w2 did not answer"}
    world.jobs["/runs/one"].looks = 2
    assert stopped(world) == {"changed": True}
    end = world.kept("one")["end"]
    assert (end["state"], end["ended"], end["cause"]) == ("died", 4.0, "w2 did not answer")
    assert "/results/one/outputs" in world.outputs_at
    assert stopped(world) == {"changed": False}


@pytest.mark.parametrize(("rank_0_on", "node"), [("w2", "w2"), ("of another inventory", "w1")])
def test_stop_brings_outputs_from_the_node_of_rank_0(rank_0_on: str, node: str) -> None:
    world = started()
    stop(program(world), world.site, world.run(known={**world.kept("one"), "rank_0_on": rank_0_on}))
    assert world.copied_from == [node]


def test_silent_launcher_is_not_taken_for_stopped() -> None:
    world = started()
    world.away["w1"] = math.inf
    with pytest.raises(CollectionError, match=r"w1: No route to host.*training_accept"):
        stopped(world)
    assert "end" not in world.kept("one") and not world.signals


def test_accepted_loss_of_the_launcher_ends_other_ranks() -> None:
    world = started()
    world.away["w1"], world.o["accept"] = math.inf, ["launcher"]
    with pytest.raises(CollectionError, match="could not list the outputs: No route to host"):
        stopped(world)
    assert world.signals == [("KILL", "1")]
    end = world.kept("one")["end"]
    assert (end["state"], end["cause"]) == ("stopped", "stopped by me@here, without its launcher w1")


def test_accepted_loss_of_a_launcher_that_answers_changes_nothing() -> None:
    world = started()
    world.o["accept"] = ["launcher"]
    assert stopped(world) == {"changed": True}
    assert world.stops == ["/runs/one"] and not world.signals


def test_ranks_that_do_not_end_keep_the_run_open() -> None:
    world = started()
    world.away["w1"], world.o["accept"], world.stuck = math.inf, ["launcher"], "1"
    with pytest.raises(TrainingFailed, match="The ranks 1 of the training run one do not end"):
        stopped(world)
    assert "end" not in world.kept("one")


def test_ranks_without_records_keep_the_run_open() -> None:
    world = started()
    world.away["w1"], world.o["accept"], world.ranks = math.inf, ["launcher"], []
    assert world.jobs["/runs/one"].is_running
    with pytest.raises(TrainingFailed, match=r"is not stopped, because no records .*: processes .* run on w2"):
        stopped(world)
    assert "end" not in world.kept("one")


def test_stops_a_run_of_another_controller_without_files() -> None:
    world = TrainingWorld(follow=False)
    train(program(world), world.site, world.run())
    world.here_files.clear()
    assert stop(program(world), world.site, world.run()) == {"changed": True}
    assert world.here_files == {} and world.outputs_at == {}


def test_refuses_a_name_that_no_worker_knows() -> None:
    world = TrainingWorld()
    with pytest.raises(TrainingFailed, match="No worker runs a training job with the name one: no worker that could"):
        stop(program(world), world.site, world.run())


def pairs(deaths: Iterable[int] = ()) -> TrainingWorld:
    return TrainingWorld(deaths, command=["dml_pairs.py"], folder="", name="fabric-1")


def measured(world: TrainingWorld) -> dict[str, Any]:
    for _controller in range(MOST_CONTROLLERS):
        world.is_dead = False
        try:
            return fabric_check(program(world), world.site, world.run())
        except Killed:
            continue
    raise AssertionError("the measurement never ended")


def test_any_death_leads_to_one_measurement_without_leftovers() -> None:
    for world, result in histories(pairs, measured, pairs=30):
        assert result["lines"] == ["fabric-1: finished"]
        assert world.starts == {"/runs/fabric-1": 1} and set(world.stops) == {"/runs/fabric-1"}
        options = json.loads(world.jobs["/runs/fabric-1"].options["command"][-1])
        assert (options["rounds"], options["nodes"]) == ("0-1", ["w1", "w2"])


def test_a_measurement_that_does_not_end_is_stopped() -> None:
    world = pairs()
    world.ends = [{"state": "running"}]
    with pytest.raises(TrainingFailed, match=r"did not end in 96 s and is stopped \(it is running\)"):
        measured(world)
    assert world.stops == ["/runs/fabric-1"]


@pytest.mark.parametrize("options", [{"nodes": ["w1"]}, {"backend": "kubernetes"}])
def test_a_measurement_needs_a_pair_and_mpirun(options: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="choose two or more nodes and the backend mpi"):
        require_pairs(TrainingWorld(**options).o)


def compared_on(driver: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[TrainingWorld, dict[str, Any]]:
    """Return the world after a measurement of nodes with RDMA devices of a driver, and its result."""
    given = {"nccl": "2.30.7", "transport": "rdma", **options}
    world = TrainingWorld(name="fabric-1", folder="", command=["dml_pairs.py"], **given)
    world.gpudirect, world.usual = True, {"fabric-1-SYS": 180.0, "fabric-1-off": 95.0}
    hcas = [{"name": "mlx5_0", "driver": driver, "gid_index": 3, "sent_bytes": 1}]
    monkeypatch.setattr(node_setup, "read_hcas", lambda _calls, run: dict.fromkeys(run.nodes, hcas))

    def run_of(gdr: str) -> TrainingRun:
        o = {**world.o, **({"gdr": gdr} if gdr else {})}
        return replace(world.run(), o=o, name=f"fabric-1-{gdr}" if gdr else "fabric-1")

    return world, compared(program(world), world.site, run_of)


def test_measures_nodes_with_gpudirect_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    world, result = compared_on("mlx5_core", monkeypatch)

    levels = {name: job.options["environment"].get("NCCL_NET_GDR_LEVEL") for name, job in world.jobs.items()}
    assert levels == {"/runs/fabric-1-off": "LOC", "/runs/fabric-1-SYS": "SYS"}
    assert result["lines"][-1] == (
        "GPUDirect RDMA: 180.00 Gbit/s with it (training_gdr=SYS), 95.00 without: set training_gdr=SYS."
    )


@pytest.mark.parametrize(
    ("driver", "options"), [("vmw_pvrdma", {}), ("mlx5_core", {"gdr": "off"}), ("mlx5_core", {"transport": "tcp"})]
)
def test_nodes_without_gpudirect_are_measured_once(
    driver: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, result = compared_on(driver, monkeypatch, **options)

    assert list(world.jobs) == ["/runs/fabric-1"] and "GPUDirect" not in result["lines"][-1]
