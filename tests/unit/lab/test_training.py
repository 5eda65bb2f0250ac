# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The training of the lab learns, writes the records and summaries of the benchmarks, and ends on request."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from lab.simulator import ROOT
from plugins.module_utils.training.transport.connections import LEAST_BYTES_PER_STEP

FOLDERS = (ROOT / "lab" / "training", ROOT / "roles" / "training" / "files")


class Alone:
    """One rank: what it adds up is its own."""

    size = 1

    def __init__(self) -> None:
        self.has_ended = False

    def add(self, numbers: Sequence[float]) -> list[float]:
        return list(numbers)

    def gather(self, text: str) -> list[str]:
        return [text]

    def end(self) -> None:
        self.has_ended = True


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program, with one rank that writes into a folder of the test."""
    for folder in FOLDERS:
        monkeypatch.syspath_prepend(str(folder))
    for name in ("train", "dml_options", "dml_records"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "mpi", SimpleNamespace(Mpi=Alone))  # type: ignore[arg-type]  # as much as is asked
    monkeypatch.setenv("DML_RECORDS", str(tmp_path))
    return importlib.import_module("train")


def run(train: ModuleType, monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["train.py", *words])
    train.main()


def records_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "rank0.jsonl").read_text().splitlines()]


def test_the_model_learns_and_each_step_is_recorded(
    train: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(train, monkeypatch, "--steps", "80", "--batch-size", "32", "--warmup", "4")
    records = records_in(tmp_path)
    assert [record["step"] for record in records] == list(range(1, 81))
    first, last = (sum(record["loss"] for record in part) for part in (records[:10], records[-10:]))
    assert last < first / 3
    summary = json.loads((tmp_path / "summary0.json").read_text())
    assert (summary["steps"], summary["gradient_bytes"]) == (80, 4 * train.WEIGHTS)
    assert summary["sha256_of_ranks"] == [summary["parameters_sha256"]]
    assert summary["network"] == "a linear regression of 32 values on 1024 features"


def test_two_ranks_see_different_samples_of_the_same_truth(train: ModuleType) -> None:
    truth = [float(number) for number in range(train.WEIGHTS)]
    one, two = (train.samples(train.random.Random(train.SEED + rank), truth, 3) for rank in (0, 1))
    assert one != two
    assert all(
        expected == [sum(train.VALUES * each + value for each in features) for value in range(train.VALUES)]
        for features, expected in (*one, *two)
    )


def test_gradients_point_from_the_prediction_to_the_target(train: ModuleType) -> None:
    weights = [0.0] * train.WEIGHTS
    *found, loss = train.gradients(weights, [([1, 2], [16.0] + [0.0] * (train.VALUES - 1))])
    assert (found[train.VALUES], found[2 * train.VALUES], sum(map(abs, found))) == (-1.0, -1.0, 2.0)
    assert loss == 16.0**2 / train.VALUES


def test_a_step_sends_enough_to_confirm_rdma(train: ModuleType) -> None:
    assert 4 * train.WEIGHTS >= LEAST_BYTES_PER_STEP


def test_training_ends_with_the_epoch_on_request(
    train: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "finish").touch()
    run(train, monkeypatch, "--steps", "3", "--epochs", "1000")
    assert records_in(tmp_path)[-1]["step"] == 3
