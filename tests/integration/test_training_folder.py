"""playbooks/train.yml with an ordinary folder of a training program and real mpirun."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.integration.training import Playbook

TRAIN = """
import os, sys, time
import extra
import mylib
import dml_records
records = dml_records.start()
rows = open("data/train.csv").read().split()
assert sys.argv[3] == os.environ["DML_DATA"] and open(sys.argv[3]).read() == "4 5 6"
for number in range(1, int(sys.argv[1]) + 1):
    time.sleep(0.05)
    records.step(images=len(rows), loss=mylib.loss(number))
with open(f"outputs/model{records.rank}", "w") as file:
    file.write(os.getcwd())
sys.exit(int(sys.argv[2]))
"""


def add_requirement(folder: Path) -> None:
    """Add a package in a wheel, and the requirement for it."""
    info = "extra-1.0.dist-info"
    with zipfile.ZipFile(folder / "extra-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("extra.py", "")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: extra\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"extra.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    (folder / "requirements.txt").write_text("--no-index\n./extra-1.0-py3-none-any.whl\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a script, a package and data, as a user has it."""
    made = tmp_path / "mine"
    for name in ("mylib", "data", ".git"):
        (made / name).mkdir(parents=True)
    (made / "mylib" / "__init__.py").write_text("def loss(step):\n    return 1.0 / step\n")
    (made / "data" / "train.csv").write_text("1 2 3")
    (made / ".git" / "config").touch()
    (made / "train.py").write_text(TRAIN)
    add_requirement(made)
    return made


def refusals_and_check_write_nothing(playbook: Playbook, options: dict[str, Any]) -> None:
    check = playbook.ansible.run([*playbook.command(**options, training_name="one"), "--check"], timeout=600)
    assert check.returncode == 0, check.stdout
    refused = playbook.run(**{**options, "training_command": ["python", "tran.py"]}, training_name="one")
    assert refused.returncode != 0
    assert "could not run tran.py: the copied files do not contain it" in " ".join(refused.stdout.split())
    assert not (playbook.folder / "library").exists()
    assert not (playbook.folder / "runs").exists()


@pytest.mark.slow
def test_ordinary_folder_trains_with_one_command(tmp_path: Path, folder: Path) -> None:
    playbook = Playbook(tmp_path)
    command = {"training_command": ["python", "train.py", "40", "0", "{data}"], "training_python": sys.executable}
    (tmp_path / "large.csv").write_text("4 5 6")
    options = {"training_folder": str(folder), "training_data": str(tmp_path / "large.csv"), **command}
    refusals_and_check_write_nothing(playbook, options)
    ran = playbook.run(**options, training_name="one")
    assert ran.returncode == 0, ran.stdout
    result, work = playbook.result("one"), tmp_path / "runs" / "one" / "work"
    assert (result["steps"], result["job"]["state"], result["asked"]["framework"]) == (40, "finished", "")
    assert result["job"]["script_sha256"]
    outputs = sorted((tmp_path / "results" / "one" / "outputs").iterdir())
    assert [(path.name, path.read_text()) for path in outputs] == [(f"model{rank}", str(work)) for rank in range(4)]
    assert not (work / ".git").exists()
    (data,) = (tmp_path / "library" / "data").glob("*/large.csv")
    copied = data.stat()
    again = playbook.run(**{**options, "training_command": "python train.py 2 1 {data}"}, training_name="two")
    assert again.returncode != 0
    assert "ended with exit code 1" in " ".join(again.stdout.split())
    assert (tmp_path / "results" / "two" / "outputs" / "model0").exists(), "outputs come back after a failure"
    library = again.stdout.partition("Copy the training library")[2].partition("TASK")[0]
    assert "changed:" not in library, "nothing is copied again"
    assert data.stat() == copied and copied.st_mode & 0o222 == 0, "the data is read-only, and copied once"
    environments = list((tmp_path / "library" / "environments").glob("*/complete"))
    assert len(environments) == 1, "the second run uses the environment again"
    archives = list((tmp_path / "library" / "code").iterdir())
    assert len(archives) == 2, "one archive of the library and one of the folder"


STOPPED = """
import sys, time
import dml_records
records = dml_records.start()
with open(f"outputs/started{records.rank}", "w") as file:
    file.write("started")
for number in range(100000):
    time.sleep(0.05)
    records.step(images=8, loss=1.0)
"""


@pytest.mark.slow
def test_copies_the_outputs_of_a_stopped_run(tmp_path: Path, folder: Path) -> None:
    playbook = Playbook(tmp_path)
    (folder / "train.py").write_text(STOPPED)
    (folder / "requirements.txt").unlink()
    command = {"training_command": ["python", "train.py"], "training_python": sys.executable}
    started = playbook.run(**command, training_folder=str(folder), training_name="three", training_follow=False)
    assert started.returncode == 0, started.stdout
    playbook.nodes.run_dir = tmp_path / "runs" / "three"
    playbook.nodes.training()
    fetched = playbook.run(playbook="fetch", ansible_become=False, training_name="three", training_fetch="mylib")
    assert fetched.returncode == 0, fetched.stdout
    assert (tmp_path / "results" / "three" / "fetched" / "mylib" / "__init__.py").is_file()
    stopped = playbook.run(playbook="stop", ansible_become=False, training_name="three")
    assert stopped.returncode == 0, stopped.stdout
    copied = (tmp_path / "results" / "three" / "outputs").iterdir()
    assert sorted(path.name for path in copied) == [f"started{rank}" for rank in range(4)]
