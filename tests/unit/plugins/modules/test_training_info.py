"""The jobs on a node, and the job and the figures in a run directory as training_job leaves it."""

from __future__ import annotations

import json
import os
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.watch import jobs_program
from plugins.modules import training_info

from .test_continuity_verdict import call


def names(**options: Any) -> list[str]:
    return [each["name"] for each in call(training_info, **options)["jobs"]]


def test_lists_the_jobs_of_this_node_by_name(tmp_path: Path) -> None:
    # Another job of this machine may be called nightly.
    first = f"nightly-{uuid.uuid4().hex}"
    name = f"{first}-7"
    marks = {"DML_RECORDS": str(tmp_path / name)}
    with subprocess.Popen(["sleep", "600"], env={**os.environ, **marks}) as started:
        try:
            while name not in names():
                assert started.poll() is None
            assert names(name=name) == [name]
            assert names(name=first) == []
            assert name not in names(ignored=f"{first}-[0-9]")
            assert name in names(ignored="another")
        finally:
            started.kill()
    assert "ignored is not a regular expression" in call(training_info, ignored="[")["msg"]
    assert "reach" not in call(training_info), "how a node is reached comes from the inventory only"
    assert call(training_info)["node"] == os.uname().nodename.lower()
    assert call(training_info, node="n1.example.com")["node"] == "n1.example.com"


def run_dir(folder: Path) -> Path:
    gone = {"host": "w1", "pid": 1, "start": -1, "boot_id": "another boot"}
    desired = {"id": "x", "command": ["train"], "hosts": [], "nodes_of_ranks": ["w1", "w2"], "mpirun_command": []}
    run = {"launcher": gone, "supervisor": gone, "job": "1", "started": time.time()}
    end = {"swept": True, "stopped": False, "exit_code": 0, "ended": time.time(), "left": {}}
    for name, content in (("wish", desired), ("run", run), ("end", end)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    (folder / "output.log").write_text("w1:1:1 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\n\xff\n")
    return folder


def test_run_directory_has_the_job_and_its_figures(tmp_path: Path) -> None:
    read = call(training_info, gather=["job", "printed"], run_dir=str(run_dir(tmp_path)))

    assert (read["job"]["state"], "jobs" in read, read["changed"]) == ("finished", False, False)
    assert read["printed"] == {"total": None, "ways": ["NET/Socket"], "has_nccl": True}


def test_a_directory_without_a_job_has_no_figures(tmp_path: Path) -> None:
    failed = call(training_info, gather=["printed"], run_dir=str(tmp_path))

    assert failed["msg"].startswith(f"{tmp_path}: could not read the output of the job: ")


def test_job_state_requires_the_run_directory() -> None:
    failed = call(training_info, gather=["job"])

    assert failed["msg"] == (
        "the node: could not read a job: the option run_dir is missing; name the run directory of the job"
    )


@pytest.mark.parametrize("form", ["link", "fifo", "endless", "large"])
def test_refuses_a_manifest_replaced_on_the_node(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_program, "MOST_OF_A_MANIFEST", 1000)
    path, secret = tmp_path / "manifest.json", tmp_path / "shadow"
    secret.write_text("root:x")
    path.write_text("{}")
    assert call(training_info, manifest=str(tmp_path))["manifest"] == "{}"
    path.unlink()
    replace: dict[str, Callable[[], Any]] = {
        "link": lambda: path.symlink_to(secret),
        "fifo": lambda: os.mkfifo(path),
        "endless": lambda: path.symlink_to("/dev/zero"),
        "large": lambda: path.write_text(" " * 1001),
    }
    replace[form]()

    assert call(training_info, manifest=str(tmp_path))["manifest"] == ""


def test_checkpoints_need_only_their_folder(tmp_path: Path) -> None:
    (tmp_path / "step5.keras").write_bytes(b"torn")

    read = call(training_info, gather=["checkpoints"], checkpoints=str(tmp_path))["checkpoints"]

    (torn,) = read["seen"]
    assert (torn["path"], torn["step"], torn["why"]) == (
        "step5.keras",
        5,
        "its archive has no directory, so it was cut off",
    )
    assert read["bytes"] == 4
    assert call(training_info, gather=["checkpoints"], checkpoints=str(tmp_path / "none"))["checkpoints"]["seen"] == []
    assert "the option checkpoints is missing" in call(training_info, gather=["checkpoints"])["msg"]
