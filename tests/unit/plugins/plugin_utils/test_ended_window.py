"""A window that is over: check mode refuses it, and its end fails if the host at hand cannot be returned."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from plugins.plugin_utils import trial, trial_site
from tests.fakes.deaths import Killed, MortalJournal
from tests.unit.simulation.world import WINDOW, Window


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
    world.write_metrics = lambda _facts, is_running: None  # type: ignore[attr-defined]
    world.on = lambda _node, _user, module, options: world.here(module, options)  # type: ignore[attr-defined]
    world.host = "gpu"  # type: ignore[attr-defined]
    journal: Any = Journal(world, {trial.START: world.settings, **world.values})
    request = trial.Request({**world.settings, "cluster": cluster}, "/tests", ending=ending)
    return trial._carried_out(nothing, journal, request, trial.WINDOW._replace(site=lambda *_arguments: world))


@pytest.mark.parametrize("failure", ["", "esx3: could not return it: the server said no."])
def test_ending_fails_if_the_host_stays_out(monkeypatch: pytest.MonkeyPatch, failure: str) -> None:
    world = killed_in_mid_host()
    world.fails = {"in_service": failure} if failure else {}

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


def test_a_collector_reads_whether_the_window_runs(tmp_path: Path) -> None:
    collector, modules = tmp_path / "collector", mock.Mock()
    modules.load.return_value, modules.version = {}, "1.0"
    site, facts = trial_site.TrialSite(modules, "gpu", tmp_path, str(collector)), Window().carry_out()
    site.write_facts(facts)
    file = collector / f"dml_{tmp_path.name}.prom"
    labels = f'{{cluster="gpu",kind="window",test="{tmp_path.name}"}}'
    assert f"dml_vmotion_test_running{labels} 1\n" in file.read_text()
    site.write_metrics(facts, is_running=False)
    assert f"dml_vmotion_test_running{labels} 0\n" in file.read_text() and file.stat().st_mode & 0o777 == 0o644
    facts.host_changes.pop()
    facts.at_hand, facts.settled = "esx2", ["esx1"]
    site.write_metrics(facts, is_running=True)
    on = re.findall(r'host="(\w+)",state="(\w+)"} 1', file.read_text())
    assert on == [("esx1", "settled"), ("esx2", "changing"), ("esx3", "changed")]
    # A full disk, or a file in place of the folder, does not end the window.
    trial_site.TrialSite(modules, "gpu", tmp_path, str(file)).write_facts(facts)


class Plans:
    """The modules on the controller; each plan fails with its name."""

    version, environment, host = "1.0", dict[str, str](), "gpu"

    def load(self, _path: str) -> dict[str, Any]:
        return {}

    def here(self, name: str, _options: Any) -> dict[str, Any]:
        return {"failed": True, "msg": name}


@pytest.mark.parametrize(("until", "is_over"), [("1970-01-02T06:00Z", True), ("9999-01-01T06:00Z", False)])
def test_check_refuses_a_window_that_is_over(until: str, is_over: bool, tmp_path: Path) -> None:
    request = trial.Request(Window(window={**WINDOW, "not_after": until}).settings, str(tmp_path))

    result = trial.show_plan(Plans(), request, trial.WINDOW)  # type: ignore[arg-type]

    refusal = "Cluster gpu: no window would be opened: its end, 1970-01-0"
    assert result["failed"] and result["msg"].startswith(refusal if is_over else "vmotion_plan"), result
