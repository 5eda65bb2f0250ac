# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Several moves at once against the simulated data centre: their plan, their overlap in the server's log, a kill."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible
from tests.integration.test_vmotion import TAGGED
from tests.integration.test_vmotion_test import WORKERS
from tests.integration.workers import desired

SIX = TAGGED.replace("count: 5", "count: 6")


@pytest.fixture
def place(start: Callable[..., Simulator]) -> Simulator:
    """Four workers on six hosts: two have room."""
    return start(text=SIX)


@pytest.fixture
def ansible(place: Simulator, ansible_for: Callable[[Simulator], Ansible]) -> Ansible:
    made = ansible_for(place)
    done = made.module("worker_vm", **desired())
    assert done.rc == 0, done.out
    place.clear()
    return made


def test_the_plan_has_two_moves_at_once_if_their_stuns_and_the_room_allow_it(
    place: Simulator, ansible: Ansible
) -> None:
    asked = {"cluster": "gpu", "one_per_host": True, "max_moves": 2}
    planned = ansible.module("vmotion_plan", **asked)
    assert planned.rc == 0, planned.out
    assert [(wave["moves"], wave["reason"]) for wave in planned.result["waves"]] == [(2, ""), (2, "")]
    moves = planned.result["moves"]
    assert sorted(move["worker"] for move in moves) == WORKERS
    assert [move["wave"] for move in moves] == [1, 1, 2, 2]
    for number in (1, 2):
        hosts = [host for move in moves if move["wave"] == number for host in (move["source"], move["target"])]
        assert len(set(hosts)) == 4, "no host has two moves"
    tight = ansible.module("vmotion_plan", **asked, stun_budget=30)
    assert [wave["moves"] for wave in tight.result["waves"]] == [1, 1, 1, 1]
    assert "their stuns add up to 42 s" in tight.result["waves"][0]["reason"]
    assert place.writes() == []
