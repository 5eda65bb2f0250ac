"""A running job is asked for a checkpoint, stopped and started again; ranks save, ignore the signal, or do not save."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.integration.restarting import restart
from tests.integration.test_training_resumed import steps_of
from tests.integration.training import BEGIN_SECONDS, Playbook

# Runs of other tests on this machine have other names.
NAME = f"one{os.getpid()}"

# Saves every tenth step and at USR1, after which it ends with a code; a resumed run goes on after its checkpoint.
# As with a collective, no rank begins a step before all have made the last one, and all leave after the same step.
TRAIN = """
import os, signal, sys, time, zipfile
import dml_records
assert os.environ["MASTER_ADDR"], "the ranks of PyTorch meet there"
asked = []
answer = sys.argv[1]
if answer == "ignores":
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
else:
    signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
resume = os.environ.get("DML_RESUME", "")
done = 0
if resume:
    with zipfile.ZipFile(resume) as archive:
        done = int(archive.read("step"))
records = dml_records.start(first_step=done + 1)

def number(name):
    try:
        with open(f"../{name}") as file:
            return int(file.read() or 0)
    except FileNotFoundError:
        return 0

def write(name, step):
    with open(f"../{name}", "w") as file:
        file.write(str(step))

def until(name, step):
    while number(name) < step:
        time.sleep(0.02)

def save(step):
    with zipfile.ZipFile("outputs/.written", "w") as archive:
        archive.writestr("step", str(step))
    os.replace("outputs/.written", f"outputs/step{step}.pt")

last = done + 8 if resume else int(sys.argv[2])
for step in range(done + 1, last + 1):
    time.sleep(0.2)
    records.step(images=1, loss=records.rank + 3.0 / step)
    write(f"at{records.rank}", step)
    if records.rank == 0:
        for rank in range(int(os.environ["OMPI_COMM_WORLD_SIZE"])):
            until(f"at{rank}", step)
        is_asked = bool(asked)
        if step == 10 or (answer == "saves" and (is_asked or step % 10 == 0)):
            save(step)
        if is_asked:
            write("last", step)
        write("all", step)
    until("all", step)
    if number("last"):
        sys.exit(0 if answer == "leaves" else 1)
"""


def started_run(playbook: Playbook, answer: str, steps: int = 1000) -> subprocess.Popen[bytes]:
    """Begin a run that its owner follows, and wait for its first checkpoint."""
    folder = playbook.folder / "mine"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    nodes = f"{playbook.nodes.here},n2,n3,n4"
    controller = playbook.begin(
        training_folder=str(folder),
        training_command=["python", "train.py", answer, str(steps)],
        training_nodes=nodes,
        **OPTIONS,
    )
    deadline = time.monotonic() + BEGIN_SECONDS
    while min(steps_of(playbook.folder / "results" / NAME).values(), default=0) < 11:
        assert controller.poll() is None and time.monotonic() < deadline
        time.sleep(0.2)
    return controller


# The jobs of other tests run on this machine too.
OPTIONS: dict[str, Any] = {"training_python": sys.executable, "training_name": NAME, "training_share_nodes": True}


def restarted(playbook: Playbook, **options: Any) -> dict[str, Any]:
    variables = json.loads(playbook.command(**OPTIONS)[-1])
    del variables["training_command"]
    return restart(playbook.ansible, playbook.inventory, {**variables, "ansible_become": False}, **options)


def followed(playbook: Playbook) -> str:
    """Follow the attempt that was started last to its end, as its owner does, and return what is shown."""
    command = playbook.command(**OPTIONS)
    given = {key: value for key, value in json.loads(command[-1]).items() if key != "training_command"}
    ran = playbook.ansible.run([*command[:-1], json.dumps(given)], timeout=600)
    assert ran.returncode == 0, ran.stdout
    return " ".join(ran.stdout.split())


def manifest(playbook: Playbook, name: str) -> dict[str, Any]:
    return dict(json.loads((playbook.folder / "results" / name / "manifest.json").read_text()))


@pytest.mark.slow
def test_run_saves_at_a_signal_and_resumes_exactly_there(tmp_path: Path) -> None:
    playbook = Playbook(tmp_path)
    controller = started_run(playbook, "saves")

    done = restarted(playbook, signal="USR1")

    assert controller.wait(BEGIN_SECONDS) != 0
    assert (done["saved"], done["stopped"]["state"], done["stopped"]["exit_code"]) == (True, "stopped", 1), done
    assert done["stopped"]["why"] == "stopped by the maintenance window of me@here; it ended with exit code 1"
    assert (done["started"]["run"], done["seen"]["newest"]["why"]) == (f"{NAME}-2", "")
    shown = followed(playbook)
    assert f"{NAME}-2: resumed" in shown, shown
    one, two = manifest(playbook, NAME), manifest(playbook, f"{NAME}-2")
    assert (one["end"]["state"], one["end"]["cause"]) == ("stopped", done["stopped"]["why"])
    assert two["restart"]["step"] == done["seen"]["newest"]["step"] and two["end"]["state"] == "finished"


@pytest.mark.slow
def test_run_is_stopped_after_its_next_regular_checkpoint(tmp_path: Path) -> None:
    playbook = Playbook(tmp_path)
    controller = started_run(playbook, "saves")

    done = restarted(playbook)

    assert controller.wait(BEGIN_SECONDS) != 0
    assert (done["saved"], done["stopped"]["why"]) == (True, "stopped by the maintenance window of me@here")
    assert done["seen"]["newest"]["step"] % 10 == 0 and 1 < done["seen"]["interval"] < 10
    assert f"{NAME}-2: resumed" in followed(playbook)


@pytest.mark.slow
def test_run_that_ignores_the_signal_continues_as_before(tmp_path: Path) -> None:
    playbook = Playbook(tmp_path)
    controller = started_run(playbook, "ignores", steps=300)

    done = restarted(playbook, signal="USR1", seconds=1)

    assert "stopped" not in done and done["state"]["state"] == "running", done
    assert controller.wait(BEGIN_SECONDS) == 0, "it finishes as if it had received no signal"
    assert manifest(playbook, NAME)["end"]["state"] == "finished"


@pytest.mark.slow
def test_run_that_exits_with_0_without_saving_is_noticed(tmp_path: Path) -> None:
    playbook = Playbook(tmp_path)
    controller = started_run(playbook, "leaves")

    done = restarted(playbook, signal="USR1")

    assert controller.wait(BEGIN_SECONDS) != 0
    assert (done["saved"], done["stopped"]["exit_code"]) == (False, 0), "the exit code shows nothing"
    assert done["stopped"]["state"] == "stopped" and done["seen"]["newest"]["step"] % 10 == 0
    shown = followed(playbook)
    assert f"{NAME}-2: resumed" in shown and "repeated" in shown, shown
