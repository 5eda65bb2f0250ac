"""Random histories with windows by restart keep the promises of the collection, and each promise can be broken."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from plugins.module_utils.trials.programs import restart_window
from plugins.module_utils.trials.steps import holding, stopping, workers_off

from .attempts import RestartableJob
from .restarting import DISTURBANCES, RestartMachine, SlurmMachine
from .test_simulation import HISTORIES, UNSHRUNK, always_in_time, nothing


def test_random_histories_with_restarts_keep_every_promise() -> None:
    run_state_machine_as_test(RestartMachine, settings=HISTORIES)


def test_random_histories_in_slurm_keep_every_promise() -> None:
    run_state_machine_as_test(SlurmMachine, settings=settings(HISTORIES, max_examples=HISTORIES.max_examples // 5))


def test_killed_window_in_slurm_ends_its_reservation() -> None:
    for point in range(20, 330, 22):
        for is_restart in (False, True):
            machine = SlurmMachine()
            machine.begin(1, True, 0.0)
            if is_restart:
                machine.kill_a_restart_and_go_on(point, [], "esx1", 0.0)
            else:
                machine.kill_a_window_and_go_on(point, "", "esx1", False)
            machine.teardown()


def test_watch_judges_no_stun_after_its_end() -> None:
    machine = SlurmMachine()
    machine.begin(0, False, 200.0)
    machine.kill_a_window_and_go_on(115, "another job", "esx1", False)
    machine.fail_a_window_and_its_release(20, "alarm", "esx3")
    machine.run_hosts(under_training=True, most=1, stuns=[200.0], faults={}, end=(0.0, False))


def test_killed_restart_continues_after_each_event() -> None:
    for point, events in ((90, ["waits"]), (150, ["alarm"]), (200, ["loses"]), (240, ["dies"]), (280, ["waits"])):
        machine = RestartMachine()
        machine.begin(1, True, 0.0)
        machine.kill_a_restart_and_go_on(point, events, "esx1", 0.0)
        machine.teardown()


def test_killed_restart_changes_no_host_after_its_end() -> None:
    for point in range(60, 330, 9):
        for seconds in (3600.0, 14400.0):
            machine = RestartMachine()
            machine.begin(1, True, 0.0)
            machine.kill_a_restart_and_go_on(point, ["waits"], "esx1", seconds)
            machine.teardown()


def test_owner_and_others_disturb_a_restart_at_each_moment() -> None:
    for point in range(60, 330, 9):
        for act in DISTURBANCES:
            machine = RestartMachine()
            machine.begin(1, True, 0.0)
            machine.disturb_a_restart(point, act, "esx1")
            machine.teardown()


def test_killed_restart_beside_another_job_continues() -> None:
    is_moved = set()
    for point in range(30, 530, 20):
        machine = RestartMachine()
        machine.begin(1, True, 0.0)
        machine.restart_beside_another_job({point: ("kill", "")}, 2)
        machine.restart_beside_another_job({}, 2)
        is_moved.add(any(move["worker"] == "w3" and move["by"] == "us" for move in machine.site.moves))
        machine.teardown()
    assert is_moved == {True}


MENDS: dict[str, list[tuple[Any, str, Any]]] = {
    "workers are powered on again": [(workers_off, "power_on", lambda *_given: {})],
    "a stopped job is started again": [(restart_window, "start_again", lambda *_given: {"run": "", "why": ""})],
    "a restart stops no job that started meanwhile": [(workers_off, "why_not_shut_down", lambda *_given: "")],
    "a restart shuts down nothing after its end": [(restart_window, "no_time", always_in_time)],
    "a job stops right after a checkpoint": [(stopping, "_is_after", lambda *_given: True)],
    "a job that its owner has stopped stays stopped": [(RestartableJob, "stopped_by_owner", lambda _job: "")],
    "hosts that were not changed return": [(restart_window, "return_unchanged", nothing)],
}
OF_SLURM: dict[str, list[tuple[Any, str, Any]]] = {
    "nodes are reserved before a host leaves": [(holding, "reserve", nothing), (restart_window, "reserve", nothing)],
    "a reservation ends with its window": [(holding, "unreserve", nothing), (restart_window, "unreserve", nothing)],
}


@pytest.mark.slow
@pytest.mark.parametrize("mend", sorted({**MENDS, **OF_SLURM}))
def test_each_mend_of_restarts_is_missed(monkeypatch: pytest.MonkeyPatch, mend: str) -> None:
    for module, name, replacement in {**MENDS, **OF_SLURM}[mend]:
        monkeypatch.setattr(module, name, replacement)
    with pytest.raises((AssertionError, RuntimeError, ExceptionGroup)):
        run_state_machine_as_test(SlurmMachine if mend in OF_SLURM else RestartMachine, settings=UNSHRUNK)
