# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The jobs on a node."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.training import manifest
from plugins.modules import training_jobs_info

from .test_continuity_verdict import call


def names(**options: Any) -> list[str]:
    return [each["name"] for each in call(training_jobs_info, **options)["jobs"]]


def test_the_jobs_of_this_node_by_their_names(tmp_path: Path) -> None:
    marks = {"DML_RECORDS": str(tmp_path / "nightly-7")}
    with subprocess.Popen(["sleep", "600"], env={**os.environ, **marks}) as started:
        try:
            while "nightly-7" not in names():
                assert started.poll() is None
            assert names(name="nightly-7") == ["nightly-7"]
            assert names(name="nightly") == []
            assert "nightly-7" not in names(ignored="nightly-[0-9]")
            assert "nightly-7" in names(ignored="another")
        finally:
            started.kill()
    assert "ignored is not a regular expression" in call(training_jobs_info, ignored="[")["msg"]
    assert call(training_jobs_info, reach=["ssh", "w1"])["reach"] == ["ssh", "w1"]
    assert call(training_jobs_info)["node"] == os.uname().nodename.lower()
    assert call(training_jobs_info, node="n1.example.com")["node"] == "n1.example.com"


@pytest.mark.parametrize("form", ["link", "fifo", "endless", "large"])
def test_a_manifest_that_the_user_of_the_node_replaced_is_not_read(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "MOST_BYTES", 1000)
    path, secret = tmp_path / "manifest.json", tmp_path / "shadow"
    secret.write_text("root:x")
    path.write_text("{}")
    assert call(training_jobs_info, manifest=str(tmp_path))["manifest"] == "{}"
    path.unlink()
    replace: dict[str, Callable[[], Any]] = {
        "link": lambda: path.symlink_to(secret),
        "fifo": lambda: os.mkfifo(path),
        "endless": lambda: path.symlink_to("/dev/zero"),
        "large": lambda: path.write_text(" " * 1001),
    }
    replace[form]()

    assert call(training_jobs_info, manifest=str(tmp_path))["manifest"] == ""
