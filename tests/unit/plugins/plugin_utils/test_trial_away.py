# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A vMotion test whose vCenter or launcher does not answer for a while: calls that opened no session are repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.vmotion.test.step import ModuleCall
from plugins.plugin_utils import trial
from plugins.plugin_utils.trial import RUN, Trial

AWAY = {"failed": True, "msg": "vc:443: could not connect", "not_connected": True}
NO_LAUNCHER = {"failed": True, "msg": "w1: Connection timed out during banner exchange", "unreachable": True}
BROKEN = {"failed": True, "msg": "w1: could not move it: the connection broke"}
GOOD = {"moves": []}


class FakeModules:
    """Returns one result after another; the last one indefinitely."""

    def __init__(self, *results: dict[str, Any], locked: bool = True) -> None:
        self.results, self.calls = list(results), 0
        self.environment = {RUN: "c.1.2"} if locked else {}

    def load(self, _path: str) -> dict[str, Any]:
        return {}

    def here(self, _name: str, _options: dict[str, Any]) -> dict[str, Any]:
        self.calls += 1
        return self.results.pop(0) if len(self.results) > 1 else self.results[0]


@pytest.mark.parametrize(
    ("modules", "calls", "result"),
    [
        (FakeModules(AWAY, AWAY, GOOD), 3, GOOD),
        (FakeModules(NO_LAUNCHER, GOOD), 2, GOOD),
        (FakeModules(NO_LAUNCHER), 2, NO_LAUNCHER),
        # The move may have started: it is looked up, not repeated.
        (FakeModules(BROKEN, GOOD), 1, BROKEN),
        (FakeModules(AWAY, GOOD, locked=False), 1, AWAY),
        (FakeModules(AWAY), 4, AWAY),
    ],
    ids=["back", "launcher back", "launcher away for too long", "broken", "not begun", "away for too long"],
)
def test_a_call_without_a_session_is_repeated_while_the_test_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modules: Any, calls: int, result: dict[str, Any]
) -> None:
    now = [0.0]
    monkeypatch.setattr(trial.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(trial.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(trial, "POLL_SECONDS", 300.0)
    one = Trial(modules, {"folder": str(tmp_path), "taken_up": False})
    assert one._call(ModuleCall("vmotion_info", {})) == result
    assert modules.calls == calls
