"""A training run that makes no step is stopped with its cause, and is tried again if a node does not respond."""

from __future__ import annotations

import re
from typing import Any

import pytest

from plugins.module_utils.training.runs.training_run import TrainingFailed
from tests.fakes.training_world import TrainingWorld

from .test_train import once

STACKS = "rank 1 on w2 is at train.py, line 7 (stuck), outside the collective in which rank 0 on w1 is at x."
GONE = "Node w2 did not answer: ssh: no route to host."
LEFT = "w1:/runs/one: could not make sure that no process is left: w2: timed out"
WAITS = "ranks 0, 1 wait in all_reduce number 6 of the group default_pg for rank 2, which wrote no dump."


SILENT = "The training job /runs/one on w1 was stopped: it made no step for 60 s, at step 40."


@pytest.mark.parametrize(
    ("read", "words"),
    [
        ({}, "The slowest rank was 1 on w2. Check the nodes and the network"),
        # The slowest rank and the network are not to blame for a rank that skipped a collective.
        ({"stacks": STACKS}, STACKS),
        ({"stacks": GONE, "left_after_stop": LEFT, "powers_off": {"w2": 1e9}}, f"{GONE} {LEFT}"),
        ({"powers_off": {"w2": 1e9}}, "Unreachable: w2"),
        ({"waits": [WAITS]}, WAITS),
    ],
    ids=["pace", "stacks", "node that is gone", "node without stacks", "waiting ranks"],
)
def test_silent_job_is_stopped_with_its_cause(read: dict[str, Any], words: str) -> None:
    world = silent("2.30.7" if "waits" in read else "")
    for name, value in read.items():
        setattr(world, name, value)

    with pytest.raises(TrainingFailed, match=re.escape(f"{SILENT} {words}")):
        once(world)

    assert world.stops == ["/runs/one"] and world.watches == set()
    assert world.kept("one")["end"]["state"] == "stopped"
    assert world.here_files["/results/one/output.log"] == "its output"
    assert "/results/one/outputs" in world.outputs_at


def silent(nccl: str = "", attempts: int = 1) -> TrainingWorld:
    """Return nodes whose first job makes no step."""
    world = TrainingWorld(silence=60, nccl=nccl, attempts=attempts)
    world.ends, world.last_seen = [{"state": "running"}, {"state": "finished", "ended": 9.0}], 900.0
    return world


def test_silent_job_is_retried_after_losing_a_node() -> None:
    """A node without power resets no connection: its peers wait, and only the silence shows that it is gone."""
    world = silent(attempts=2)
    world.powers_off, world.left_after_stop = {"w2": 400.0}, LEFT

    assert once(world)["run"] == "one-2"

    assert world.kept("one")["end"]["state"] == "stopped"
    assert world.jobs["/runs/one-2"].options["environment"]["DML_RESUME"]
    assert any("failed with a machine: stopped: it made no step for 60 s" in line for line in world.lines)


def test_silent_job_on_present_nodes_is_not_retried() -> None:
    world = silent(attempts=2)

    with pytest.raises(TrainingFailed, match=re.escape(SILENT)):
        once(world)

    assert world.starts == {"/runs/one": 1}


def test_silent_job_that_cannot_be_stopped_keeps_no_end() -> None:
    world = silent()
    world.why_not_stopped = "w1:/runs/one: could not stop the job: it still runs after 120 s"

    with pytest.raises(TrainingFailed, match=r"w1: it made no step for 60 s, .*it still runs after 120 s"):
        once(world)

    assert "end" not in world.kept("one")


def test_evaluating_job_may_be_silent_longer() -> None:
    """An evaluation of a language model takes longer than ten minutes: a job that was stopped in it lost its steps."""
    world = TrainingWorld(silence=60)
    world.ends, world.phase, world.last_seen = [{"state": "running"}], "eval", 900.0

    with pytest.raises(TrainingFailed, match="stopped: it made no step for 600 s"):
        once(world)

    assert world.clock > 900.0 + 600
