"""The last metrics of a run are those in the last lines of its outputs."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.training.results.last_metrics import last_metrics, numbers

EVENTS = Path(__file__).parents[5] / "fixtures" / "tensorboard"
FILES = Path(__file__).parents[5] / "fixtures" / "tensorboard"
PLAIN, TENSORS = ((FILES / f"{name}.tfevents").read_bytes() for name in ("tensorboardx", "tensorflow2"))
LAST = {"train/loss": pytest.approx(1 / 3), "eval/accuracy": 0.75}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("m.csv", "step,loss,note\n1,0.5,x\n2,0.25,y\n", {"step": 2.0, "loss": 0.25}),
        ("m.csv", "step,loss\n1,0.5\n2", {}),
        ("m.csv", "step,loss\n1,nan\n", {"step": 1.0}),
        ("log/m.jsonl", '{"loss": 1}\n{"loss": 0.5, "ok": true, "who": "me"}\n', {"loss": 0.5}),
        ("m.jsonl", "[1]\n", {}),
        ("m.csv", "", {}),
        ("model.pt", "1", {}),
    ],
)
def test_reports_the_last_number_of_each_metric(
    tmp_path: Path, name: str, text: str, expected: dict[str, float]
) -> None:
    path = tmp_path / "one" / "outputs" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert last_metrics(results=str(tmp_path), runs=["one", "two"]) == {"one": expected, "two": {}}


def test_the_event_files_of_tensorboard_count(tmp_path: Path) -> None:
    folder = tmp_path / "one" / "outputs" / "runs"
    folder.mkdir(parents=True)
    shutil.copy(EVENTS / "tensorboardx.tfevents", folder / "events.out.tfevents.1764240000.w1")

    assert last_metrics(results=str(tmp_path), runs=["one"])["one"] == {
        "train/loss": pytest.approx(1 / 3),
        "eval/accuracy": 0.75,
    }


def test_numbers_of_tensorflow_2_are_tensors() -> None:
    assert numbers(TENSORS) == {"epoch_loss": pytest.approx(2 / 3)}


@pytest.mark.parametrize("begin", [0, 1, 40, 500])
def test_finds_the_last_number_from_any_offset(begin: int) -> None:
    assert numbers(PLAIN[begin:]) == LAST


def test_leaves_out_an_incomplete_record() -> None:
    assert numbers(PLAIN[:-1]) == {"train/loss": pytest.approx(1 / 3)}


@given(st.binary(max_size=300), st.integers(0, len(TENSORS)))
def test_foreign_bytes_raise_no_error(noise: bytes, place: int) -> None:
    found = numbers(TENSORS[:place] + noise + TENSORS[place:])
    assert all(isinstance(value, float) for value in found.values())
    assert numbers(noise) == {} or not any(math.isinf(value) for value in numbers(noise).values())
