"""Harm done to a training that runs on nodes: each kind has one verdict, one breach, one sentence (docs/harms.md)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.vsphere import tasks
from tests.lab.places import Place
from tests.lab.trial import Traffic, Trial, pretend_rdma, wait_for

pytestmark = pytest.mark.slow
STUN = 5.0
SHORT: dict[str, Any] = {"max_gap_s": 4, "resume_deadline_s": 6}
# TCP waits twice as long after each try: what was sent as the link was cut comes again within twice the time at most.
LONGEST = 2 * STUN + 4


@pytest.fixture
def trial(equipped: Place, tmp_path: Path) -> Iterator[Trial]:
    for number in (1, 2, 3, 4):
        equipped.lab.hypervisor.ask("PUT", f"/moves/worker0{number}", {"fails": "", "stun_seconds": 1})
    made = Trial(equipped, tmp_path)
    try:
        yield made
    finally:
        made.end()
        equipped.lab.control.heal()


def silent_for(trial: Trial, seconds: float) -> None:
    """Wait until no one was heard for so long."""
    last = [trial.recorded_bytes(), time.monotonic()]

    def is_silent() -> bool:
        now = trial.recorded_bytes()
        if now != last[0]:
            last[:] = [now, time.monotonic()]
        return time.monotonic() - last[1] > seconds

    wait_for(trial, is_silent, "all ranks are silent")


def answers(trial: Trial, number: int) -> None:
    """Wait until a worker lets people in again."""
    wait_for(trial, lambda: trial.place.inside(number, "true", check=False).returncode == 0, f"worker {number} answers")


def revive(trial: Trial, number: int) -> None:
    """Let a worker that was switched off beneath vCenter run again."""
    with trial.place.machine(number) as machine:
        for begin in (machine.ref.PowerOffVM_Task, machine.ref.PowerOnVM_Task):
            tasks.wait(machine.session, tasks.Started(begin(), "a person", "work"), 120)
    answers(trial, number)


def test_harmless_stun(trial: Trial) -> None:
    trial.start()
    trial.moving(2, STUN)
    trial.move(2)
    result = trial.check("harmless_stun")
    assert (result["unproven"], result["source"]) == ([], "others")
    assert STUN - 0.5 <= result["moves"][0]["gap_s"] < LONGEST
    assert trial.transports[0] == {when: dict.fromkeys(trial.names, "tcp") for when in ("before", "after")}


def test_stun_too_long(trial: Trial) -> None:
    trial.start()
    trial.moving(2, STUN)
    trial.move(2)
    trial.check("stun_too_long", **SHORT)


def test_worker_killed(trial: Trial) -> None:
    trial.start()
    trial.move(2)
    trial.place.lab.hypervisor.ask("POST", "/nodes/worker03/harm", {"kind": "kill"})
    try:
        silent_for(trial, 8)
        trial.check("worker_killed", **SHORT)
    finally:
        revive(trial, 3)


def test_worker_power_cycled(trial: Trial) -> None:
    trial.start()
    trial.move(2)
    with trial.place.machine(3) as machine:
        tasks.wait(machine.session, tasks.Started(machine.ref.ResetVM_Task(), "a person", "reset"), 120)
    answers(trial, 3)
    silent_for(trial, 8)
    trial.check("worker_power_cycled", died=trial.has_died(), **SHORT)


def test_link_lost_for_good(trial: Trial) -> None:
    trial.start()
    trial.move(2)
    trial.place.lab.hypervisor.ask("POST", "/nodes/worker03/harm", {"kind": "unplug"})
    try:
        silent_for(trial, 8)
        trial.check("link_lost_for_good", **SHORT)
    finally:
        trial.place.lab.hypervisor.ask("POST", "/nodes/worker03/harm", {"kind": "plug"})


def test_restarted_by_a_supervisor(trial: Trial) -> None:
    trial.start(supervised=True)
    trial.move(2)
    trial.place.inside(3, f"kill -9 {trial.pid(3)}")
    assert trial.trained(40, time.time() + 3)
    result = trial.check("restarted_by_a_supervisor")
    assert {one["kind"] for one in result["breaches"]} == {"identity", "step_repeated"}


def test_restarted_from_a_checkpoint(trial: Trial) -> None:
    kept, ask = f"{trial.run}/checkpoint", f"{trial.run}/checkpoint.now"
    trial.start("--checkpoint", kept, "--checkpoint-file", ask, "--stop-after-checkpoint", supervised=True)
    trial.move(2)
    trial.place.inside(1, f"touch {ask}")
    assert trial.trained(40, time.time() + 5)
    result = trial.check("restarted_from_a_checkpoint")
    assert {one["kind"] for one in result["breaches"]} == {"identity"}


def test_task_failed(trial: Trial) -> None:
    trial.start()
    words = {"fault": "HostConnectFault", "message": "The hosts do not see each other."}
    trial.place.lab.control.fault("RelocateVM_Task", "task_fails", **words)
    seen = trial.move(2)
    trial.check("task_failed")
    assert words["message"].rstrip(".") in seen["said"]


def test_task_failed_after_a_long_stun(trial: Trial) -> None:
    trial.start()
    trial.moving(2, STUN, fails="The switchover took longer than it may.")
    seen = trial.move(2)
    trial.check("task_failed_after_a_long_stun", **SHORT)
    assert "The switchover took longer than it may" in seen["said"]
    evidence = seen["vsphere"]
    assert evidence is not None
    assert evidence["host"]["before"] == evidence["host"]["after"]


def test_two_workers_at_once(trial: Trial) -> None:
    trial.start()
    first, second = trial.free_hosts()
    for number in (2, 3):
        trial.moving(number, STUN, precopy=5)
    other = threading.Thread(target=trial.place.move, args=(3, second))
    trial.move(2, first, at_its_start=other.start)
    other.join()
    assert trial.trained(20, time.time())
    result = trial.check("two_workers_at_once")
    assert {tuple(sorted(one["judged_with"])) for one in result["moves"]} == {(0, 1)}


def test_stun_during_a_checkpoint(trial: Trial) -> None:
    ask = f"{trial.run}/checkpoint.now"
    trial.start("--checkpoint-file", ask, "--checkpoint-seconds", 4)
    trial.moving(2, STUN, precopy=1)
    asking = threading.Timer(2.0, trial.place.inside, (1, f"touch {ask}"))
    asking.start()
    trial.move(2)
    result = trial.check("stun_during_a_checkpoint", phases={"checkpoint": 30}, max_gap_s=8)
    assert result["longest_gap_by_phase_s"]["checkpoint"] > 4


def test_clock_set_by_a_minute(trial: Trial) -> None:
    ask = f"{trial.run}/clock.now"
    trial.start("--clock-file", ask, "--clock-by", 60)
    trial.place.inside(3, f"touch {ask}")
    trial.moving(3, STUN)
    trial.move(3)
    result = trial.check("clock_set_by_a_minute")
    assert [one["rank"] for one in result["clock_steps"]] == [2]


def test_launchers_own_worker_moved(trial: Trial) -> None:
    trial.start()
    trial.moving(1, STUN)
    trial.move(1)
    result = trial.check("launchers_own_worker_moved")
    assert result["moves"][0]["gap_s"] >= STUN - 0.5


def test_pvrdma_fell_back_to_tcp(trial: Trial) -> None:
    trial.start("--device", pretend_rdma(trial))
    with Traffic(trial) as traffic:
        trial.move(2)
        result = trial.judge()
        assert (result["verdict"], result["breaches"]) == ("continuous", [])
        assert set(trial.transports[0]["after"].values()) == {"rdma"}
        traffic.bound["worker03"] = trial.at()["worker03"]
        trial.move(3)
    trial.check("pvrdma_fell_back_to_tcp")


def test_moved_by_another_user(trial: Trial) -> None:
    trial.start()
    trial.move(2)
    trial.moving(3, STUN)
    trial.place.move(3, trial.free_hosts()[0])
    assert trial.trained(20, time.time())
    result = trial.check("moved_by_another_user")
    assert result["moves"][1]["gap_s"] >= STUN - 0.5, "its silence is not explained"
    assert result["unattributed"] == []
