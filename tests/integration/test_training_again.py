"""playbooks/train.yml with a run that died: resumed from its newest complete checkpoint on all ranks, and repeated."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.training import Playbook

# Rank 0 writes two checkpoints, the second one torn, and fails; a resumed run needs its checkpoint on every rank.
TRAIN = """
import os, sys, zipfile
import dml_records
records = dml_records.start()
records.step(images=1, loss=1.0)
resume = os.environ.get("DML_RESUME", "")
if resume:
    assert sys.argv[1:] == ["--from", resume], sys.argv
    with zipfile.ZipFile(resume) as archive, open(f"outputs/got{records.rank}", "wb") as file:
        file.write(archive.read("weights"))
    sys.exit(0)
if records.rank == 0:
    for number in (1, 2):
        with zipfile.ZipFile(f"outputs/epoch{number}.pt", "w") as archive:
            archive.writestr("weights", f"epoch {number}")
        os.utime(f"outputs/epoch{number}.pt", (number, number))
    os.truncate("outputs/epoch2.pt", 20)
    os.utime("outputs/epoch2.pt", (2, 2))
raise ValueError("the loss went away")
"""


# The first attempt writes a checkpoint and is killed, as by a kernel without memory.
KILLED = """
import os, signal, sys, zipfile
import dml_records
records = dml_records.start()
records.step(images=1, loss=1.0)
resume = os.environ.get("DML_RESUME", "")
if resume:
    with zipfile.ZipFile(resume) as archive, open(f"outputs/got{records.rank}", "wb") as file:
        file.write(archive.read("weights"))
    raise SystemExit(0) if sys.argv[1] == "well" else ValueError("the loss went away")
if records.rank == 0:
    with zipfile.ZipFile("outputs/epoch1.pt", "w") as archive:
        archive.writestr("weights", "epoch 1")
    os.kill(os.getpid(), signal.SIGKILL)
signal.pause()
"""


def manifest(playbook: Playbook, name: str) -> dict[str, Any]:
    return dict(json.loads((playbook.folder / "results" / name / "manifest.json").read_text()))


def outcome(playbook: Playbook, name: str, **options: Any) -> tuple[int, str]:
    command = playbook.command(training_python=sys.executable, training_name=name)
    # Without a program, the option would have precedence over that of the earlier run.
    given = {key: value for key, value in json.loads(command[-1]).items() if key != "training_command"}
    ran = playbook.ansible.run([*command[:-1], json.dumps({**given, **options})], timeout=1200)
    return ran.returncode, " ".join(ran.stdout.split())


def own_program_in_inventory(playbook: Playbook) -> None:
    """Give the inventory options of a benchmark, as that of the lab has them."""
    inventory = yaml.safe_load(playbook.inventory.read_text())
    inventory["workers"]["vars"] = {"training_options": ["--steps", "40"]}
    playbook.inventory.write_text(yaml.safe_dump(inventory, sort_keys=False))


def forget(playbook: Playbook, folder: Path, sha256: str) -> None:
    """Remove the program from where the user and the nodes have it."""
    shutil.rmtree(folder)
    (playbook.folder / "library" / "code" / f"{sha256}.tar").unlink()


@pytest.mark.slow
def test_resumes_and_repeats_a_dead_run(tmp_path: Path) -> None:
    playbook, folder = Playbook(tmp_path), tmp_path / "mine"
    own_program_in_inventory(playbook)
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    command = ["python", "train.py", "--from", "{resume}"]
    nodes = f"{playbook.nodes.here},n2,n3,n4"
    code, text = outcome(playbook, "one", training_folder=str(folder), training_command=command, training_nodes=nodes)
    assert code != 0 and "ValueError: the loss went away" in text, text
    output = tmp_path / "results" / "one" / "output.log"
    assert f"The end of its output is in {output}." in text and "the loss went away" in output.read_text()
    code, text = outcome(playbook, "two", training_resume="one")
    assert code == 0, text
    assert "the checkpoint epoch2.pt is torn" in text
    outputs = tmp_path / "results" / "two" / "outputs"
    assert {(outputs / f"got{rank}").read_text() for rank in range(4)} == {"epoch 1"}
    one, two = manifest(playbook, "one"), manifest(playbook, "two")
    assert (two["resumed_from"], two["code"], two["command"]) == ("one", one["code"], command)
    assert two["checkpoint"].endswith("/runs/two/work/outputs/epoch1.pt")
    code, text = outcome(playbook, "three", training_repeat="one", training_stack="another")
    assert code != 0 and "one cannot be repeated on these nodes: stack of its manifest differ today" in text, text
    forget(playbook, folder, one["code"]["sha256"])
    code, text = outcome(playbook, "four", training_repeat="one")
    assert code != 0 and "ValueError: the loss went away" in text, "it runs the same code, from the kept archive"
    four = manifest(playbook, "four")
    assert (four["repeats"], four["code"], four["end"]["state"]) == ("one", one["code"], "died")


@pytest.mark.slow
@pytest.mark.parametrize("second", ["well", "badly"])
def test_machine_failure_starts_another_attempt_from_the_checkpoint(tmp_path: Path, second: str) -> None:
    """Only a failure of the machine starts another attempt: an error of the program ends the run."""
    playbook, folder = Playbook(tmp_path), tmp_path / "mine"
    folder.mkdir()
    (folder / "train.py").write_text(KILLED)
    options = {"training_folder": str(folder), "training_command": ["python", "train.py", second]}
    code, text = outcome(playbook, "one", training_attempts=3, **options)
    assert (code == 0) is (second == "well"), text
    assert (
        "Attempt 2 of 3: the training run one failed with a machine: rank 0 on" in text and "Attempt 3" not in text
    ), text
    outputs = tmp_path / "results" / "one-2" / "outputs"
    assert {(outputs / f"got{rank}").read_text() for rank in range(4)} == {"epoch 1"}
    first, then = manifest(playbook, "one"), manifest(playbook, "one-2")
    assert first["end"]["state"] == "died" and then["resumed_from"] == "one"
    assert then["end"]["state"] == ("finished" if second == "well" else "died")
    assert second == "well" or "ValueError: the loss went away" in text
