"""The program of a vMotion test reaches its end with any number of controllers, and moves no worker twice."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.trials.evidence.verdict_input import verdict_input
from tests.fakes.deaths import Killed, histories
from tests.unit.simulation.job import LAUNCHER, Job
from tests.unit.simulation.world import World, changed

CONTINUES = "the test continues where it stopped."


def test_a_whole_test_in_its_order() -> None:
    world = World(workers=["w1"])
    world.carry_out()
    opening = ["machines", "job", "cluster", "plan", "warm", "look 1", "runs before the moves"]
    opening += ["begin of the measurement", "measured", "look 2"]
    move = ["plan 1", "managers 1", "request 1 1", "moves 1", "resumed 1", "look 3", "job 1", "others 1", "judged 1"]
    assert world.keys[: len(opening + move)] == [*opening, *move]
    assert [key for key in world.keys if key.startswith("released")] == [
        "released the DRS settings of the workers",
        "released the watch of the step records",
        "released the lock of the cluster",
    ]
    assert world.keys[-1] == "evidence" and world.is_clean and world.outcome == ""


def test_verdict_gets_other_runs_and_checkpoints() -> None:
    world = World()
    other = "rates of anna on w1: from 1970-01-01 00:00:40 UTC, still active"
    changed(world, read_runs=lambda _options: {"sentences": [other], "saved": [world.site.clock]})

    facts = world.carry_out()

    assert facts.other_runs == [other]
    assert facts.saved == verdict_input(facts)["facts"]["saved"] and len(facts.saved) == 2
    assert facts.saved[0] < facts.moves[0]["started"] < facts.moves[-1]["completed"] <= facts.saved[1]


def killed_before_each_move() -> list[World]:
    """Return a world for each death of a controller between the first plan and the last move."""
    whole = World()
    whole.carry_out()
    worlds = [World([point]) for point in range(whole.points)]
    for world in worlds:
        with suppress(Killed):
            world.carry_out()
    return [world for world in worlds if "job" in world.keys and "moves 2" not in world.keys]


def test_next_controller_leaves_a_worker_built_again_alone() -> None:
    worlds = killed_before_each_move()
    assert len(worlds) > 50
    for world in worlds:
        world.build_again("w1")
        made = world.moved

        world.to_the_end()

        assert world.moved == made and world.is_clean
        assert "w1: another virtual machine has this name since the start" in world.outcome


def test_job_missing_on_a_rebuilt_machine_is_alive() -> None:
    world = World()

    def replaced(options: dict[str, Any]) -> dict[str, Any]:
        world.build_again("w1")
        return World.continuity_verdict(world, options)

    changed(world, continuity_verdict=replaced)

    facts = world.carry_out()

    assert facts.job_now is not None and facts.job_now["state"] == "running" and facts.job_now["launcher"] is None
    assert "w1: another virtual machine has this name since the start" in world.outcome


@pytest.mark.parametrize(
    ("module", "moves"),
    [
        ("cluster_info", 0),
        ("worker_rules", 0),
        ("wait_for_steps", 0),
        ("esxi_info", 0),
        ("read_guests", 0),
        ("vmotion_info", 0),
        ("continuity_verdict", 1),
        ("read_connections", 1),
    ],
)
def test_failure_ends_the_test_for_all_later_controllers(module: str, moves: int) -> None:
    """The failure is gone before the next controller: a test that failed is over all the same."""

    class Fails(World):
        """A call fails once."""

        def _called(self, module: str, options: Any, *, is_planned: bool) -> dict[str, Any]:
            result = super()._called(module, options, is_planned=is_planned)
            if result.get("msg") == "vCenter is gone":
                self.fails.clear()
            return result

    def make(deaths: Iterable[int]) -> World:
        world = Fails(deaths)
        world.before["vmotion" if moves else "cluster_lock"] = lambda: world.fails.update({module: "vCenter is gone"})
        return world

    failed = 0
    for world, facts in histories(make, World.to_the_end):
        if not any(key.startswith("failure of the") for key in world.values):
            assert world.outcome == "", "the first controller died before it could write the failure"
            continue
        failed += 1
        assert "vCenter is gone" in world.outcome and world.is_clean and facts.is_over
        assert len(world.moved) == len(facts.moves) <= moves
    assert failed > 5


def test_refuses_to_continue_in_another_vcenter() -> None:
    for key in ("cluster", "warm", "request 1 1", "judged 1"):
        world = killed_after(key)
        keys, calls = world.keys, world.calls
        cluster = World.cluster_info(world, {})["cluster"]
        other = {**cluster, "vcenter": {"version": "8.0.3", "instance_uuid": "site-b"}}
        world.answers["cluster_info"] = {"cluster": other}

        with pytest.raises(
            Refused, match="started in the vCenter with the instance UUID vcenter of the site, and this one has site-b"
        ):
            world.carry_out()

        assert world.keys == keys and world.calls - calls == {"cluster_info": 1}
        world.answers.clear()
        world.to_the_end()
        assert world.moved == ["w1", "w2"] and world.is_clean and world.outcome == "", world.log


def test_each_round_moves_every_worker_once() -> None:
    world = World(rounds=3)
    facts = world.carry_out()
    assert [move["worker"] for move in facts.moves] == ["w1", "w2"] * 3 and world.outcome == ""


def test_rounds_go_on_for_the_duration() -> None:
    world = World(workers=["w1"], duration=600)
    facts = world.carry_out()
    assert facts.moves[-1]["started"] < facts.began + 600 < world.site.clock
    assert len(facts.moves) > 2


def test_reads_rdma_counters_with_each_inspection() -> None:
    world = World(workers=["w1"])
    answer = world.read_connections

    def read_connections(options: dict[str, Any]) -> dict[str, Any]:
        read = answer(options)
        for node in read["nodes"].values():
            node["ranks"][0]["rdma_open"] = True
        return read

    facts = changed(world, read_connections=read_connections).carry_out()
    assert len(facts.looks) == 4 and all(look["hosts"] for look in facts.looks)
    assert world.keys.index("look 3") < world.keys.index("resumed 1") < world.keys.index("look 4")


def killed_after(key: str, world: World | None = None) -> World:
    """Return a world whose first controller died right after it had written a value."""
    world = world or World()
    point = world.point

    def dying() -> None:
        point()
        if world.controllers == 1 and any(one.startswith(key) for one in world.values):
            world.is_dead = True
            raise Killed

    with pytest.raises(Killed):
        changed(world, point=dying).carry_out()
    return world


def test_judges_a_dead_job_before_the_next_move() -> None:
    world = killed_after("judged 1")
    world.ends("died")
    world.verdict.update(verdict="broken", breaches=[{"detail": "the job died"}])
    facts = world.carry_out()
    assert len(facts.moves) == 1 and facts.stopped == "the job died" and world.is_clean


def test_wait_for_steps_ends_with_the_job() -> None:
    world = World(warm_timeout=600)

    def wait_for_steps(options: dict[str, Any]) -> dict[str, Any]:
        world.ends("died")
        world.site.pass_time(options["at_most"])
        return {"late": True}

    began = world.site.clock
    changed(world, wait_for_steps=wait_for_steps).carry_out()

    assert "the job in /run/one does not run any more, it is died" in world.outcome
    assert world.site.clock - began < 60 and world.is_clean


def test_wait_for_steps_lasts_while_the_job_runs() -> None:
    world, waits = World(warm_timeout=600), list[float]()

    def wait_for_steps(options: dict[str, Any]) -> dict[str, Any]:
        waits.append(options["timeout"])
        return {"late": True} if len(waits) < 4 else {"ranks": 2, "hosts": {"w1": [0], "w2": [1]}, "step": 40}

    changed(world, wait_for_steps=wait_for_steps).carry_out()

    assert waits[:4] == [600, 590, 580, 570]


def test_lock_of_another_run_keeps_cluster_unchanged() -> None:
    world = World()
    world.fails = {"cluster_lock": "gpu: it is locked by another run"}
    with pytest.raises(Exception, match="locked by another run"):
        world.carry_out()
    assert world.log == [] and world.values == {}


def test_stops_its_own_job_that_died() -> None:
    world = World(ends_job=True)
    world.ends("died")
    world.carry_out()
    assert "w1: the job in /run/one does not run, it is died" in world.outcome
    assert world.calls["vmotion"] == 0 and world.is_clean and world.calls["training_job"] == 1


def test_refuses_a_job_without_steps_before_any_change() -> None:
    world = World()
    job = World.training_info(world, {})["job"]
    world.answers["training_info"] = {"job": {**job, "steps_by": "none"}}
    world.carry_out()
    refusal = "w1: the job in /run/one was started with training_steps_by=none, so no record shows that it goes on"
    assert refusal in world.outcome
    assert (
        world.calls["vmotion"] == world.calls["wait_for_steps"] == world.calls["worker_rules"] == 0 and world.is_clean
    )


def test_failed_start_of_the_watch_ends_the_test() -> None:
    world = World()
    world.fails = {"watch_records": "records.jsonl: could not watch the job"}
    world.carry_out()
    assert "could not watch the job" in world.outcome and world.calls["vmotion"] == 0 and world.is_clean


def test_next_controller_repeats_a_failed_release() -> None:
    world = World()
    rules = world.worker_rules

    def worker_rules(options: dict[str, Any]) -> dict[str, Any]:
        is_stuck = options.get("state") == "absent" and world.controllers == 1
        return {"failed": True, "msg": "vCenter is gone"} if is_stuck else rules(options)

    changed(world, worker_rules=worker_rules).carry_out()
    assert (
        world.site.overridden
        and world.left
        and world.outcome.endswith(CONTINUES)
        and "vCenter is gone" in world.outcome
    )
    world.carry_out()
    assert world.is_clean and world.outcome == "" and world.calls["vmotion"] == 2


@pytest.mark.parametrize(("go_on", "moves"), [(False, 1), (True, 2)])
def test_failed_move_ends_the_test_without_go_on(go_on: bool, moves: int) -> None:
    world = World(go_on=go_on)
    refused: dict[str, Any] = {"failed": True, "begun": False, "msg": "w1: could not move it to esx3: Too slow"}
    answer, answers = world.vmotion, iter([refused])
    facts = changed(world, vmotion=lambda options: next(answers, None) or answer(options)).carry_out()
    assert len(facts.moves) == moves
    assert facts.stopped == "w1: could not move it to esx3: Too slow" and "w1 on esx1" in world.outcome


def test_each_round_has_its_own_waves() -> None:
    facts = World(max_moves=2, rounds=3).carry_out()
    assert [move["wave"] for move in facts.moves] == [1, 1, 2, 2, 3, 3]


def test_failed_canary_move_ends_the_test() -> None:
    world = World(canary="w1", go_on=True)
    refused = {"failed": True, "begun": False, "msg": "w1: could not move it: no room"}
    facts = changed(world, vmotion=lambda _options: refused).carry_out()
    assert len(facts.moves) == 1 and facts.stopped == "w1: could not move it: no room" and world.is_clean


def test_requests_end_of_its_job_then_stops_it() -> None:
    world = World(ends_job=True, finish_timeout=10, workers=["w1"])
    world.carry_out()
    order = ["finish of the job", "end of the job", "checksums", "released the watch of the step records"]
    assert [key for key in world.keys if key in {*order, "stop of the job"}] == [*order, "stop of the job"]
    assert world.job.state == "stopped"


def test_unread_job_has_no_launcher_at_the_end() -> None:
    """It may have died, so that the verdict must not be continuous."""
    world = World(workers=["w1"])
    answer = world.training_info

    def training_info(options: dict[str, Any]) -> dict[str, Any]:
        is_last = "end of the watch" in world.values
        return {"failed": True, "msg": "w1: the connection broke"} if is_last else answer(options)

    facts = changed(world, training_info=training_info).carry_out()

    assert "the connection broke" in world.outcome and world.is_clean
    assert verdict_input(facts)["facts"]["launcher"] == {"before": LAUNCHER, "after": None}


def test_watch_ends_before_slow_lock_release() -> None:
    """vCenter restarts after the last move: no record of the job arrives in the meantime."""
    world, ended = World(workers=["w1"]), list[float]()
    answer = world.cluster_lock

    def cluster_lock(options: dict[str, Any]) -> dict[str, Any]:
        if options.get("state") == "free":
            ended.append(world.site.clock)
            world.site.pass_time(600)
        return answer(options)

    facts = changed(world, cluster_lock=cluster_lock).carry_out()

    assert facts.observed_until <= ended[0] and facts.is_unwatched


def test_later_controller_keeps_the_end_of_the_watch() -> None:
    world = killed_after("released the watch of the step records", World(workers=["w1"]))
    ended = world.site.clock
    world.site.pass_time(3600)

    facts = world.carry_out()

    assert facts.observed_until <= ended and facts.is_unwatched and world.is_clean


@pytest.mark.parametrize("workers", [[], ["w1", "w2"]])
def test_moves_workers_of_other_jobs_only_when_named(workers: list[str]) -> None:
    world = World(workers=workers)
    world.site.beside = Job({0: "w2"}, world.site.clock)

    world.carry_out()

    assert sorted(world.moved) == workers and world.is_clean
    assert ("would move workers of other training jobs: the job in /runs/1000.0 on w2." in world.outcome) != bool(
        workers
    )


def test_canary_is_free_of_another_job() -> None:
    world = World(canary="auto", workers=["w1"])
    world.add_idle_worker("w3", "esx3")
    world.site.beside = Job({0: "w3"}, world.site.clock)

    world.carry_out()

    assert world.moved == ["w1"] and world.outcome == "" and world.is_clean


@pytest.mark.parametrize(
    ("workers", "nodes", "moved"),
    [([], [], []), (["w1", "w2"], [], ["w1", "w2"]), ([], [{"name": "w2.lab", "reach": []}], ["w1", "w2"])],
)
def test_moves_unread_workers_only_when_named(workers: list[str], nodes: list[Any], moved: list[str]) -> None:
    world = World(workers=workers, nodes=nodes)
    answer = {"jobs": [], "unread": "", "unread_workers": {"w2": "Connection refused"}}
    changed(world, jobs_on_workers=lambda _settings: answer)

    world.carry_out()

    assert sorted(world.moved) == moved and world.is_clean
    assert moved or world.outcome == (
        "Cluster gpu: the test would move workers whose training jobs cannot be read: w2 (Connection refused). Correct "
        "the access to them, or name the workers to move in vmotion_test_workers."
    )


def test_unread_worker_is_not_the_canary() -> None:
    world = World(canary="auto", workers=["w1"])
    world.add_idle_worker("w3", "esx3")
    answer = {"jobs": [], "unread": "", "unread_workers": {"w3": "Connection refused"}}
    changed(world, jobs_on_workers=lambda _settings: answer)

    world.carry_out()

    assert world.moved == ["w1"] and world.outcome == "" and world.is_clean
