"""The programs of the role training, with the clock of their run."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.core import observer_clock
from plugins.plugin_utils import training_programs


def clock(*_values: object) -> dict[str, Any]:
    """Return the clock in which a program runs."""
    return {"clock": os.environ.get(observer_clock.CLOCK)}


@pytest.mark.parametrize(
    ("program", "module", "function"),
    [
        ("training_train", "train", "train"),
        ("training_sweep", "vary", "sweep"),
        ("training_fabric_check", "fabric_check", "compared"),
    ],
)
def test_programs_follow_jobs_by_their_own_clock(
    monkeypatch: pytest.MonkeyPatch, program: str, module: str, function: str
) -> None:
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(getattr(training_programs, module), function, lambda *given: seen.append(clock(*given)) or {})
    monkeypatch.setattr(training_programs.fabric_check, "require_pairs", lambda _options: None)
    monkeypatch.setattr(training_programs.train, "ways", lambda _run: "")
    run = SimpleNamespace(name="one")
    setup: Any = SimpleNamespace(
        options={"sweep": {}},
        calls=SimpleNamespace(awake_clock=observer_clock.awake),
        site=None,
        point=None,
        require_free=lambda _run: None,
        fabric=lambda: run,
    )
    setup.healthy = lambda: (setup, run)

    training_programs.PROGRAMS[program](None, setup, is_check=False)

    assert [each["clock"].endswith(observer_clock.AWAKE) for each in seen] == [
        True
    ] and observer_clock.CLOCK not in os.environ


def test_reads_the_workers_in_a_limit_file(tmp_path: Path) -> None:
    (tmp_path / "stop.retry").write_text("w2\nw3\n")
    groups = {"all": ["w1", "w2", "w3"], "workers": ["w1", "w2", "w3"]}
    task_vars = {"ansible_play_hosts_all": ["w2"], "groups": groups, "ansible_limit": f"@{tmp_path}/stop.retry"}

    assert training_programs._hosts(task_vars) == ["w2", "w3"]
