"""Random histories of a training run: controllers die, nodes go away, the job is stopped, and clocks are set."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plugins.module_utils.durable.program import MemoryJournal, Program
from plugins.module_utils.errors import CollectionError
from plugins.module_utils.training.programs import follow
from plugins.module_utils.training.programs import train as train_program
from tests.fakes.deaths import Killed
from tests.fakes.training_world import TrainingWorld

MOST_RUNS = 12
CLOCK_SET_SECONDS = 3600.0
FINISHED = {"state": "finished", "ended": 9.0}
OF_MACHINE = {"state": "died", "machine": True, "why": "rank 1 on w2 was ended by signal 9", "ended": 1.0}
OF_PROGRAM = {"state": "died", "machine": False, "why": "rank 1: ValueError: no data", "ended": 1.0}


class Nodes(TrainingWorld):
    """Nodes to which something happens at the points with the given numbers."""

    def __init__(self, acts: Mapping[int, str], **options: Any) -> None:
        super().__init__(**options)
        self.acts = dict(acts)

    def point(self) -> None:
        act = ACTS.get(self.acts.pop(self.points, ""))
        if act is not None:
            act(self)
        super().point()

    def now(self) -> float:
        return super().now() + self.set_by

    set_by = 0.0

    def run_again(self) -> None:
        """Let a user run the playbook again, when the nodes that went away are back."""
        self.is_dead = False
        # A watch ends itself with its controller.
        self.watches.clear()
        self.clock = max([self.clock, *self.away.values()])


def dies(world: Nodes) -> None:
    world.is_dead = True
    raise Killed


def away(world: Nodes) -> None:
    world.away["w2"] = world.clock + 40.0


def launcher_away(world: Nodes) -> None:
    world.away["w1"] = world.clock + 400.0


def stopped(world: Nodes) -> None:
    for job in world.jobs.values():
        job.stop()


def sets_clock(world: Nodes) -> None:
    """The clock of the controller is set forward, and the next time back."""
    world.set_by = -CLOCK_SET_SECONDS if world.set_by > 0 else CLOCK_SET_SECONDS


ACTS: dict[str, Callable[[Nodes], None]] = {
    act.__name__: act for act in (dies, away, launcher_away, stopped, sets_clock)
}


class End(NamedTuple):
    """The result of the last playbook, or its error."""

    result: Mapping[str, Any]
    message: str


def run_once(world: Nodes) -> End | None:
    """Run the playbook with one controller; None if that died."""
    world.run_again()
    try:
        return End(train_program.train(Program(MemoryJournal(), world), world.site, world.taken_up()), "")
    except Killed:
        return None
    except CollectionError as error:
        return End({}, str(error))


def played(world: Nodes) -> End:
    """Run the playbook until it succeeds, or ends with the same error twice while nothing happens to the nodes."""
    message = ""
    for _run in range(MOST_RUNS):
        left = len(world.acts)
        end = run_once(world)
        if end is None:
            continue
        assert world.watches == set(), f"a watch was left: {end.message}"
        if end.result or (end.message == message and len(world.acts) == left):
            return end
        message = end.message
    raise AssertionError(f"running again does not converge: {message}")


HISTORY = st.dictionaries(st.integers(0, 120), st.sampled_from(["dies", "dies", *sorted(ACTS)]), max_size=5)
ENDS = st.lists(st.sampled_from([OF_MACHINE, OF_MACHINE, FINISHED, OF_PROGRAM]), min_size=1, max_size=3)


@given(acts=HISTORY, ends=ENDS, attempts=st.integers(1, 3))
@settings(
    max_examples=int(os.environ.get("DML_HISTORIES", "150")),
    deadline=None,
    derandomize="DML_EXPLORE" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
def test_random_training_histories_keep_every_promise(
    acts: dict[int, str], ends: list[dict[str, Any]], attempts: int
) -> None:
    check(acts, ends, attempts)


def check(acts: Mapping[int, str], ends: list[dict[str, Any]], attempts: int) -> None:
    """Play a history: one job for each attempt, another one only after a machine, and the end that the job had."""
    world = Nodes(acts, attempts=attempts)
    world.ends = ends

    end = played(world)

    jobs = list(world.jobs.values())
    assert set(world.starts.values()) <= {1}, f"a job was started twice: {world.starts}"
    assert len(jobs) <= attempts, "more attempts than requested"
    assert all(job.end.get("machine") for job in jobs[:-1]), "another attempt without a failed machine"
    assert world.watches == set(), "a watch was left"
    is_finished = bool(jobs) and jobs[-1].end["state"] == "finished"
    assert bool(end.result) == is_finished, f"the job ended with {jobs and jobs[-1].end}: {end.message}"
    if is_finished:
        name = end.result["run"]
        assert world.kept(name)["end"]["state"] == "finished" and world.result(name)["steps"] == 40
    else:
        assert "one" in end.message, f"the run is not named: {end.message}"


def always(_ended: Any) -> bool:
    return True


@pytest.mark.parametrize("mend", ["another attempt only after a machine"])
def test_training_histories_notice_a_removed_mend(monkeypatch: pytest.MonkeyPatch, mend: str) -> None:
    assert mend
    monkeypatch.setattr(follow.Ended, "is_of_machine", property(always))
    with pytest.raises(AssertionError, match="another attempt without a failed machine"):
        check({}, [OF_PROGRAM, FINISHED], 2)
