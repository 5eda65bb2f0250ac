"""The common code of the benchmark scripts, without a framework: their steps, and the final report of each rank."""

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


def run(options: argparse.Namespace, stop: bool = False, done: int = 0) -> tuple[list[int], dict[str, Any]]:
    """The steps that were made, and what the rank reports about them."""
    pace = dml_options.Pace(options, done)
    numbers = []
    for number in pace.steps(lambda _desired: stop):
        numbers.append(number)
        pace.end_step()
    return numbers, pace.summary(1, 4, iter(PARTS))


def test_it_makes_the_steps_of_all_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers, output = run(
        chosen(monkeypatch, "--steps", "3", "--epochs", "2", "--batch-size", "8", "--step-seconds", "0.01")
    )
    assert numbers == [1, 2, 3, 4, 5, 6]
    assert (output["steps"], output["rank"], output["size"]) == (6, 1, 4)
    assert 0 < output["images_per_sec"] <= 8 / 0.01
    assert output["seconds_per_epoch"] >= 0.03


def test_continues_after_the_completed_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers, output = run(chosen(monkeypatch, "--steps", "3", "--epochs", "3"), done=4)
    assert numbers == [5, 6, 7, 8, 9]
    assert output["steps"] == 5


def test_half_an_epoch_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    _numbers, output = run(chosen(monkeypatch, "--steps", "3", "--epochs", "2"), done=4)
    assert output["seconds_per_epoch"] is None


def test_no_step_is_shorter_than_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, slept = [0.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr(dml_options.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(dml_options.time, "sleep", sleep)
    pace, lengths = dml_options.Pace(chosen(monkeypatch, "--steps", "3", "--step-seconds", "0.5")), []
    for number in pace.steps(lambda _desired: False):
        began = clock[0]
        clock[0] += 7.0 if number == 1 else 0.1
        pace.end_step()
        lengths.append(clock[0] - began)
        clock[0] += 3.0  # a checkpoint
    assert lengths == pytest.approx([7.0, 0.5, 0.5])
    assert slept == pytest.approx([0.0, 0.4, 0.4])
    assert pace.summary(0, 1, [])["seconds_per_epoch"] == pytest.approx(17.0)


@pytest.mark.parametrize("steps", ["0", "-3", "many"])
def test_an_epoch_has_a_step(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], steps: str) -> None:
    with pytest.raises(SystemExit):
        chosen(monkeypatch, "--steps", steps)
    assert "--steps" in capsys.readouterr().err


def test_refuses_a_folder_on_which_ranks_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    options = chosen(monkeypatch, "--data", "/images", "--batch-size", "8", "--classes", "10")
    dml_options.check_folder(options, 32, 10, 4)
    with pytest.raises(
        dml_options.BenchmarkError, match="/images has 31 images, too few for one batch of 8 on each of 4"
    ):
        dml_options.check_folder(options, 31, 10, 4)
    with pytest.raises(dml_options.BenchmarkError, match="/images has 11 classes, and --classes is 10"):
        dml_options.check_folder(options, 32, 11, 4)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dml_options.Checkpoints:
    """Checkpoints of steps 9 and 10, the older one written last."""
    options = chosen(monkeypatch, "--checkpoints", str(tmp_path / "kept"), "--steps", "20")
    made = dml_options.Checkpoints(options, ".pt")
    made.keep(10, lambda file: file.write(b"ten"))
    made.keep(9, lambda file: file.write(b"nine"))
    return made


def test_the_newest_checkpoint_comes_back(kept: dml_options.Checkpoints, tmp_path: Path) -> None:
    read: list[bytes] = []
    assert kept.restore(lambda file: read.append(file.read())) == 10
    assert read == [b"ten"]
    output = (tmp_path / "kept" / "step10.pt.sha256").read_text()
    assert output == f"{hashlib.sha256(b'ten').hexdigest()}  step10.pt\n"
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {
        name + end for name in ("step9.pt", "step10.pt") for end in ("", ".sha256")
    }


def test_ignores_an_unfinished_checkpoint(kept: dml_options.Checkpoints, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        kept.keep(11, lambda _file: Path("/dev/full").write_text("x"))
    assert (tmp_path / "kept" / ".step11.pt").exists()
    assert kept.restore(lambda _file: None) == 10


def test_without_a_checkpoint_one_begins_at_the_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options = chosen(monkeypatch, "--checkpoints", str(tmp_path / "none"))
    assert dml_options.Checkpoints(options, ".pt").restore(lambda _file: pytest.fail("there is none")) == 0


def test_a_spoilt_checkpoint_is_named(kept: dml_options.Checkpoints, tmp_path: Path) -> None:
    (tmp_path / "kept" / "step10.pt").write_bytes(b"tenfold")
    with pytest.raises(dml_options.BenchmarkError, match=r"step10\.pt does not match its checksum"):
        kept.restore(lambda _file: None)


def test_reports_that_nothing_is_left_to_train(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options = chosen(monkeypatch, "--checkpoints", str(tmp_path), "--steps", "5", "--epochs", "2")
    made = dml_options.Checkpoints(options, ".pt")
    made.keep(10, lambda file: file.write(b"ten"))
    with pytest.raises(dml_options.BenchmarkError, match=r"step10\.pt is that of the last step: increase --epochs"):
        made.restore(lambda _file: None)
    options.seconds = 60
    assert made.restore(lambda _file: None) == 10


def test_time_ends_it_when_all_ranks_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers, _output = run(chosen(monkeypatch, "--steps", "2", "--epochs", "9", "--seconds", "60"), stop=True)
    assert numbers == [1, 2]


def test_warmup_steps_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = dml_options.Pace(chosen(monkeypatch, "--warmup", "2", "--batch-size", "10"))
    pace._steps = [10.0, 10.0, 1.0, 1.0, 1.0]
    assert pace.summary(0, 1, [])["images_per_sec"] == 10.0


def test_reports_parameters_as_checksum_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    _numbers, output = run(chosen(monkeypatch, "--steps", "1"))
    assert output["parameters_sha256"] == hashlib.sha256(b"weightsbiases").hexdigest()
    assert output["gradient_bytes"] == len(b"weightsbiases")


def test_differing_ranks_end_the_job_after_their_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DML_RECORDS", str(tmp_path))
    summary = {"rank": 2, "parameters_sha256": "aa"}
    dml_options.keep(dict(summary), lambda own: [own, own])
    assert json.loads((tmp_path / "summary2.json").read_text())["sha256_of_ranks"] == ["aa", "aa"]
    with pytest.raises(dml_options.BenchmarkError, match="the ranks ended with different parameters: aa, bb"):
        dml_options.keep(dict(summary), lambda own: [own, "bb"])
    assert json.loads((tmp_path / "summary2.json").read_text())["sha256_of_ranks"] == ["aa", "bb"]
