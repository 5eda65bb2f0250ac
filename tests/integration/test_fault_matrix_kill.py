"""The fault matrix of host preparation: ansible killed by SIGKILL in each phase, and run again at once."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import AnsibleFor, Start
from tests.integration.faults import HOST, Bench, last_sentence
from tests.integration.killing import has_started, kill_all, kill_main, wait_for, wait_for_end
from tests.integration.rolling import datacentre

AT_WORK = "whose ansible has ended, yet its process"
NOTE, ENTER, CHANGE = "SetField", "EnterMaintenanceMode_Task", "UpdateModuleOptionString"
REBOOT, EXIT, LOCK = "RebootHost_Task", "ExitMaintenanceMode_Task", "Rename_Task"
# Each run is killed at the first of these writes, which begins the phase that the runs before did not come to; or at a
# later phase, where what outlived the kill did the earlier one.
PHASES = {
    "lock is made": ("CreateFolder",),
    "lock is taken": (LOCK,),
    "host is noted": (NOTE,),
    "host is emptied": (ENTER, CHANGE, REBOOT, EXIT),
    "host is changed": (CHANGE, REBOOT, EXIT),
    "reboot is noted": (NOTE, REBOOT, EXIT),
    "host reboots": (REBOOT, EXIT),
    "host is in service": (EXIT,),
}
Kill = Callable[[subprocess.Popen[str]], list[int]]
both_ways = pytest.mark.parametrize("kill", [kill_all, kill_main], ids=["with all that it started", "alone"])


@pytest.fixture
def bench(start: Start, ansible_for: AnsibleFor) -> Bench:
    """One host that needs one reboot."""
    vcenter = start(text=datacentre("name: esx01.lab"))
    return Bench(vcenter, ansible_for(vcenter))


@pytest.mark.slow
def test_run_finishes_after_kills_during_change_and_boot(bench: Bench) -> None:
    first = bench.begin()
    wait_for(has_started(bench.vcenter, "UpdateModuleOptionString"))
    kill_all(first)
    assert bench.vcenter.ask("GET", f"/hosts/{HOST}")["maintenance"]
    assert bench.lock() == "held", "who looks could take it: the machine knows that the holder is gone"
    bench.next_run()
    # Between two calls its module notices the end of its run; within one it cannot.
    bench.vcenter.fault("SetField", "slow", seconds=120)
    second = bench.begin()
    wait_for(has_started(bench.vcenter, "SetField"))
    rest = kill_main(second)
    assert AT_WORK in bench.lock(), "its module still waits for the note of the reboot"
    bench.vcenter.let_pass(120)
    wait_for_end(rest)
    assert bench.lock() == "held"
    assert has_started(bench.vcenter, "RebootHost_Task")()
    wait_for(lambda: bench.vcenter.ask("GET", f"/hosts/{HOST}")["connection"] == "connected")
    bench.finish()


def test_ctrl_c_names_the_host_that_stays_out(bench: Bench) -> None:
    running = bench.begin()
    wait_for(has_started(bench.vcenter, CHANGE))
    os.kill(running.pid, signal.SIGINT)
    out = " ".join(running.communicate(timeout=300)[0].split())
    assert running.returncode != 0, out
    assert f"the run was interrupted: {HOST} may be out of service, the lock of the cluster is held." in out
    assert "Run the playbook again: it takes over the lock, and continues with these hosts" in out
    bench.finish()


@pytest.mark.slow
@both_ways
def test_run_finishes_after_kills_in_every_phase(bench: Bench, kill: Kill) -> None:
    rest: list[int] = []
    killed: list[str] = []
    # A note that takes a second is distinct from what follows.
    bench.vcenter.fault("SetField", "slow", seconds=1, count=-1)
    for phase, methods in PHASES.items():
        running = begin_at_once(bench, rest, methods)
        if running.poll() is None:
            rest = kill(running)
            killed.append(phase)
    # Processes that outlive the kill of only the main process may do the next phase too.
    assert killed == list(PHASES) or (kill is kill_main and len(killed) >= len(PHASES) - 1)
    bench.vcenter.heal()
    wait_for_end(rest)
    bench.finish(killed=True)


@pytest.mark.slow
@both_ways
def test_run_killed_while_unlocking_leaves_only_its_lock(bench: Bench, kill: Kill) -> None:
    running = bench.begin()
    wait_for(has_started(bench.vcenter, LOCK, 2))
    wait_for_end(kill(running))
    bench.next_run()
    again = bench.run()
    assert again.rc == 0, again.out
    assert bench.vcenter.writes() == []
    bench.free_of_the_dead()
    bench.must_be_done()


def begin_at_once(bench: Bench, rest: list[int], methods: Sequence[str]) -> subprocess.Popen[str]:
    """A run that has come to one of the writes; refused while the run before is still at work, it is started again."""
    while True:
        bench.next_run()
        running = bench.begin()
        wait_for(partial(ended_or_started, bench.vcenter, running, methods), 300)
        if not running.poll():
            return running
        text = running.communicate()[0]
        assert AT_WORK in last_sentence(text), text
        wait_for_end(rest)


def ended_or_started(vcenter: Simulator, running: subprocess.Popen[str], methods: Sequence[str]) -> bool:
    return running.poll() is not None or any(has_started(vcenter, method)() for method in methods)
