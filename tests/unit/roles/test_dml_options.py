# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the benchmark scripts share, without a framework: their steps, and what each rank tells at the end."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from roles.training.files import dml_options

PARTS = [b"weights", b"biases"]


def chosen(monkeypatch: pytest.MonkeyPatch, *words: str) -> argparse.Namespace:
    monkeypatch.setattr(sys, "argv", ["benchmark", *words])
    return dml_options.options("a benchmark")


def run(options: argparse.Namespace, stop: bool = False) -> tuple[list[int], dict[str, Any]]:
    """The steps that were made, and what the rank tells of them."""
    pace = dml_options.Pace(options)
    numbers = list(pace.steps(lambda _wish: stop))
    return numbers, pace.summary(1, 4, iter(PARTS))


def test_it_makes_the_steps_of_all_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers, told = run(
        chosen(monkeypatch, "--steps", "3", "--epochs", "2", "--batch-size", "8", "--step-seconds", "0.01")
    )
    assert numbers == [1, 2, 3, 4, 5, 6]
    assert (told["steps"], told["rank"], told["size"]) == (6, 1, 4)
    assert 0 < told["images_per_sec"] <= 8 / 0.01
    assert told["seconds_per_epoch"] >= 0.03


def test_time_ends_it_when_all_ranks_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers, _told = run(chosen(monkeypatch, "--steps", "2", "--epochs", "9", "--seconds", "60"), stop=True)
    assert numbers == [1, 2]


def test_the_first_steps_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = dml_options.Pace(chosen(monkeypatch, "--warmup", "2", "--batch-size", "10"))
    pace._steps = [10.0, 10.0, 1.0, 1.0, 1.0]
    assert pace.summary(0, 1, [])["images_per_sec"] == 10.0


def test_parameters_are_summed_up_in_a_checksum_and_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    _numbers, told = run(chosen(monkeypatch, "--steps", "1"))
    assert told["parameters_sha256"] == hashlib.sha256(b"weightsbiases").hexdigest()
    assert told["gradient_bytes"] == len(b"weightsbiases")


def test_ranks_that_differ_end_the_job_after_they_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DML_RECORDS", str(tmp_path))
    summary = {"rank": 2, "parameters_sha256": "aa"}
    dml_options.keep(dict(summary), lambda own: [own, own])
    assert json.loads((tmp_path / "summary2.json").read_text())["sha256_of_ranks"] == ["aa", "aa"]
    with pytest.raises(SystemExit, match="the ranks ended with different parameters: aa, bb"):
        dml_options.keep(dict(summary), lambda own: [own, "bb"])
    assert json.loads((tmp_path / "summary2.json").read_text())["sha256_of_ranks"] == ["aa", "bb"]
