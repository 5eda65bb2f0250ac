"""A host is out of service if vCenter cannot use it, or if a run has left its note on it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.maintenance import service_note


@pytest.mark.parametrize(
    ("reachable", "in_maintenance", "note", "is_out"),
    [
        (True, False, None, False),
        (False, False, None, True),
        (True, True, None, True),
        (True, False, "ada 2026-11-30T09:00:00Z", True),
    ],
)
def test_unreachable_or_noted_host_is_out_of_service(
    monkeypatch: pytest.MonkeyPatch, reachable: bool, in_maintenance: bool, note: str | None, is_out: bool
) -> None:
    monkeypatch.setattr(service_note, "note_on", lambda _host: note)
    host: Any = SimpleNamespace(reachable=reachable, in_maintenance=in_maintenance)

    assert service_note.is_out_of_service(host) is is_out
