"""The watch of the records of a run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from plugins.module_utils.training.runs.any_job import Launched
from plugins.module_utils.training.runs.run_watch import RunWatch
from plugins.module_utils.watch import watcher
from tests.fakes.training_world import TrainingWorld

MONTH = 30 * 86400.0


@pytest.mark.parametrize(("command", "is_long"), [(["python", "train.py"], True), ([], False)])
def test_watch_outlasts_long_runs(command: list[str], is_long: bool) -> None:
    """A script may report no steps, so that it is silent until its end."""
    given: list[Mapping[str, Any]] = []

    class Watched(TrainingWorld):
        def watch(self, options: Mapping[str, Any]) -> dict[str, Any]:
            given.append(options)
            return super().watch(options)

    world = Watched(command=command)
    launched: Launched = {"launcher": "w1", "kubernetes": {}, "watched": []}

    RunWatch(world, world.run(), launched, "").start()

    of_links = ("nodes", "folder", "view")
    options = watcher.watch_options(**{key: value for key, value in given[0].items() if key not in of_links})
    state = watcher.WatchState(last=time.monotonic() - (MONTH if is_long else 0.0))
    assert watcher._reason(options, state, time.monotonic() - MONTH) == ""
