"""A maintenance window reserves the nodes of a job in Slurm, in which Slurm breaks the job that it ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from plugins.module_utils.errors import WholeError
from tests.fakes.deaths import histories
from tests.unit.simulation.world import HOSTS, Window

from .test_restart_window import BY_RESTART

PLACE = {"job": "7", "login": "w1", "names": {"w1": "w1", "w2": "w2"}, "nodes": ["w1", "w2"], "restarts": 0}
NAME = "dml-test"
CREATE = "starttime=now duration=10080 user=root flags=maint,ignore_jobs nodes=w1,w2"


class SlurmWindow(Window):
    """The job of the window runs in Slurm, whose controller is reached through w1."""

    def __init__(self, deaths: Iterable[int] = (), given: Any = None, **slurm: Any) -> None:
        super().__init__(deaths, slurm={**PLACE, **slurm}, **({"window": given} if given else {}))
        self.reserved, self.created, self.refusal = set[str](), list[str](), ""
        self.of_nodes = "w1|w1|192.0.2.1|allocated|none\nw2|w2|192.0.2.2|allocated|none\n"

    def on_node(self, node: str, user: str, _module: str, options: Any, /) -> dict[str, Any]:
        assert (node, user) == ("w1", "root")
        words = " ".join(options["argv"][1:])
        if words.startswith("create"):
            return self.effect("reserve", lambda: self._create(words))
        if words.startswith("delete"):
            return self.effect("end the reservation", self._delete)
        if NAME in self.reserved:
            return {"stdout": f"ReservationName={NAME} StartTime=2026-11-29T08:38:44"}
        return {"failed": True, "msg": f"Reservation {NAME} not found"}

    def _create(self, words: str) -> dict[str, Any]:
        if self.refusal or NAME in self.reserved:
            return {"failed": True, "msg": self.refusal or "Error creating the reservation: Duplicate reservation name"}
        self.reserved.add(NAME)
        self.created.append(words.partition(f"reservationname={NAME} ")[2])
        return {}

    def _delete(self) -> dict[str, Any]:
        if NAME not in self.reserved:
            return {"failed": True, "msg": "Requested reservation is invalid"}
        self.reserved.remove(NAME)
        return {}

    def command(self, options: Any) -> dict[str, Any]:
        job = "   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0"
        texts = {"squeue": "7|RUNNING|None|anna|w1|w[1-2]\n", "scontrol": job, "sinfo": self.of_nodes}
        return {"stdout": texts[options["argv"][0]]}


def test_each_death_leaves_no_reservation_behind() -> None:
    for world, facts in histories(SlurmWindow, Window.to_the_end):
        assert (world.outcome, world.reserved, world.is_clean) == ("", set(), True), world.outcome
        assert set(world.created) == {CREATE} and len(facts.host_changes) == len(HOSTS)


def test_refused_reservation_changes_no_host() -> None:
    world = SlurmWindow()
    world.refusal = "Error creating the reservation: Invalid user id"

    world.carry_out()

    assert "could not create it in Slurm: Error creating the reservation: Invalid user id; give its" in world.outcome
    assert not world.boots and world.is_clean


class SlurmRestart(SlurmWindow):
    """The same by restart: Slurm's controller boots with its node."""

    def __init__(self, deaths: Iterable[int] = (), **window: Any) -> None:
        super().__init__(deaths, given={**BY_RESTART, **window})
        self.site.most, self.is_away, self.at = 2, 0, dict[str, bool]()
        self.before["stop the job"] = lambda: self.at.update(stop=NAME in self.reserved)
        self.before["power on w1"] = lambda: setattr(self, "is_away", 3)

    def on_node(self, node: str, user: str, module: str, options: Any, /) -> dict[str, Any]:
        if options["argv"][0] == "squeue":
            self.is_away -= 1
            return {"failed": self.is_away >= 0}
        self.at["start"] = self.at.get("start", True) and (options["argv"][1] != "delete" or bool(self.is_started))
        return super().on_node(node, user, module, options)

    @property
    def is_started(self) -> bool:
        """Whether a job runs that this window need not start."""
        return bool(self.site.job and self.site.job.is_running)


def test_restart_reserves_nodes_until_the_job_is_back() -> None:
    for world, _facts in histories(SlurmRestart, Window.to_the_end):
        assert (world.outcome, world.reserved, world.is_clean) == ("", set(), True), world.outcome
        assert world.at == {"stop": True, "start": True} and world.boots == dict.fromkeys(HOSTS, 1), world.log


def test_restart_that_stays_open_keeps_and_names_its_reservation() -> None:
    world = SlurmRestart()
    world.before["reboot esx1"] = lambda: setattr(world.site.hosts["esx1"], "is_lost", True)

    with pytest.raises(WholeError, match=f"Slurm keeps the reservation {NAME} of its nodes"):
        world.carry_out()

    assert world.reserved == {NAME}


@pytest.mark.parametrize("no", [False, "false"])
def test_window_without_a_reservation_leaves_slurm_alone(no: Any) -> None:
    world = SlurmWindow(reservation=no)

    world.carry_out()

    assert world.outcome == "" and world.created == []


def test_node_that_slurm_marks_down_ends_the_window() -> None:
    world = SlurmWindow()

    def mark() -> None:
        world.of_nodes = world.of_nodes.replace("192.0.2.2|allocated|none", "192.0.2.2|down*|Not responding")

    world.before["reboot esx1"] = mark
    world.verdict.clear()

    facts = world.carry_out()

    assert world.boots == {"esx3": 1, "esx1": 1} and world.is_in_service and not world.reserved
    assert "Slurm marked w2 DOWN (Not responding), and job 7 is RUNNING" in world.outcome
    assert facts.job_now and facts.job_now["state"] == "died"
