# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The job around which hosts are changed: a running one, or that of a window which a killed controller left."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.errors import CollectionError
from plugins.module_utils.vmotion.folder import observer_clock
from plugins.plugin_utils.running_jobs import ARGUMENTS, JobSearch
from tests.fakes.training_world import TrainingWorld

SETTINGS: dict[str, Any] = {
    "cluster": "gpu",
    "launcher": "w1",
    "user": "",
    "run_dir": "/runs/one",
    "records": "/runs/one",
    "nodes": [],
    "kubernetes": {},
    "window": {"hosts": ["esx1"]},
}

RUNNING = {"title": "run one", "run_dir": "/runs/one", "pid": 7}


def search(folder: Path, *, settings: dict[str, Any]) -> JobSearch:
    """Return a search for the job of a cluster with one idle worker and an unfinished run in a folder."""
    journal = folder / "gpu-one" / "journal.jsonl"
    journal.parent.mkdir(mode=0o700)
    journal.write_text(json.dumps({"at": 1.0, "key": "start", "value": settings}) + "\n")
    journal.chmod(0o600)
    given = {name: option.get("default") for name, option in ARGUMENTS.items()}
    given = {**given, "cluster": "gpu", "under_training": True, "windows": str(folder)}
    hosts = {"w1": {"training_started": {"why": "none runs", "asked": {"w1": {"jobs": []}}}}}
    variables = {"hostvars": hosts, "groups": {"workers": ["w1"]}, "inventory_hostname": "gpu"}
    return JobSearch(TrainingWorld(), given, variables)


def test_an_unfinished_window_needs_no_running_job(tmp_path: Path) -> None:
    job = search(tmp_path, settings=SETTINGS).job()

    assert (job["run_dir"], job["launcher"]) == ("/runs/one", "w1")


def test_an_unfinished_run_of_another_kind_does_not_replace_the_job(tmp_path: Path) -> None:
    with pytest.raises(CollectionError, match="no job was found, because none runs"):
        search(tmp_path, settings={**SETTINGS, "window": {}}).job()


class SetClock(TrainingWorld):
    """A controller whose clock is set forward by an hour at the first pause; the job ends after two questions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.monkeypatch, self.questions = monkeypatch, 0

    def now(self) -> float:
        return observer_clock.now()

    def pause(self) -> None:
        later = time.time() + 3600.0
        self.monkeypatch.setattr(observer_clock.time, "time", lambda: later)

    def on_each(self, _module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        self.questions += 1
        return {name: {"jobs": [RUNNING] if self.questions <= 2 else []} for name in options}


def test_a_clock_that_is_set_does_not_end_the_wait_for_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = search(tmp_path, settings=SETTINGS)
    waiting._calls, waiting._given["wait"] = SetClock(monkeypatch), 60

    assert waiting._after_waiting({"w1": {"jobs": [RUNNING]}}) == ""
