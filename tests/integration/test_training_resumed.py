"""A run that is stopped and resumed by the playbooks: the report judges the restart, also with a changed checkpoint."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.integration.training import BEGIN_SECONDS, Playbook

STOP_AT, SAVED, END = 13, 10, 20
# Saves every fifth step, and waits at a step until it is stopped; a resumed run goes on after its checkpoint.
TRAIN = f"""
import os, signal, time, zipfile
import dml_records
done, resume = 0, os.environ.get("DML_RESUME", "")
if resume:
    with zipfile.ZipFile(resume) as archive:
        done = int(archive.read("step"))
records = dml_records.start(first_step=done + 1)
for step in range(done + 1, {END} + 1):
    time.sleep(0.05)
    records.step(images=1, loss=records.rank + 3.0 / step)
    if records.rank == 0 and step % 5 == 0:
        with records.phase("checkpoint"):
            with zipfile.ZipFile("outputs/.written", "w") as archive:
                archive.writestr("step", str(step))
            os.replace("outputs/.written", f"outputs/step{{step}}.pt")
    if step == {STOP_AT} and not resume:
        signal.pause()
"""


def steps_of(results: Path) -> dict[int, int]:
    """Return the last step of each rank that the controller has read."""
    found: dict[int, int] = {}
    for path in results.glob("watch-*/records.jsonl"):
        for line in path.read_text().split("\n")[:-1]:
            record = json.loads(line)
            found[record["rank"]] = max(found.get(record["rank"], 0), record["step"])
    return found


def stop_at(playbook: Playbook, controller: subprocess.Popen[bytes], name: str, step: int) -> None:
    """Stop a run with its playbook as soon as each rank made a step."""
    deadline = time.monotonic() + BEGIN_SECONDS
    while sorted(steps_of(playbook.folder / "results" / name).values()) != [step] * 4:
        assert controller.poll() is None and time.monotonic() < deadline
        time.sleep(0.2)
    stopped = playbook.run(playbook="stop", ansible_become=False, training_name=name)
    assert stopped.returncode == 0, stopped.stdout
    assert controller.wait(timeout=BEGIN_SECONDS) != 0, "the command that follows the run reports the stop"


def resume(playbook: Playbook, name: str) -> None:
    command = playbook.command(training_python=sys.executable, training_name=name, training_resume="one")
    # A command on the command line would be another program than that of the earlier run.
    given = {key: value for key, value in json.loads(command[-1]).items() if key != "training_command"}
    ran = playbook.ansible.run([*command[:-1], json.dumps(given)], timeout=1200)
    assert ran.returncode == 0, ran.stdout


def judged(playbook: Playbook) -> dict[str, dict[str, Any]]:
    """Return the verdicts of the report by the names of the runs."""
    folders = {"report_results": str(playbook.folder / "results"), "report_dir": str(playbook.folder / "report")}
    ran = playbook.run(playbook="report", **folders)
    assert ran.returncode == 0, ran.stdout
    report = json.loads((playbook.folder / "report" / "training.json").read_text())
    page = (playbook.folder / "report" / "training.html").read_text()
    assert "Restarts of one: resumed" in page and "Loss over the steps" in page
    return {run["name"]: run for run in report["restarts"]}


@pytest.mark.slow
def test_report_judges_whether_a_run_really_resumed(tmp_path: Path) -> None:
    playbook, folder = Playbook(tmp_path), tmp_path / "mine"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    nodes = f"{playbook.nodes.here},n2,n3,n4"
    program = {"training_folder": str(folder), "training_command": ["python", "train.py"], "training_nodes": nodes}
    controller = playbook.begin(**program, training_python=sys.executable, training_name="one")
    stop_at(playbook, controller, "one", STOP_AT)

    resume(playbook, "two")
    checkpoint = tmp_path / "results" / "one" / "outputs" / f"step{SAVED}.pt"
    with zipfile.ZipFile(checkpoint, "w") as archive:
        archive.writestr("step", str(SAVED))
        archive.writestr("weights", "of another program")
    resume(playbook, "three")

    found = judged(playbook)
    two, three = found["two"], found["three"]
    assert two["verdict"] == "resumed", two
    restart = two["restarts"][0]
    assert (restart["checkpoint_step"], restart["last_step"], restart["first_step"]) == (SAVED, STOP_AT, SAVED + 1)
    assert restart["losses"].startswith("equal within 0.001: 12 losses") and two["cost"]["repeated_steps"] == 3
    assert three["verdict"] == "broken" and [breach["kind"] for breach in three["breaches"]] == ["checkpoint"], three
    assert f"step{SAVED}.pt was changed after the end of one" in three["breaches"][0]["detail"]
