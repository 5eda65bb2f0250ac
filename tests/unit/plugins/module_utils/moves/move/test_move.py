"""The plan of one move, and the moves that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.errors import NotFound, Refused
from plugins.module_utils.moves.move.move import MoveRequest, WorkerMove
from plugins.module_utils.workers.machine import Machine
from tests.fakes import hardware
from tests.fakes.moves import FakeServer, site_of
from tests.fakes.worker_cluster import FakeWorkerCluster, machine


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    return FakeServer(monkeypatch)


def moving(server: FakeServer, one: Machine, target: str = "esx2", **more: Any) -> tuple[WorkerMove, FakeWorkerCluster]:
    site = site_of(server, one)
    site.marks[one.name] = {"name": one.name, "cluster": "gpu"}
    return WorkerMove(site, MoveRequest(one.name, target, **more)), site


def test_plans_a_move_to_the_other_host(server: FakeServer) -> None:
    subject, _site = moving(server, machine("w1", hardware.vgpu()))
    plan = subject.plan({"host": "esx1"})
    assert ([(one.key, one.before, one.after) for one in plan.changes], plan.unmet) == ([("host", "esx1", "esx2")], ())
    assert subject.plan({"host": "esx2"}).changes == ()


def test_reports_an_objection_unless_accepted(server: FakeServer) -> None:
    tied = machine("w1", hardware.vgpu(), hardware.sriov_card())
    plan = moving(server, tied)[0].plan({"host": "esx1"})
    assert len(plan.unmet) == 1 and plan.unmet[0].endswith("(passthrough)")
    accepted = moving(server, tied, accept=("passthrough",))[0].plan({"host": "esx1"})
    assert (accepted.unmet, accepted.warnings[-1].startswith("accepted: ")) == ((), True)


def test_follows_a_running_move_without_checking_it(server: FakeServer) -> None:
    subject, _site = moving(server, machine("w1", hardware.vgpu(), hardware.sriov_card()))
    subject.running = object()
    assert (subject.plan({"host": "esx1"}).unmet, subject.found) == ((), [])


@pytest.mark.parametrize(
    ("more", "target", "words"),
    [
        ({}, "esx9", "cluster gpu has esx1, esx2; correct the name of the host"),
        ({"on": False}, "esx2", "it is powered off"),
    ],
)
def test_moves_only_running_workers_within_their_cluster(
    server: FakeServer, more: dict[str, Any], target: str, words: str
) -> None:
    with pytest.raises(Refused, match=words):
        moving(server, machine("w1", **more), target)[0].plan({"host": "esx1"})


def test_does_not_move_a_foreign_machine(server: FakeServer) -> None:
    subject, site = moving(server, machine("w1"))
    site.marks.clear()
    with pytest.raises(Refused, match="name a worker that has one"):
        subject.plan({"host": "esx1"})
    site.machines.clear()
    with pytest.raises(NotFound, match="find the worker 'w1'"):
        subject.plan({"host": "esx1"})


def test_does_not_start_moves_over_the_stun_budget(server: FakeServer) -> None:
    subject, _site = moving(server, machine("w1", hardware.vgpu()), refusal=lambda: "their stuns add up to 120 s")
    plan = subject.plan({"host": "esx1"})
    with pytest.raises(Refused, match=r"their stuns add up to 120 s.*move fewer workers at once"):
        subject.apply(plan)
    assert not subject.is_started
