"""Random histories of clusters that are built, used and removed keep the promises of a teardown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from plugins.module_utils.hosts.rollback import teardown
from plugins.module_utils.trials.steps import holding

from . import role_tasks
from .teardowns import BuildingMachine
from .test_simulation import HISTORIES, UNSHRUNK, nothing

# The templates of the tasks take most of the time.
REMOVALS = settings(HISTORIES, max_examples=max(1, HISTORIES.max_examples // 7))
UNSHRUNK_REMOVALS = settings(UNSHRUNK, max_examples=300)


def test_random_histories_keep_every_promise_of_a_teardown() -> None:
    run_state_machine_as_test(BuildingMachine, settings=REMOVALS)


# Each is a task of a role, which a changed role lacks.
TASKS = {
    "no removal without the lock": "Take the cluster's lock",
    "the lock is taken again after the restoration of hosts": "Take the cluster's lock again",
    "the lock is released": "Release the cluster's lock",
    "nothing is removed while others use the network": "Refuse a teardown that must not begin",
    "workers go before their network": "Delete the built workers and unmark the adopted ones",
    "the tag goes before its adapter": "Remove the PVRDMA tag from the adapters to be removed",
    "shared settings are as before": "Change or restore the shared settings, with a record of their earlier values",
    "no attribute stays": "Remove the custom attributes that no object uses any more",
}
LOCKS = ("lock", "unlock")


def without(tasks: list[Any], name: str) -> list[Any]:
    """Return tasks without the one of this name, also in blocks."""
    kept = [task for task in tasks if task.get("name") != name]
    inner = ("block", "always")
    return [{**task, **{key: without(task[key], name) for key in inner if key in task}} for task in kept]


MENDS: dict[str, tuple[Any, str, Any]] = {
    "DRS gets its settings back from a killed test": (holding, "RULE", "workers"),
    "a host that a killed run left is returned or named": (teardown, "_out", lambda _hosts: []),
    "a killed test does not continue with other machines": (holding, "require_same_machines", nothing),
}


@pytest.mark.slow
@pytest.mark.parametrize("mend", sorted(MENDS))
def test_teardowns_notice_a_removed_mend(monkeypatch: pytest.MonkeyPatch, mend: str) -> None:
    monkeypatch.setattr(*MENDS[mend])
    with pytest.raises((AssertionError, RuntimeError, ExceptionGroup)):
        run_state_machine_as_test(BuildingMachine, settings=UNSHRUNK_REMOVALS)


@pytest.mark.slow
@pytest.mark.parametrize("promise", sorted(TASKS))
def test_a_task_that_is_taken_out_is_missed(monkeypatch: pytest.MonkeyPatch, promise: str) -> None:
    whole = role_tasks.tasks_of

    def tasks_of(role: str, name: str) -> list[Any]:
        # The files of the lock have tasks of the same names.
        return whole(role, name) if name in LOCKS else without(whole(role, name), TASKS[promise])

    monkeypatch.setattr(role_tasks, "tasks_of", tasks_of)
    with pytest.raises((AssertionError, RuntimeError, ExceptionGroup)):
        run_state_machine_as_test(BuildingMachine, settings=UNSHRUNK_REMOVALS)
