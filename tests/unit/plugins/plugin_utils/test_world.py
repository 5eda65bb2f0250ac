"""The world of a program repeats calls that opened no session, and starts nothing after its controller's death."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.durable.program import ControllerGone
from plugins.plugin_utils import world
from plugins.plugin_utils.world import ActionWorld

AWAY = {"failed": True, "msg": "vc:443: could not connect", "not_connected": True}
NO_LAUNCHER = {"failed": True, "msg": "w1: Connection timed out during banner exchange", "unreachable": True}
BROKEN = {"failed": True, "msg": "w1: could not move it: the connection broke"}
GOOD: dict[str, Any] = {"moves": []}


class FakeModules:
    """Returns one result after another; the last one indefinitely."""

    def __init__(self, *results: dict[str, Any]) -> None:
        self.results, self.calls = list(results), 0
        self.environment = dict[str, str]()

    def here(self, _name: str, _options: dict[str, Any]) -> dict[str, Any]:
        self.calls += 1
        return self.results.pop(0) if len(self.results) > 1 else self.results[0]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeModules], ActionWorld]:
    now = [0.0]
    monkeypatch.setattr(world.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(world.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(world, "POLL_SECONDS", 300.0)
    return lambda modules: ActionWorld(modules, "gpu")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("modules", "calls", "result"),
    [
        (FakeModules(AWAY, AWAY, GOOD), 3, GOOD),
        (FakeModules(NO_LAUNCHER, GOOD), 2, GOOD),
        (FakeModules(NO_LAUNCHER), 2, NO_LAUNCHER),
        # The move may have started: it is looked up, not repeated.
        (FakeModules(BROKEN, GOOD), 1, BROKEN),
        (FakeModules(AWAY), 4, AWAY),
    ],
    ids=["back", "launcher back", "launcher away for too long", "broken", "away for too long"],
)
def test_run_with_lock_repeats_a_call_without_session(
    make: Callable[[FakeModules], ActionWorld], modules: FakeModules, calls: int, result: dict[str, Any]
) -> None:
    one = make(modules)
    one.join("c.1.2")
    assert one.here("training_info", {}) == result
    assert modules.calls == calls


def test_a_run_without_a_lock_fails_at_once(make: Callable[[FakeModules], ActionWorld]) -> None:
    modules = FakeModules(AWAY, GOOD)
    assert make(modules).here("vmotion_info", {}) == AWAY
    assert modules.calls == 1


def test_no_effect_starts_after_the_controller_dies(
    make: Callable[[FakeModules], ActionWorld], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = make(FakeModules(GOOD))
    one.must_be_attended()
    monkeypatch.setattr(os, "getppid", lambda: 1)
    with pytest.raises(ControllerGone):
        one.must_be_attended()
    with pytest.raises(ControllerGone):
        one.here("esxi_power", {})


def test_module_failure_after_controller_death_raises_controller_gone(
    make: Callable[[FakeModules], ActionWorld], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module ends with an error when it notices that its run is gone; the lock then stays for the next run."""
    modules = FakeModules(BROKEN)
    one = make(modules)
    fail = modules.here

    def die_and_fail(name: str, options: dict[str, Any]) -> dict[str, Any]:
        monkeypatch.setattr(os, "getppid", lambda: 1)
        return fail(name, options)

    modules.here = die_and_fail  # type: ignore[method-assign]
    with pytest.raises(ControllerGone):
        one.here("esxi_power", {})
    assert modules.calls == 1


def test_function_receives_ansible_warnings_as_plain_data() -> None:
    class Warned:
        def __str__(self) -> str:
            return "a warning"

    @dataclass(frozen=True)
    class Options:
        nodes: dict[str, Any]

    given, called = {"w1": {"warnings": [Warned()]}}, list[str]()
    plain = {"w1": {"warnings": ["a warning"]}}
    run = world.OnController(lambda: called.append("attended"))(lambda *values, **more: [*values, more])

    assert run(Options(given), given, nodes=given) == [Options(plain), plain, {"nodes": plain}]
    assert called == ["attended"]


def test_watch_that_cannot_write_names_path_and_reason(tmp_path: Path) -> None:
    records = tmp_path / "gone" / "records.jsonl"

    result = world.start_watch({"records": str(records)})

    assert result["failed"]
    assert result["msg"].startswith(f"{records.parent}/")
    assert result["msg"].endswith(": could not start the watch: No such file or directory")
