# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where a worker is seen to be, and what its events say."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.vmotion import seen
from plugins.module_utils.vsphere import properties
from tests.fakes import hardware
from tests.fakes.sites import machine

BEFORE = seen.Place("esx1", ("esx1/0000:3b:00.0",), "on", "2026-01-01T00:00:00+00:00", "opportunistic")


@pytest.mark.parametrize(
    ("after", "kinds", "cycled"),
    [
        ({}, [], False),
        ({"host": "esx2"}, ["VmMigratedEvent"], False),
        ({"power": "off"}, [], True),
        ({"powered_on": "2026-01-02T00:00:00+00:00"}, [], True),
        ({}, ["VmPoweredOffEvent"], True),
    ],
)
def test_a_worker_that_was_off_in_between_did_not_move_while_it_ran(
    after: dict[str, str], kinds: list[str], cycled: bool
) -> None:
    later = seen.Place(**{**BEFORE.__dict__, **after})
    assert seen.power_cycled(BEFORE, later, [{"kind": kind} for kind in kinds]) == cycled


def test_the_events_of_one_task_are_those_of_its_chain() -> None:
    every = [{"chain": 1, "kind": "a"}, {"chain": 2, "kind": "b"}, {"chain": 1, "kind": "c"}]
    assert [one["kind"] for one in seen.of_chain(every, 1)] == ["a", "c"]


def test_the_gpus_under_a_worker_are_those_on_which_the_host_lists_it(monkeypatch: pytest.MonkeyPatch) -> None:
    host = hardware.host(
        config__graphicsInfo=[
            hardware.graphics("b", "vm-w1", "vm-v1"),
            hardware.graphics("a", "vm-w1"),
            hardware.graphics("c"),
        ]
    )
    objects = {"vm-w1": machine("w1").values, "host-1": host}
    monkeypatch.setattr(
        properties, "read_many", lambda _s, refs, _paths: {one._moId: objects[one._moId] for one in refs}
    )
    session: Any = None
    found = seen.place(session, vim.VirtualMachine("vm-w1"))
    assert (found.host, found.gpus, found.power, found.powered_on) == ("esx1", ("esx1/a", "esx1/b"), "on", None)
    assert found.plain["gpus"] == ["esx1/a", "esx1/b"]
