"""Several moves at once against the simulated data centre: their plan, their overlap in the server's log, a kill."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible, AnsibleFor, Outcome
from tests.integration.killing import beside, has_answered, wait_for
from tests.integration.releases import NEWEST
from tests.integration.test_vmotion import TAGGED, moves
from tests.integration.test_vmotion_test import WORKERS, Trial
from tests.integration.training import Nodes
from tests.integration.workers import desired

# Four workers on six hosts: two have room.
SIX = TAGGED.replace("count: 5", "count: 6")
pytestmark = [pytest.mark.release(NEWEST), pytest.mark.datacentre(text=SIX)]


@pytest.fixture
def ansible(vcenter: Simulator, ansible_for: AnsibleFor) -> Ansible:
    made = ansible_for(vcenter)
    done = made.module("worker_vm", **desired())
    assert done.rc == 0, done.out
    vcenter.clear()
    return made


def test_plans_two_parallel_moves_if_stuns_allow(vcenter: Simulator, ansible: Ansible) -> None:
    requested = {"cluster": "gpu", "one_per_host": True, "max_moves": 2}
    planned = ansible.module("vmotion_plan", **requested)
    assert planned.rc == 0, planned.out
    assert [(wave["moves"], wave["reason"]) for wave in planned.result["waves"]] == [(2, ""), (2, "")]
    moves = planned.result["moves"]
    assert sorted(move["worker"] for move in moves) == WORKERS
    assert [move["wave"] for move in moves] == [1, 1, 2, 2]
    for number in (1, 2):
        hosts = [host for move in moves if move["wave"] == number for host in (move["source"], move["target"])]
        assert len(set(hosts)) == 4, "no host has two moves"
    tight = ansible.module("vmotion_plan", **requested, stun_budget=30)
    assert [wave["moves"] for wave in tight.result["waves"]] == [1, 1, 1, 1]
    assert "their stuns add up to 42 s" in tight.result["waves"][0]["reason"]
    assert vcenter.writes() == []


def most_at_once(made: Sequence[dict[str, Any]]) -> int:
    """The largest number of moves that the server made at one time, by the times of its tasks."""
    edges = sorted([(move["started"], 1) for move in made] + [(move["completed"], -1) for move in made])
    return max(sum(change for _at, change in edges[: end + 1]) for end in range(len(edges)))


def moved(vcenter: Simulator, ansible: Ansible, wave: list[dict[str, str]]) -> Outcome:
    """Start the moves of a wave, which take ten minutes, and end them together."""
    for number in (1, 2):
        vcenter.set_host(f"esx{number:02}.lab", vmotion_seconds=600)
    with beside(vcenter, ansible.module, "vmotion", cluster="gpu", moves=wave) as moving:
        wait_for(lambda: has_answered(vcenter, "RelocateVM_Task", 2)() or moving.done())
        vcenter.let_pass(600)
        return moving.result()


def test_refused_move_prevents_its_whole_wave(vcenter: Simulator, ansible: Ansible) -> None:
    first = {"worker": WORKERS[0], "target": "esx05.lab"}
    taken = ansible.module("vmotion", cluster="gpu", moves=[first, {"worker": WORKERS[1], "target": "esx03.lab"}])
    assert taken.rc != 0
    assert "esx03.lab has no room" in taken.msg
    assert [(row["begun"], row["failed"]) for row in taken.result["moved"]] == [(False, True)] * 2
    assert moves(vcenter) == []
    wave = [first, {"worker": WORKERS[1], "target": "esx06.lab"}]
    long = ansible.module("vmotion", cluster="gpu", moves=wave, stun_budget=30)
    assert "the stuns of worker01, worker02 add up to 42 s, over 30 s" in long.msg
    assert moves(vcenter) == []
    planned = ansible.module("vmotion", check=True, cluster="gpu", moves=wave)
    assert (planned.rc, planned.changed, moves(vcenter)) == (0, True, []), planned.out
    done = moved(vcenter, ansible, wave)
    assert done.rc == 0, done.out
    made = [row["move"] for row in done.result["moved"]]
    assert [(move["worker"], move["vsphere"]["host"]["after"], move["ok"]) for move in made] == [
        (WORKERS[0], "esx05.lab", True),
        (WORKERS[1], "esx06.lab", True),
    ]
    assert most_at_once(made) == 2
    assert sorted(moves(vcenter)) == WORKERS[:2]
    again = ansible.module("vmotion", cluster="gpu", moves=wave)
    assert (again.rc, again.changed) == (0, False), again.out


@pytest.fixture
def trial(vcenter: Simulator, ansible: Ansible, tmp_path: Path) -> Iterator[Trial]:
    nodes = Nodes(ansible, tmp_path)
    yield Trial(vcenter, ansible, nodes, tmp_path)
    nodes.stop()


@pytest.mark.slow
def test_moves_two_at_once_and_judges_each_wave(trial: Trial) -> None:
    planned = trial.run("--check", vmotion_test_max_moves=2)
    assert planned.rc == 0, planned.out
    assert "1. 2 moves at once" in planned.out
    assert "2. 2 moves at once" in planned.out
    assert trial.vcenter.writes() == []
    for number in range(1, 7):
        trial.vcenter.set_host(f"esx{number:02}.lab", vmotion_seconds=3)
    trial.train()
    done = trial.run(vmotion_test_max_moves=2)
    assert done.rc == 0, done.out
    assert "continuous, moved: all" in done.out
    assert sorted(trial.moved()) == WORKERS
    made = json.loads(trial.kept("moves.json"))
    assert most_at_once(made) == 2
    assert [move["wave"] for move in made] == [1, 1, 2, 2]
    assert [first["started"] < second["completed"] for first, second in pairwise(made)] == [True, True, True]
    verdict = json.loads(trial.kept("verdict.json"))
    assert [move["judged_with"] for move in verdict["moves"]] == [[0, 1], [0, 1], [2, 3], [2, 3]]
    assert sum("judged as one" in note for note in verdict["notes"]) == 2
