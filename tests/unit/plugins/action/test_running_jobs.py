# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The job around which hosts are changed: a running one, or that of a window which a killed controller left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.errors import CollectionError
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
