"""A running task is ours only on a host that a rollout took out of service."""

from __future__ import annotations

import pytest

from plugins.module_utils.maintenance import cluster_problems, recent_tasks, service_note
from plugins.module_utils.maintenance.service_note import ServiceNote
from tests.fakes.esxi import FakeHost


@pytest.mark.parametrize(
    ("note", "ours"),
    [
        (None, False),
        (ServiceNote("me", "then", rollout=True), True),
        # A person empties it for a repair.
        (ServiceNote("me", "then"), False),
    ],
)
def test_recognizes_own_maintenance_tasks_by_rollout_notes(
    monkeypatch: pytest.MonkeyPatch, note: ServiceNote | None, ours: bool
) -> None:
    made = FakeHost()
    if note:
        service_note.write(made, note)
        made.refresh()
    task = recent_tasks.RecentTask(None, made.ref._moId, "HostSystem.enterMaintenanceMode", True, "LAB\\carol")
    monkeypatch.setattr(recent_tasks, "recent", lambda _session, refs: [task] if refs == [made.ref] else [])

    read = cluster_problems.tasks(made.session, None, [made], {made.ref._moId: made.name})

    assert [(one["object"], one["ours"]) for one in read] == [(made.name, ours)]
