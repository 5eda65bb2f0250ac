"""A window that is over: check mode refuses it, and its end fails if the host at hand cannot be returned."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from plugins.plugin_utils import trial
from tests.fakes.deaths import Killed, MortalJournal
from tests.unit.plugins.module_utils.trials.programs.test_maintenance_window import WINDOW, Window


class Journal(MortalJournal):
    """A journal with a path."""

    path = Path("/test/journal.jsonl")


def killed_in_mid_host() -> Window:
    """Return a window whose controller died while a host was out of service."""
    for point in range(20, 200):
        world = Window([point])
        with suppress(Killed):
            world.carry_out()
        if world.is_dead and world.boots and not world.is_in_service:
            return world
    raise AssertionError("no death leaves a host out of service")


def continue_it(monkeypatch: pytest.MonkeyPatch, world: Window, cluster: str, ending: str) -> dict[str, Any]:
    """Continue or end the window of a killed controller with another one, and return the result of its task."""
    nothing: Any = None
    world.is_dead, world.controllers, world.controller = False, 2, "controller 2"
    world.warnings, world.ask_for_end = {}, nothing  # type: ignore[attr-defined]
    monkeypatch.setattr(trial, "TrialSite", lambda *_arguments: world)
    journal: Any = Journal(world, {trial.START: world.settings, **world.values})
    return trial._carried_out(nothing, journal, {**world.settings, "cluster": cluster}, ending)


@pytest.mark.parametrize("failure", ["", "esx3: could not return it: the server said no."])
def test_ending_fails_if_the_host_stays_out(monkeypatch: pytest.MonkeyPatch, failure: str) -> None:
    world = killed_in_mid_host()
    world.cluster.failures = {"in_service": failure} if failure else {}

    result = continue_it(monkeypatch, world, "gpu", "The window was ended.")

    assert result["failed"] == bool(failure) and world.is_clean, result
    assert world.is_in_service != bool(failure) and failure in result["msg"]


@pytest.mark.parametrize("ending", ["", "The window was ended."])
def test_a_window_continues_after_its_cluster_was_renamed(monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    world, named = killed_in_mid_host(), set[str]()
    answer = world.here

    def here(module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        named.update([options["cluster"]] if "cluster" in options else [])
        return answer(module, options)

    monkeypatch.setattr(world, "here", here)
    result = continue_it(monkeypatch, world, "renamed", ending)

    assert not result["failed"] and named == {"renamed"}, (result, named)
    assert world.is_clean and world.is_in_service


class Plans:
    """The modules on the controller; each plan fails with its name."""

    def here(self, name: str, _options: Any) -> dict[str, Any]:
        return {"failed": True, "msg": name}


@pytest.mark.parametrize(("until", "is_over"), [("1970-01-02T06:00Z", True), ("9999-01-01T06:00Z", False)])
def test_check_refuses_a_window_that_is_over(until: str, is_over: bool) -> None:
    settings = Window(window={**WINDOW, "not_after": until}).settings

    result = trial.show_plan(Plans(), settings)  # type: ignore[arg-type]

    refusal = "Cluster gpu: no window would be opened: its end, 1970-01-0"
    assert result["failed"] and result["msg"].startswith(refusal if is_over else "vmotion_plan"), result
