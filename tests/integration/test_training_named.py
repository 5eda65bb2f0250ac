"""A run is followed by its name alone, whatever the inventory has and whoever else trains; its records are counted."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.simulator import ROOT
from tests.integration.training import Playbook

# The other run counts as one of others.
OURS = {"continued_runs": "(?!busy-8$)"}
# As the inventory of the lab: another program, with its number of steps.
OF_INVENTORY = {"training_options": ["--steps", "3"], "training_steps": 3, "training_command": ["python", "other.py"]}
TRAIN = """
import os, sys, time
import dml_records
records = dml_records.start()
while not os.path.exists(sys.argv[1]):
    time.sleep(0.1)
    records.step(images=8, loss=1.0)
print("the last line")
"""


def with_variables(playbook: Playbook, variables: dict[str, Any]) -> None:
    inventory = yaml.safe_load(playbook.inventory.read_text())
    inventory["workers"]["vars"] = variables
    playbook.inventory.write_text(yaml.safe_dump(inventory, sort_keys=False))


def followed_by_name(playbook: Playbook, name: str, end: Path, **variables: Any) -> list[tuple[float, str]]:
    """Follow a run from another controller, end it when its pace is shown, and return the lines with their times."""
    command = playbook.command(training_name=name, **variables)
    given = {key: value for key, value in json.loads(command[-1]).items() if key != "training_command"}
    lines = []
    with subprocess.Popen(
        [*command[:-1], json.dumps(given)],
        cwd=ROOT,
        env=playbook.ansible.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout
        for line in running.stdout:
            lines.append((time.time(), line))
            if "training: step" in line:
                end.touch()
    assert running.returncode == 0, "".join(line for _at, line in lines)
    return lines


def program_in(folder: Path, end: Path) -> dict[str, Any]:
    """Write the program, which trains until ``end`` exists, and return its options."""
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    command = f"python train.py {end}"
    return {"training_folder": str(folder), "training_command": command, "training_python": sys.executable}


def least_steps(run_dir: Path) -> int:
    """Return the number of steps that each rank has recorded."""
    return min(len((run_dir / f"rank{rank}.jsonl").read_text().splitlines()) for rank in range(4))


@pytest.mark.slow
def test_follows_a_run_by_name_and_counts_records(tmp_path: Path) -> None:
    playbook = Playbook(tmp_path)
    with_variables(playbook, OF_INVENTORY)
    program = program_in(tmp_path / "mine", tmp_path / "end")
    started = playbook.run(**program, training_name="one-8", training_follow=False)
    assert started.returncode == 0, started.stdout
    beside = playbook.run(100000, 0.1, training_name="busy-8", training_follow=False, training_share_nodes=True)
    assert beside.returncode == 0, beside.stdout
    playbook.nodes.run_dir = tmp_path / "runs" / "busy-8"
    results = tmp_path / "other"

    try:
        lines = followed_by_name(
            playbook, "one-8", tmp_path / "end", training_results=str(results), training_show="both", **OURS
        )
    finally:
        playbook.nodes.stop()

    text = "".join(line for _at, line in lines)
    assert " of 3" not in text and "RETRYING" not in text, text
    assert re.search(r"rank \d: the last line", text), text
    steps = least_steps(tmp_path / "runs" / "one-8")
    manifest = json.loads((results / "one-8" / "manifest.json").read_text())
    result = json.loads((results / "one-8.json").read_text())
    assert steps > 3 and (manifest["end"]["steps"], result["steps"], manifest["steps"]) == (steps, steps, 0)
    ended = json.loads((tmp_path / "runs" / "one-8" / "end.json").read_text())["ended"]
    noticed = next(at for at, line in lines if f"step {steps}," in line and at > ended)
    # The machine of the tests may be busy: on a free one it takes less than 2 s.
    assert noticed - ended < 8.0, text
