"""Two projects as people have them, on two workers: Hugging Face's Trainer, and a package with a configuration."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.ansible import Outcome
from tests.lab.conftest import prepared_pair
from tests.lab.images import Pair

pytestmark = pytest.mark.slow
TRAINER = """
import argparse
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

options = argparse.ArgumentParser()
options.add_argument("--steps", type=int)
options.add_argument("--resume", default="")
options = options.parse_args()
torch.manual_seed(0)
with open("corpus.txt", "rb") as file:
    text = file.read()
blocks = [torch.tensor(list(text[start : start + 32])) for start in range(0, len(text) - 32, 16)]
model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=32, n_embd=32, n_layer=1, n_head=1))
saving = {"logging_steps": 5, "save_steps": 10, "report_to": []}
arguments = TrainingArguments("outputs", max_steps=options.steps, per_device_train_batch_size=4, use_cpu=True, **saving)
trainer = Trainer(model=model, args=arguments, train_dataset=[{"input_ids": one, "labels": one} for one in blocks])
trainer.train(resume_from_checkpoint=options.resume or None)
"""
MAIN = """
import argparse, csv, os
import torch
import torch.distributed as dist
import yaml
from torch.nn.parallel import DistributedDataParallel as DDP
from weather import network

options = argparse.ArgumentParser()
options.add_argument("--lr", type=float)
options = options.parse_args()
with open("config/base.yaml") as file:
    settings = yaml.safe_load(file)
dist.init_process_group("gloo")
torch.manual_seed(0)
model = DDP(network(settings["width"]))
optimizer = torch.optim.Adam(model.parameters(), options.lr)
for number in range(settings["steps"]):
    given = torch.randn(16, 4)
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(given), given.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
if dist.get_rank() == 0:
    os.makedirs("outputs", exist_ok=True)
    with open("outputs/metrics.csv", "w", newline="") as file:
        csv.writer(file).writerows([["loss"], [loss.item()]])
dist.destroy_process_group()
"""
WEATHER = """
import torch


def network(width):
    return torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))
"""
STEPS = 30
OF_TRAINER = {
    "train.py": TRAINER,
    "requirements.txt": "transformers\naccelerate\n",
    "corpus.txt": "the quick brown fox jumps over the lazy dog\n" * 50,
}
OF_PACKAGE = {
    "main.py": MAIN,
    "src/weather/__init__.py": WEATHER,
    "config/base.yaml": f"width: 16\nsteps: {STEPS}\n",
    "requirements.txt": "pyyaml\n",
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two workers with the stack, whose packages lie where an earlier run has left them."""
    with prepared_pair(tmp_path_factory.mktemp("projects"), "projects") as made:
        yield made


def written(folder: Path, files: dict[str, str]) -> Path:
    """Write a project, and return its folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def train(pair: Pair, name: str, command: str, **more: Any) -> Outcome:
    given = {"training_command": command} if command else {}
    done = pair.play("train", training_name=name, training_warmup=3, **given, **more)
    assert done.rc == 0, done.out[-4000:]
    return done


def manifest(pair: Pair, name: str) -> dict[str, Any]:
    return dict(json.loads((pair.results / name / "manifest.json").read_text()))


def test_resumes_a_trainer_run_by_name_with_loss(pair: Pair, tmp_path: Path) -> None:
    folder = written(tmp_path / "trainer", OF_TRAINER)
    first = train(pair, "trainer", "python train.py --steps 20 --resume {resume}", training_folder=str(folder))
    assert "the packages of requirements.txt" in first.out and ", loss " in first.out, first.out[-3000:]
    outputs = pair.results / "trainer" / "outputs"
    assert sorted(path.name for path in outputs.iterdir()) == ["checkpoint-10", "checkpoint-20"]
    more = "python train.py --steps 30 --resume {resume}"
    train(pair, "more", more, training_folder=str(folder), training_resume="trainer")
    resumed = manifest(pair, "more")
    assert resumed["checkpoint"].endswith("/checkpoint-20") and resumed["end"]["steps"] == 10
    train(pair, "again", "", training_repeat="trainer")
    assert manifest(pair, "again")["code"] == manifest(pair, "trainer")["code"]


def test_sweeps_a_src_package_and_compares_its_runs(pair: Pair, tmp_path: Path) -> None:
    given = {"training_folder": str(written(tmp_path / "package", OF_PACKAGE))}
    wrong = pair.play("train", training_name="wrong", training_command="python main.py --lr 1", **given)
    assert wrong.rc != 0 and "set PYTHONPATH=src" in " ".join(wrong.out.split()), wrong.out[-3000:]
    swept = {"training_sweep": {"lr": [0.1, 0.001]}, "training_sweep_size": 1}
    done = train(
        pair, "rates", "python main.py --lr {lr}", training_environment={"PYTHONPATH": "src"}, **given, **swept
    )
    assert "rates.1 trains on worker01 with lr 0.1" in done.out and "loss (outputs)" in done.out, done.out[-3000:]
    assert [manifest(pair, f"rates.{number}")["end"]["steps"] for number in (1, 2)] == [STEPS, STEPS]
    compared = pair.play("runs", training_compare="rates.1,rates.2")
    assert "python main.py --lr 0.001" in compared.out and "loss in outputs" in compared.out, compared.out[-3000:]
