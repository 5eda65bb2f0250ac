"""Event files as tensorboardX 2.6.5 and the library tensorboard 2.21.0 wrote them, whole, cut off and damaged."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.training.output.event_file import numbers

FILES = Path(__file__).parents[5] / "fixtures" / "tensorboard"
PLAIN, TENSORS = ((FILES / f"{name}.tfevents").read_bytes() for name in ("tensorboardx", "tensorflow2"))
LAST = {"train/loss": pytest.approx(1 / 3), "eval/accuracy": 0.75}


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
