"""Workers of a window by restart are shut down by their guests, and powered off only with the consent of the user."""

from __future__ import annotations

import pytest

from tests.unit.plugins.module_utils.trials.programs.test_restart_window import Restart, untouched
from tests.unit.simulation.world import HOSTS, changed


@pytest.mark.parametrize(("power_off", "reported"), [(False, "w1: could not shut down its guest: it is"), (True, "")])
def test_hung_guest_is_powered_off_only_by_consent(power_off: bool, reported: str) -> None:
    world = Restart(power_off=power_off)
    world.site.hangs = 1

    world.carry_out()

    assert reported in world.outcome and bool(world.outcome) is bool(reported), world.outcome
    assert world.is_running_once and world.is_in_service and len(world.site.attempts) == 2, "the job continues"
    assert world.boots == ({} if reported else dict.fromkeys(HOSTS, 1)) and world.is_clean


def test_worker_without_tools_refuses_the_window() -> None:
    for power_off in (False, True):
        world = Restart(power_off=power_off)
        workers = [{**one, "vm_tools": one["name"] != "w1"} for one in world.worker_vm_info({})["workers"]]
        changed(world, worker_vm_info=lambda _options, workers=workers: {"workers": workers})

        world.carry_out()

        assert ("w1: could not plan to shut down: VMware Tools do not run in" in world.outcome) is not power_off
        assert untouched(world) is not power_off, world.outcome
