"""Random histories of a shared cluster keep the promises of the collection, and each promise can be broken."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from plugins.module_utils.durable.program import Program
from plugins.module_utils.hosts import change_hosts, rollout
from plugins.module_utils.hosts.rollback import restoring, rollback
from plugins.module_utils.maintenance import rolling_change, stop_rules
from plugins.module_utils.maintenance.lock.lock_rules import LockDecision, LockRecord, hold
from plugins.module_utils.trials.evidence import facts, prediction
from plugins.module_utils.trials.evidence.facts import ranks_by_worker
from plugins.module_utils.trials.folder import continued_settings
from plugins.module_utils.trials.programs import around_job, maintenance_window
from plugins.module_utils.trials.steps import window_end

from . import modules, trial_calls
from .faults import CLOCK_SET_SECONDS
from .host import Host, Profile
from .machine import SiteMachine
from .operations import Team
from .site import Site

HISTORIES = settings(
    max_examples=int(os.environ.get("DML_HISTORIES", "75")),
    stateful_step_count=12,
    deadline=None,
    derandomize="DML_EXPLORE" not in os.environ,
    print_blob=False,
    suppress_health_check=list(HealthCheck),
)
# A promise that is broken on purpose need not be shrunk.
UNSHRUNK = settings(HISTORIES, max_examples=1500, phases=[Phase.generate])


def test_lock_may_stay_if_its_release_is_interrupted() -> None:
    for point in range(40):
        machine = SiteMachine()
        machine.begin(0, False, 0.0)
        machine.run_vmotion_test(faults={point: ("interrupt", "esx1")}, stuns=[])
        machine.teardown()


def test_window_that_had_no_time_ends_after_its_release() -> None:
    machine = SiteMachine()
    machine.begin(0, True, 0.0)
    machine.request_image(is_dropped=False)
    late, faults = (2400.0, False), {10: ("lost_release", "esx1")}
    machine.run_hosts(under_training=True, most=1, stuns=[], faults=faults, only=[], ack=False, end=late)
    machine.teardown()


def test_random_histories_keep_every_promise() -> None:
    run_state_machine_as_test(SiteMachine, settings=HISTORIES)


@pytest.mark.parametrize("seconds", [-CLOCK_SET_SECONDS, CLOCK_SET_SECONDS])
def test_clock_set_during_a_rollout_changes_no_waits(seconds: float) -> None:
    def rolled_out(point: int) -> tuple[list[str], float]:
        team = Team(Site({"esx1": Host()}, {}, requested=Profile(1, 1)))
        faults = {point: lambda calls: setattr(calls.site, "clock_set", seconds)}
        outcome = team.hosts(faults=faults)
        assert outcome.is_success, outcome.message
        return team.shown, team.site.clock

    undisturbed = rolled_out(-1)
    assert any("esx1 was out of service for" in line for line in undisturbed[0])

    assert [point for point in range(80) if rolled_out(point) != undisturbed] == []


@pytest.mark.parametrize(
    ("seconds", "events"), [(3600.0, ["waits"]), (14400.0, ["waits"]), (0.0, ["alarm"])], ids=["late", "hours", "alarm"]
)
def test_a_killed_window_goes_on_within_its_limits(seconds: float, events: list[str]) -> None:
    for point in range(90, 200, 5):
        machine = SiteMachine()
        machine.begin(1, True, 0.0)
        machine.kill_a_window_and_go_on_later(point, seconds, events, "esx4")


def test_failed_release_makes_a_failed_window_forget_nothing() -> None:
    for point in range(125, 250, 11):
        machine = SiteMachine()
        machine.begin(1, True, 0.0)
        machine.fail_a_window_and_its_release(point, "alarm", "esx4")


def nothing(*_arguments: Any, **_options: Any) -> None:
    """Do nothing in the place of a mend."""


@contextmanager
def override_that_stays(p: Program, trial: Any) -> Iterator[None]:
    """Take the override of DRS, and release nothing."""
    p.ensure(lambda: trial.of_cluster("worker_rules", state="present"))
    yield


@contextmanager
def no_override(_p: Program, _trial: Any) -> Iterator[None]:
    """Let DRS move the workers."""
    yield


def first_rank_only(hosts: dict[str, list[int]], workers: Any) -> dict[str, list[int]]:
    """Return one rank of each worker."""
    return {worker: ranks[:1] for worker, ranks in ranks_by_worker(hosts, workers).items()}


def as_requested(before: Any, _names: Any) -> dict[str, Any]:
    """Return the profile of the change in the place of that before it."""
    return dict(before.desired)


def always_in_time(_p: Program, trial: Any, stage: dict[str, Any]) -> str:
    """Continue a host whatever the time is."""
    trial.host_in_time = stage["host"]
    return ""


def stopped_at_ensure(p: Program, effect: Callable[[], Any]) -> Any:
    """End a failed attempt of an earlier controller at its first repeated effect."""
    p._must_go_on()
    return effect()


def on_the_same_clock(hour: int, minute: int, started: float) -> float:
    """Return a time of day as if no clock were set at night."""
    begin = datetime.fromtimestamp(started).astimezone()
    at = begin.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return (at if at > begin else at + timedelta(days=1)).timestamp()


def forgetful(current: LockRecord | None, *arguments: Any, **facts: Any) -> LockDecision:
    """Take a lock over without the request in its record."""
    return hold(current and replace(current, request=""), *arguments, **facts)


def without_silence(result: dict[str, Any]) -> dict[str, Any]:
    """Return a verdict that overlooks each silence."""
    return {**result, "verdict": "continuous", "breaches": []}


MENDS: dict[str, list[tuple[Any, str, Any]]] = {
    "stop rules are read before each host": [(change_hosts.HostChange, "check_stop_rules", lambda _change: [])],
    "stop rules are obeyed": [(change_hosts, "stops", lambda _found, _accepted: [])],
    "a lost host keeps the others in service": [
        (stop_rules, "_silent", lambda *_arguments: iter(())),
        (stop_rules, "_strangers", lambda *_arguments: iter(())),
        (stop_rules, "_too_many", lambda *_arguments: iter(())),
    ],
    "a host of others is neither changed nor rebooted": [
        (rolling_change, "refusals", lambda *_arguments: []),
        (rolling_change, "_taken_out", lambda _left: set()),
        (stop_rules, "_strangers", lambda *_arguments: iter(())),
        (stop_rules, "_too_many", lambda *_arguments: iter(())),
        (change_hosts.HostChange, "leave_service", nothing),
    ],
    "a window continues with its own profile only": [
        (continued_settings, "refuse_other", nothing),
        (maintenance_window, "not_as_requested", lambda _trial: ""),
    ],
    "a window moves no job that started meanwhile": [(window_end, "present_jobs", lambda *_arguments: [])],
    "a rollout empties no host of a job that started meanwhile": [(rollout, "require_no_job", nothing)],
    "an old acknowledgement does not count": [(window_end, "unacknowledged", lambda *_arguments: "")],
    "a request outlives its controller": [(modules, "hold", forgetful)],
    "a remediation of an earlier controller is awaited": [
        (change_hosts.HostChange, "has_no_remediation", lambda _change: True)
    ],
    "no run without the lock": [(rollout, "take_lock", nothing)],
    "DRS gets its settings back": [(around_job, "drs_override", override_that_stays)],
    "DRS moves no worker of a test": [(around_job, "drs_override", no_override)],
    "each move has all ranks of its worker": [(facts, "ranks_by_worker", first_rank_only)],
    "a rollback restores the hosts of its evidence only": [(rollback, "must_be_of", nothing)],
    "a rollback restores the state before the change": [(restoring, "_all_options", as_requested)],
    "workers leave a host before it is changed": [
        (maintenance_window, "start_round", nothing),
        (maintenance_window, "wave", nothing),
    ],
    "a later controller starts nothing after the end of its window": [(maintenance_window, "no_time", always_in_time)],
    "a later controller reads the stop rules before it moves": [(maintenance_window, "why_not", lambda *_given: "")],
    "hours without a controller are not the time of a host": [(prediction, "attended", list)],
    "a failed attempt keeps all that it has written": [(Program, "ensure", stopped_at_ensure)],
    "a time of day is that of clocks which are set at night": [(window_end, "_next_time", on_the_same_clock)],
    "a silence breaks the verdict": [(trial_calls, "judged", without_silence)],
}


@pytest.mark.slow
@pytest.mark.parametrize("mend", sorted(MENDS))
def test_histories_notice_a_removed_mend(monkeypatch: pytest.MonkeyPatch, mend: str) -> None:
    for module, name, replacement in MENDS[mend]:
        monkeypatch.setattr(module, name, replacement)
    with pytest.raises((AssertionError, RuntimeError, ExceptionGroup)):
        run_state_machine_as_test(SiteMachine, settings=UNSHRUNK)
