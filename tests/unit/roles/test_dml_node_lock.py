"""dml_node_lock.py with real processes: one run at a time on a node, and no lock outlives its run."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from roles.training.files import dml_node_lock

PROGRAM = Path(dml_node_lock.__file__)
SLEEP = [sys.executable, "-c", "import time; print('runs', flush=True); time.sleep(600)"]


def rank(folder: Path, name: str, *command: str, local: int = 0) -> subprocess.Popen[str]:
    marks = {"DML_RECORDS": f"/runs/{name}", "DML_RUN_BY": "anna@desk", "OMPI_COMM_WORLD_LOCAL_RANK": str(local)}
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), str(folder), *(command or SLEEP)],
        env={**os.environ, **marks},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def runs(process: Any) -> bool:
    return bool(process.stdout.readline() == "runs\n")


def end(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        process.kill()
        process.communicate()


def test_second_run_names_the_holder_of_the_lock(tmp_path: Path) -> None:
    first, beside = rank(tmp_path, "one"), rank(tmp_path, "one", local=1)
    try:
        assert runs(first) and runs(beside), "the ranks of one run share its node"
        second = rank(tmp_path, "two")
        _output, errors = second.communicate()
        assert second.returncode == dml_node_lock.BUSY
        ways = "-e training_wait=SECONDS waits for its end, and dml.vsphere.stop -e training_name=one ends it"
        assert errors == f"NodeBusyError: {socket.gethostname()} trains one of anna@desk: {ways}\n"
    finally:
        end(first, beside)
    third = rank(tmp_path, "two")
    try:
        assert runs(third)
    finally:
        end(third)


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    process = rank(tmp_path, "one", "no-such-program")
    assert "FileNotFoundError: [Errno 2] No such file or directory" in process.communicate()[1]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    name = socket.gethostname().partition(".")[0]
    (tmp_path / f"node-{name}.lock").symlink_to(tmp_path / "elsewhere")
    assert rank(tmp_path, "one").wait() != 0
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("about", [None, [], {"name": 7, "asked_by": "\x1b["}, {}])
def test_a_damaged_file_still_gives_a_sentence(about: Any) -> None:
    assert "w1 trains " in dml_node_lock.sentence("w1", about)
    assert "\x1b" not in dml_node_lock.sentence("w1", about)
