"""A window by restart beside another job: its workers move, while all jobs train, before the own job restarts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import pytest

from tests.unit.simulation.world import CONTINUOUS, HOSTS

from .test_other_jobs import BERT, Beside
from .test_restart_window import BY_RESTART, is_running_once, untouched


class Mixed(Beside):
    """A window by restart on four hosts. The worker of another job is on esx3, and can move to esx4."""

    def __init__(self, deaths: Iterable[int] = (), place: str = "esx3") -> None:
        super().__init__(deaths, {**BERT, "nodes": ["w3"]})
        self.add_idle_worker("w3", place)
        self.site.most = 2
        # These are all workers of the inventory.
        self.settings["nodes"].append({"name": "w3", "reach": ["sh", "-c"]})
        # The verdict is a real one.
        self.verdict = {}
        for window in (self.settings["window"], self.requested):
            window.update({**BY_RESTART, "hosts": [*HOSTS, "esx4"]})


def test_workers_of_other_jobs_move_before_the_stop() -> None:
    undisturbed = Mixed()
    undisturbed.carry_out()
    for deaths in ((), *((point,) for point in range(0, undisturbed.points, 8))):
        world = Mixed(deaths)
        facts = world.to_the_end()
        assert world.outcome == "" and world.is_clean and world.is_in_service, (world.outcome, world.log)
        assert is_running_once(world) and world.boots == dict.fromkeys([*HOSTS, "esx4"], 1), world.log
        assert world.moved == ["w3"] and world.site.workers["w3"] == "esx4", "not to a host of the restart"
        assert world.log.index("reboot esx3") < world.log.index("stop the job") < world.log.index("reboot esx1")
        assert facts.other_jobs[0]["verdict"] == "continuous" and "power off w3" not in world.log
        assert facts.restart["verdict"]["verdict"] == "resumed" and len(facts.finished_changes) == 4


def test_drs_moves_no_other_worker_until_hosts_return() -> None:
    """The hosts that leave next are empty, and DRS would fill them."""
    for deaths in ((), (420,)):
        world = Mixed(deaths)
        site, movers = world.site, set[str]()
        world.before["power off w1"] = partial(setattr, site, "drs_seconds", 40.0)
        world.before["return esx2"] = lambda site=site, movers=movers: movers.update(one["by"] for one in site.moves)

        world.to_the_end()

        assert world.outcome == "" and world.is_clean and movers == {"us"}, world.outcome


@pytest.mark.parametrize(("verdict", "is_restarted"), [("inconclusive", True), ("broken", False)])
def test_only_a_broken_job_is_not_stopped(verdict: str, is_restarted: bool) -> None:
    """No rank of the job runs on the workers that moved, so that their transport is not verified."""
    world = Mixed()
    world.verdict = {**CONTINUOUS, "verdict": verdict}

    world.carry_out()

    assert ("start the job" in world.log) == is_restarted == (world.outcome == ""), world.outcome


def test_broken_other_job_keeps_the_job_running() -> None:
    world = Mixed()
    world.before["reboot esx3"] = lambda: world.silent_from.update({1: world.site.clock})

    world.carry_out()

    assert "2 of 4 hosts are changed, 2 left (esx1, esx2): the other job bert" in world.outcome, world.outcome
    assert untouched(world, {"esx3": 1, "esx4": 1}) and list(world.site.attempts) in ([], ["/run/one"])


def test_host_of_both_jobs_refuses_the_window() -> None:
    world = Mixed(place="esx2")

    world.carry_out()

    assert "would shut down workers of other training jobs: bert of anna" in world.outcome and untouched(world)
    assert not world.moved
