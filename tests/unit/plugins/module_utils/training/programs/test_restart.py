"""A run that a window stops at a checkpoint, and whose next attempt it starts, with a death at each point."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

import pytest

from plugins.module_utils.durable.program import MemoryJournal, Program
from plugins.module_utils.errors import CollectionError, Refused
from plugins.module_utils.training.ending.job_state import SIGNAL_REQUEST
from plugins.module_utils.training.programs.restart import RestartableRun
from plugins.module_utils.training.programs.stop import is_left, stop
from plugins.module_utils.training.programs.train import train
from plugins.module_utils.training.runs import run_source
from plugins.module_utils.training.runs.node_setup import NO_STACK
from plugins.module_utils.training.runs.restartable import SeenCheckpoint
from plugins.module_utils.training.runs.training_run import TrainingFailed
from tests.fakes.deaths import histories
from tests.fakes.training_world import SAVED, TrainingWorld

from .test_train import once

BY = "the maintenance window of me@here"
SEEN = {key: value for key, value in SAVED.items() if key != "age"}
GIVEN = cast("SeenCheckpoint", {**SEEN, "since": 0.0})


def running(deaths: Iterable[int] = (), **options: Any) -> TrainingWorld:
    """Return a world in which a run trains, which its owner does not follow."""
    world = TrainingWorld(follow=False, **options)
    world.ends = [{"state": "running"}]
    train(Program(MemoryJournal(), world), world.site, world.run())
    world.deaths, world.points = set(deaths), 0
    return world


def restartable(world: TrainingWorld, by: str = BY) -> RestartableRun:
    """Return the attempt with which the window began, whatever happened since."""
    known = world.kept("one")
    run = replace(world.run(), o=run_source.with_followed(world.o, known))
    return RestartableRun(world.site, run_source.taken_up(run, known), by)


def restarted(world: TrainingWorld) -> dict[str, Any]:
    """Stop and start a run again with as many controllers as it takes; only the window has a journal."""
    while True:
        world.is_dead = False
        try:
            assert restartable(world).stop()["state"] == "stopped"
            return restartable(world).start_again(GIVEN, {"waited_s": 4.0, "down": [["hosts", 900.0]]})
        except CollectionError:
            raise
        except BaseException:  # the controller died
            if not world.is_dead:
                raise


def test_each_death_during_a_restart_leads_to_one_next_attempt() -> None:
    for world, started in histories(running, restarted, pairs=40):
        assert (started["run"], started["run_dir"], started["launcher"]) == ("one-2", "/runs/one-2", "w1")
        assert world.starts == {"/runs/one": 1, "/runs/one-2": 1}
        end, then = world.kept("one")["end"], world.kept("one-2")
        assert (end["state"], end["cause"]) == ("stopped", f"stopped by {BY}") and "outputs" in end
        assert (then["resumed_from"], then["attempt"], then["attempts"], then["asked_by"]) == ("one", 2, 2, BY)
        assert then["restart"] == {"path": "epoch1.pt", "waited_s": 4.0, "down": [["hosts", 900.0]]}
        assert world.jobs["/runs/one-2"].options["environment"]["DML_RESUME"] == "/runs/one-2/work/outputs/epoch1.pt"


def test_owner_follows_the_attempt_that_the_window_started() -> None:
    world = running()
    restarted(world)
    world.o["follow"] = True
    world.jobs["/runs/one-2"].end = {"state": "finished", "ended": 9.0}

    assert once(world, world.taken_up())["run"] == "one-2"


def test_owner_who_follows_sees_the_window_as_cause() -> None:
    world = running(attempts=3)
    world.o["follow"] = True
    restartable(world).stop()

    with pytest.raises(TrainingFailed, match=rf"The training job /runs/one on w1 was stopped by {BY}\. The end of"):
        once(world, world.taken_up())

    assert world.starts == {"/runs/one": 1}, "a run that a window stopped is not tried again"


def test_signals_all_ranks_after_writing_the_request() -> None:
    world = running()
    restartable(world).ask_for_checkpoint("USR1", 60.0)

    assert world.signals == [("USR1", "0"), ("USR1", "1")]
    request = ["ansible.builtin.copy on w1", "nodes_signal_ranks"]
    assert world.log[-2:] == request, "the request precedes the signal"
    restartable(world).stop()
    kept = json.loads(world.node_files["w1", f"/runs/one/{SIGNAL_REQUEST}"])
    assert kept == {"by": BY, "seconds": 60.0}, "a stop that the end of the ranks precedes does not overwrite it"


@pytest.mark.parametrize("end", [{"state": "died", "ended": 7.0}, {"state": "finished", "ended": 7.0}])
def test_end_after_a_signal_is_that_of_the_window(end: dict[str, Any]) -> None:
    world = running()
    restartable(world).ask_for_checkpoint("TERM", 60.0)
    world.jobs["/runs/one"].end, world.jobs["/runs/one"].looks = end, 2

    stopped = restartable(world).stop()

    assert (stopped["state"], stopped["why"], stopped["ended"]) == ("stopped", f"stopped by {BY}", 7.0)
    assert world.stops == ["/runs/one"], "no process may remain"


def test_withdrawn_request_leaves_the_run_as_it_was() -> None:
    world = running()
    restartable(world).ask_for_checkpoint("USR2", 60.0)
    restartable(world).withdraw()
    restartable(world).withdraw()
    world.jobs["/runs/one"].end = {"state": "died", "ended": 7.0, "why": "rank 1: ValueError"}
    world.jobs["/runs/one"].looks = 2

    stopped = restartable(world).stop()

    assert (stopped["state"], stopped["why"], world.stops) == ("died", "rank 1: ValueError", [])
    assert "end" not in world.kept("one"), "whoever follows the run writes its own end"


@pytest.mark.parametrize(
    ("why", "by_owner"),
    [
        ("stopped by anna@desk", "stopped by anna@desk"),
        ("stopped by the maintenance window of bob@other", ""),
        ("Slurm job 7 was cancelled", ""),
    ],
)
def test_run_that_its_owner_stopped_gets_no_request(why: str, by_owner: str) -> None:
    world = running()
    world.jobs["/runs/one"].end = {"state": "stopped", "ended": 7.0, "why": why}
    world.jobs["/runs/one"].looks = 2

    stopped = restartable(world).stop()

    assert restartable(world).stopped_by_owner() == by_owner and stopped["why"] == why
    assert world.stops == ([] if by_owner else ["/runs/one"])


def test_stop_of_a_stopped_run_keeps_it_stopped() -> None:
    world = running()
    restartable(world).stop()
    run = world.run(known=world.kept("one"))
    assert restartable(world).stopped_by_owner() == "" and is_left(world.site, run)

    assert stop(Program(MemoryJournal(), world), world.site, run) == {"changed": True}

    end, run = world.kept("one")["end"], world.run(known=world.kept("one"))
    assert restartable(world).stopped_by_owner() == end["cause"] == "stopped by me@here" and "outputs" in end
    assert stop(Program(MemoryJournal(), world), world.site, run) == {"changed": False}


def test_stop_of_a_restarted_run_changes_nothing() -> None:
    world = running()
    restarted(world)
    run = world.run(known=world.kept("one"))

    assert stop(Program(MemoryJournal(), world), world.site, run) == {"changed": False}


@pytest.mark.parametrize(
    ("number", "ranks", "mute", "words"),
    [
        ("HUP", ["0", "1"], {}, "the signal is HUP; choose one of TERM, USR1, USR2"),
        ("USR1", ["0"], {}, "their records identify 1 of 2 running processes; wait for its next regular checkpoint"),
        ("USR1", [], {"w2": "it did not answer"}, "w2: it did not answer; restore these nodes"),
    ],
)
def test_refuses_a_signal_that_not_all_ranks_get(
    number: str, ranks: list[str], mute: dict[str, str], words: str
) -> None:
    world = running()
    world.ranks, world.mute = ranks, mute

    with pytest.raises(Refused) as refused:
        restartable(world).ask_for_checkpoint(number, 60.0)

    assert words in str(refused.value)
    assert world.signals == [] and ("w1", f"/runs/one/{SIGNAL_REQUEST}") not in world.node_files


def test_checkpoints_have_the_time_of_the_observer() -> None:
    world = running()
    torn = {**SAVED, "path": "epoch2.pt", "why": "it was cut off", "step": 2, "age": 5.0}
    world.checkpoints["seen"].insert(0, torn)

    found = restartable(world).checkpoints()

    assert found["newest"] == {**SEEN, "since": world.clock - 20.0}
    assert found["torn"] == {**SEEN, "path": "epoch2.pt", "why": "it was cut off", "step": 2, "since": world.clock - 5}
    assert (found["interval"], found["why"]) == (60.0, "")
    world.checkpoints["seen"].pop()
    assert restartable(world).checkpoints()["newest"] is None
    outputs = "w1:/runs/one/work/outputs contains no complete checkpoint"
    assert restartable(world).checkpoints()["why"] == f"{outputs}: epoch2.pt: it was cut off"


def test_refusal_names_what_prevents_a_restart_before_any_stop() -> None:
    world = running(environment={"TOKEN": "secret"})
    assert restartable(world).refusal() == ""
    world.o["environment"] = {}
    assert "TOKEN of training_environment differ from" in restartable(world).refusal()
    world.o["environment"] = {"TOKEN": "secret"}
    world.checkpoints["bytes"] = 3_000_000_000
    assert "its outputs have 3000 MB, more than 2000 MB" in restartable(world).refusal()
    world.checkpoints.update({"bytes": 9, "seen": [{**SAVED, "optimizer": False}]})
    assert "its checkpoint epoch1.pt has no state of the optimizer" in restartable(world).refusal()
    world.checkpoints["seen"] = [SAVED]
    world.here_files["/results/two/manifest.json"] = {**world.kept("one"), "name": "two", "resumed_from": "one"}
    assert "the training run one: could not restart it: two continues it already" in restartable(world).refusal()
    world.here_files["/results/one/manifest.json"]["reported"] = True
    assert "this controller has no manifest of it" in restartable(world).refusal()
    world = running(python=NO_STACK)
    known = world.kept("one")
    bare = {name: {**node, "facts": {}} for name, node in world.run().nodes.items()}
    run = run_source.taken_up(replace(world.run(), o=run_source.with_followed(world.o, known), nodes=bare), known)
    assert "set training_python to an interpreter there" in RestartableRun(world.site, run, BY).refusal()
    world = running(folder="", requirements="", command=[])
    assert "only a run with training_folder resumes" in restartable(world).refusal()


@pytest.mark.parametrize("name", ["two", "one-2"])
def test_starts_no_second_attempt_beside_that_of_the_owner(name: str) -> None:
    """The owner resumed the run while it was stopped, by a command or as the next of its attempts."""
    world = running()
    restartable(world).stop()
    world.here_files[f"/results/{name}/manifest.json"] = {
        **world.kept("one"),
        "name": name,
        "resumed_from": "one",
        "asked_by": "anna@laptop",
    }

    assert restartable(world).start_again(GIVEN) == {"by_owner": name}

    assert world.starts == {"/runs/one": 1}


def test_starts_no_attempt_on_nodes_where_another_job_trains() -> None:
    world = running()
    restartable(world).stop()
    train(Program(MemoryJournal(), world), world.site, replace(world.run(), name="other"))

    with pytest.raises(Refused, match=r"other .* runs on its nodes; wait for its end"):
        restartable(world).start_again(GIVEN)

    world.away["w2"] = 1e9
    with pytest.raises(Refused, match="w2 did not answer: w2: No route to host; restore these nodes"):
        restartable(world).start_again(GIVEN)


def test_starts_only_from_the_checkpoint_that_was_seen() -> None:
    world = running()
    restartable(world).stop()

    with pytest.raises(Refused, match=r"/results/one/outputs is epoch1\.pt, and that on the node epoch2\.pt"):
        restartable(world).start_again({**GIVEN, "path": "epoch2.pt"})

    assert world.starts == {"/runs/one": 1}
