"""An ordinary folder of PyTorch, unchanged, trains on two workers by one command, and goes on while they move."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.ansible import Outcome
from tests.integration.killing import kill_all, wait_for
from tests.lab.conftest import prepared_pair
from tests.lab.images import RUNS, Pair

pytestmark = pytest.mark.slow
STUN = 5.0
LINES = 100_000
TRAIN = """
import argparse
import csv
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

import mylib
from tqdm import tqdm

options = argparse.ArgumentParser()
options.add_argument("--epochs", type=int, default=2)
options.add_argument("--pace", type=float, default=0.05)
options.add_argument("--lines", type=int, default=0)
options.add_argument("--fail-on", type=int, default=-1)
options.add_argument("--resume", default="")
options = options.parse_args()
dist.init_process_group("gloo")
torch.manual_seed(3)
model = DDP(mylib.network())
optimizer = torch.optim.SGD(model.parameters(), 0.05)
first = 0
if options.resume:
    saved = torch.load(options.resume)
    model.module.load_state_dict(saved["model"])
    first = saved["epoch"] + 1
for number in range(options.lines):
    print("line", number)
with open("data/train.csv", newline="") as file:
    rows = [[float(cell) for cell in row] for row in csv.reader(file)]
rows = torch.tensor(rows[dist.get_rank() :: dist.get_world_size()])
os.makedirs("outputs", exist_ok=True)
for epoch in range(first, first + options.epochs):
    for batch in tqdm(rows.split(8), disable=dist.get_rank() > 0):
        time.sleep(options.pace)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(batch[:, :3]), batch[:, 3:])
        loss.backward()
        optimizer.step()
    if dist.get_rank() == options.fail_on:
        raise ValueError(f"the batch of epoch {epoch} is empty")
    if dist.get_rank() == 0:
        torch.save({"model": model.module.state_dict(), "epoch": epoch}, f"outputs/epoch{epoch}.pt")
print("trained from epoch", first, "to", epoch)
dist.destroy_process_group()
"""
FAILING = next(number for number, line in enumerate(TRAIN.splitlines(), 1) if "raise ValueError" in line)
MYLIB = """
import torch


def network():
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
"""
ROWS, BATCH, RANKS = 320, 8, 2
STEPS_OF_EPOCH = ROWS // RANKS // BATCH


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two workers with the stack, whose packages lie where an earlier run has left them."""
    with prepared_pair(tmp_path_factory.mktemp("own"), "own") as made:
        yield made


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a script, a package, data and requirements."""
    folder = tmp_path_factory.mktemp("mine")
    for name, text in {"train.py": TRAIN, "mylib/__init__.py": MYLIB, "requirements.txt": "tqdm\n"}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "data").mkdir()
    numbers = [(number * 0.37 % 1, number * 0.11 % 1, number * 0.73 % 1) for number in range(ROWS)]
    rows = (f"{x},{y},{z},{x - y + z / 2}" for x, y, z in numbers)
    (folder / "data" / "train.csv").write_text("\n".join(rows) + "\n")
    return folder


def train(pair: Pair, folder: Path, name: str, words: str = "", **more: Any) -> Outcome:
    """Run the one command of a user."""
    variables = {"training_folder": str(folder), "training_command": f"python train.py {words}", "training_name": name}
    return pair.play("train", **{**variables, "training_warmup": 3, **more})


def text_of(outcome: Outcome) -> str:
    return " ".join(outcome.out.replace("\\n", " ").split())


def result(pair: Pair, name: str) -> dict[str, Any]:
    return dict(json.loads((pair.results / f"{name}.json").read_text()))


def outputs(pair: Pair, name: str) -> list[str]:
    return sorted(path.name for path in (pair.results / name / "outputs").iterdir())


def test_one_command_trains_and_brings_the_outputs_back(pair: Pair, mine: Path) -> None:
    done = train(pair, mine, "first")
    assert done.rc == 0, done.out[-4000:]
    assert outputs(pair, "first") == ["epoch0.pt", "epoch1.pt"]
    steps = [one for one in pair.records("first") if one["phase"] == "train" and "mark" not in one]
    assert sorted({one["rank"] for one in steps}) == [0, 1]
    assert result(pair, "first")["steps"] == 2 * STEPS_OF_EPOCH, "each step of the optimizer of the unchanged script"
    assert all(one["loss"] is None for one in steps)
    began = time.monotonic()
    again = train(pair, mine, "second")
    assert again.rc == 0, again.out[-4000:]
    shipped = again.out.partition("Copy the folder of the training program")[2].partition("TASK")[0]
    print(f"the second run took {time.monotonic() - began:.0f} s")
    assert "sent: true" not in shipped


def test_reports_an_exception_with_rank_and_line(pair: Pair, mine: Path) -> None:
    done = train(pair, mine, "fails", "--epochs 3 --fail-on 1")
    assert done.rc != 0
    text = text_of(done)
    assert "rank 1 on worker02" in text and "ValueError: the batch of epoch 0 is empty" in text, text[-3000:]
    assert f"line {FAILING}" in text, text[-3000:]


def test_follows_many_lines_and_a_long_silence(pair: Pair, mine: Path) -> None:
    done = train(pair, mine, "talks", f"--lines {LINES} --pace 0.01")
    log = pair.place.inside(1, f"tail -40 {RUNS}/talks/output.log", check=False).stdout
    assert done.rc == 0, f"{done.out[-1500:]} {log}"
    (mine / "waits.py").write_text("import time\nfor _ in range(40):\n    time.sleep(1)\n    sum(range(100000))\n")
    waits = train(pair, mine, "waits", training_command="python waits.py", training_silence=15)
    assert waits.rc == 0, waits.out[-4000:]


def test_follows_a_run_again_after_controller_is_killed(pair: Pair, mine: Path) -> None:
    variables = {"training_folder": str(mine), "training_command": "python train.py --epochs 10 --pace 0.1"}
    given = json.dumps({**variables, "training_name": "long", "training_warmup": 3})
    words = ["playbooks/train.yml", "-i", str(pair.inventory), "-e", given]
    running = pair.place.ansible.start(*words)
    wait_for(lambda: list(pair.results.glob("long/watch-*/records.jsonl")) or running.poll() is not None, 600)
    assert running.poll() is None, running.communicate()[0][-4000:]
    kill_all(running)
    busy = train(pair, mine, "other")
    assert busy.rc != 0 and "long" in text_of(busy) and "worker01" in text_of(busy), text_of(busy)[-3000:]
    followed = pair.play("train", training_name="long")
    assert followed.rc == 0, followed.out[-4000:]
    assert result(pair, "long")["steps"] == 10 * STEPS_OF_EPOCH
    assert len(outputs(pair, "long")) == 10


def test_all_ranks_resume_from_the_newest_checkpoint(pair: Pair, mine: Path) -> None:
    reported = {"training_command": "python train.py --epochs 1 --resume {resume}", "training_resume": "first"}
    done = train(pair, mine, "resumed", **reported)
    assert done.rc == 0, done.out[-4000:]
    # mpirun marks the output of each rank, also in the middle of a line.
    log = re.sub(r"\[\d+,\d+\]<\w+>:", "", pair.place.inside(1, f"sudo cat {RUNS}/resumed/output.log").stdout)
    assert log.count("trained from epoch 2 to 2") == RANKS, log[-2000:]


def test_script_continues_while_both_workers_move(pair: Pair, mine: Path) -> None:
    started = train(pair, mine, "moving", "--epochs 100000 --pace 0.2", training_follow=False)
    assert started.rc == 0, started.out[-4000:]
    verdict = pair.moved(STUN, training_name="moving", vmotion_test_run="moving")
    assert (verdict["verdict"], verdict["moved"]) == ("continuous", "all"), verdict
    assert verdict["unproven"] == ["loss: no rank reported one, so it was not judged"]
    stopped = pair.play("stop", training_name="moving")
    assert stopped.rc == 0, stopped.out[-4000:]
    assert "epoch0.pt" in outputs(pair, "moving")
