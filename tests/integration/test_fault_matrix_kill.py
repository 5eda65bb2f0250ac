# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The fault matrix of host preparation: ansible killed by SIGKILL in each phase, and run again at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible
from tests.integration.faults import HOST, Bench, said
from tests.integration.killing import begun, kill_all, kill_main, wait_for, wait_for_end
from tests.integration.rolling import datacentre, most_out_of_service

Start = Callable[..., Simulator]
AnsibleFor = Callable[..., Ansible]
AT_WORK = "whose ansible is gone, yet its process"
# The first write of each phase, and which call of that method it is.
PHASES = {
    "lock is made": ("CreateFolder", 1),
    "lock is taken": ("Rename_Task", 1),
    "host is noted": ("SetField", 1),
    "host is emptied": ("EnterMaintenanceMode_Task", 1),
    "host is changed": ("UpdateModuleOptionString", 1),
    "reboot is noted": ("SetField", 3),
    "host reboots": ("RebootHost_Task", 1),
    "host is given back": ("ExitMaintenanceMode_Task", 1),
    "lock is given back": ("Rename_Task", 2),
}
one_host = pytest.mark.parametrize("phase", PHASES.values(), ids=PHASES)


@pytest.fixture
def bench(start: Start, ansible_for: AnsibleFor) -> Bench:
    """One host that needs one reboot."""
    vcenter = start(text=datacentre("name: esx01.lab"))
    return Bench(vcenter, ansible_for(vcenter))


def test_killed_while_it_changes_the_host_and_again_while_that_boots(bench: Bench) -> None:
    first = bench.begin()
    wait_for(begun(bench.vcenter, "UpdateModuleOptionString"))
    kill_all(first)
    assert bench.vcenter.ask("GET", f"/hosts/{HOST}")["maintenance"]
    assert bench.lock() == "held", "who looks could take it: the machine knows that the holder is gone"
    bench.next_run()
    bench.vcenter.set_host(HOST, reboot_seconds=20)
    second = bench.begin()
    wait_for(begun(bench.vcenter, "RebootHost_Task"))
    rest = kill_main(second)
    assert AT_WORK in bench.lock(), "its module still waits for the reboot"
    wait_for_end(rest)
    assert bench.lock() == "held"
    wait_for(lambda: bench.vcenter.ask("GET", f"/hosts/{HOST}")["connection"] == "connected")
    bench.finish()


@pytest.mark.slow
@one_host
def test_killed_with_all_that_it_started_and_run_again_at_once(bench: Bench, phase: tuple[str, int]) -> None:
    running = bench.begin()
    wait_for(begun(bench.vcenter, *phase))
    kill_all(running)
    bench.next_run()
    again = bench.run()
    assert again.rc == 0, again.out
    bench.must_be_done()


@pytest.mark.slow
@one_host
def test_killed_alone_and_run_again_at_once(bench: Bench, phase: tuple[str, int]) -> None:
    running = bench.begin()
    wait_for(begun(bench.vcenter, *phase))
    rest = kill_main(running)
    bench.next_run()
    again = bench.run()
    if again.rc:
        assert AT_WORK in said(again.out), again.out
        wait_for_end(rest)
        bench.next_run()
        again = bench.run()
    assert again.rc == 0, again.out
    assert most_out_of_service(bench.writes) == 1
    bench.must_be_done()
