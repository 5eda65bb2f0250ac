"""The playbooks of training killed as by kill -9: the next command goes on, and starts no job twice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.killing import kill_all, wait_for
from tests.integration.training import Playbook

pytestmark = pytest.mark.slow
LONG = 600.0
# The first attempt writes a checkpoint and waits for a file, then it is ended as by a kernel without memory. The second
# one makes steps for some seconds. Each notes its start.
TRAIN = """
import os, signal, sys, time, zipfile
import dml_records
records = dml_records.start()
folder, resume = sys.argv[1], os.environ.get("DML_RESUME", "")
if records.rank == 0:
    with open(f"{folder}/starts", "a") as starts:
        starts.write(os.environ["DML_RECORDS"].rsplit("/", 1)[1] + "\\n")
for number in range(60 if resume else 1):
    time.sleep(0.1)
    records.step(images=1, loss=1.0)
if resume:
    raise SystemExit(0)
if records.rank == 0:
    with zipfile.ZipFile("outputs/epoch1.pt", "w") as archive:
        archive.writestr("weights", "epoch 1")
    while not os.path.exists(f"{folder}/go"):
        time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGKILL)
signal.pause()
"""


class Run:
    """A run with three attempts, of which the first one fails with its machine."""

    def __init__(self, folder: Path) -> None:
        self.playbook, self.folder = Playbook(folder), folder
        (folder / "mine").mkdir()
        (folder / "mine" / "train.py").write_text(TRAIN)
        self.program = {
            "training_folder": str(folder / "mine"),
            "training_command": ["python", "train.py", str(folder)],
        }

    def begin(self, playbook: str = "train", **options: Any) -> subprocess.Popen[str]:
        """Begin a playbook; without a program, the name alone says what runs."""
        given = {"training_python": sys.executable, "training_name": "one", "training_attempts": 3}
        *command, variables = self.playbook.command(playbook=playbook, **given)
        others = {key: value for key, value in json.loads(variables).items() if key != "training_command"}
        running: subprocess.Popen[str] = self.playbook.ansible.begin([*command, json.dumps({**others, **options})])
        return running

    def manifest(self, name: str) -> dict[str, Any]:
        path = self.folder / "results" / name / "manifest.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def starts(self) -> list[str]:
        return (self.folder / "starts").read_text().split()

    def let_the_first_attempt_fail(self) -> None:
        (self.folder / "go").touch()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def kill_at(running: subprocess.Popen[str], moment: Callable[[], Any]) -> None:
    """Kill the controller with all its processes at a moment."""
    wait_for(lambda: moment() or running.poll() is not None, LONG)
    assert running.poll() is None, running.communicate()[0]
    kill_all(running)


def ended(running: subprocess.Popen[str], run: Run) -> str:
    """Wait for a command that continues the run, and check that each of two attempts ran once."""
    text = " ".join(running.communicate(timeout=LONG)[0].split())
    assert running.returncode == 0, text
    assert run.starts() == ["one", "one-2"]
    assert run.manifest("one")["end"]["state"] == "died" and run.manifest("one-2")["end"]["state"] == "finished"
    assert run.manifest("one-2")["resumed_from"] == "one"
    assert run.playbook.result("one-2")["job"]["state"] == "finished"
    return text


def test_run_continues_after_a_kill_at_job_start(run: Run) -> None:
    """The manifest may not be written yet: the same command finds the job."""
    kill_at(run.begin(**run.program), lambda: run.playbook.run_file("one"))

    running = run.begin(**run.program)
    wait_for(lambda: run.manifest("one") or running.poll() is not None, LONG)
    run.let_the_first_attempt_fail()

    assert "Attempt 2 of 3" in ended(running, run)


def test_next_command_finishes_a_killed_stop(run: Run) -> None:
    """The next command finds no job any more, and brings back what the former did not."""
    running = run.begin(training_follow=False, **run.program)
    assert running.wait(LONG) == 0, running.communicate()[0]
    wait_for((run.folder / "runs" / "one" / "work" / "outputs" / "epoch1.pt").exists)
    kill_at(run.begin("stop"), lambda: run.manifest("one").get("end"))

    again = run.begin("stop")
    text = " ".join(again.communicate(timeout=LONG)[0].split())

    end = run.manifest("one")["end"]
    assert end["state"] == "stopped" and [output["path"] for output in end["outputs"]] == ["epoch1.pt"], text
    assert (run.folder / "results" / "one" / "outputs" / "epoch1.pt").exists()
    assert run.starts() == ["one"]
