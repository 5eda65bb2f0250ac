"""The readers of step records understand the records of the training library."""

from __future__ import annotations

import ast
import json
import os
import socket
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.continuity.verdict import verdict
from plugins.module_utils.training.output.log import parse
from roles.training.files import dml_records

FILES = Path(__file__).parents[3] / "roles" / "training" / "files"
FOR_TENSORFLOW_1 = ("dml_records.py", "dml_output.py", "dml_steps.py")
KEYS = [
    "t",
    "step",
    "stride",
    "rank",
    "size",
    "host",
    "pid",
    "start",
    "boot_id",
    "job",
    "generation",
    "phase",
    "loss",
    "images_per_sec",
]
SCRIPT = """
import dml_records
records = dml_records.start()
for number in range(60):
    records.step(images=8, loss=2.0 / (number + 1))
    if number == 30:
        with records.phase("checkpoint"):
            pass
"""


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder for the records of rank 1 of 4 of an MPI job."""
    monkeypatch.setenv("DML_RECORDS", str(tmp_path))
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("PMIX_NAMESPACE", "422313985")
    return tmp_path


def lines(folder: Path, rank: int = 1) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"rank{rank}.jsonl").read_text().splitlines()]


def test_a_record_has_every_key(place: Path) -> None:
    dml_records.start().step(images=32, loss=0.5)
    (record,) = lines(place)
    assert sorted(record) == sorted(KEYS)
    own = Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()
    assert record["start"] == int(own[19])
    expected = {"step": 1, "rank": 1, "size": 4, "job": "422313985", "pid": os.getpid(), "host": socket.gethostname()}
    assert {key: record[key] for key in expected} == expected
    assert record["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert (record["phase"], record["loss"], record["stride"], record["generation"]) == ("train", 0.5, 1, 0)


@pytest.mark.parametrize(
    ("loss", "written"),
    [(None, None), (1, 1.0), (float("nan"), "nan"), (float("inf"), "inf"), (float("-inf"), "-inf"), ("0.25", 0.25)],
)
def test_losses_are_json(place: Path, loss: Any, written: Any) -> None:
    dml_records.start().step(loss=loss)
    assert lines(place)[0]["loss"] == written


def test_stride_writes_every_nth_step_with_all_images(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(dml_records.time, "monotonic", lambda: float(next(clock)))
    records = dml_records.start(stride=5)
    for _step in range(12):
        records.step(images=8)
    written = lines(place)
    assert [(record["step"], record["stride"]) for record in written] == [(5, 5), (10, 5)]
    assert [record["images_per_sec"] for record in written] == [None, 5 * 8 / 2]


def test_marked_pause_does_not_lower_the_rate(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 101.0, 102.0])
    monkeypatch.setattr(dml_records.time, "monotonic", lambda: next(clock))
    records = dml_records.start()
    records.step(images=8)
    with records.phase("eval"):
        pass
    records.step(images=8)
    first, begin, end, second = lines(place)
    assert (begin["mark"], begin["phase"], end["mark"], first["step"], begin["step"]) == ("begin", "eval", "end", 1, 1)
    assert second["images_per_sec"] == 8 / 2


def test_script_with_a_step_counter_reports_its_progress(place: Path) -> None:
    records = dml_records.start()
    for step, rate, loss in ((1, "3.2", "81.126"), (10, "3.4", "nan"), (20, None, None), (1, 3.0, None)):
        records.report(step, rate, loss)
    reported = [(record["step"], record["stride"], record["images_per_sec"], record["loss"]) for record in lines(place)]
    assert reported == [(1, 1, 3.2, 81.126), (10, 9, 3.4, "nan"), (20, 10, None, None), (1, 1, 3.0, None)]


def test_an_elastic_reset_shows(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = dml_records.start()
    records.step()
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "3")
    records.reset()
    records.step()
    assert [(record["generation"], record["size"]) for record in lines(place)] == [(0, 4), (1, 3)]


def test_an_unknown_phase_is_refused(place: Path) -> None:
    with pytest.raises(ValueError, match="'lunch' is not one of train"):
        dml_records.start().begin("lunch")


def test_a_full_disk_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "rank0.jsonl").symlink_to("/dev/full")
    records = dml_records.start(str(tmp_path))
    with pytest.raises(OSError, match=r"No space left on device: .*/rank0\.jsonl"):
        records.step()


def test_finishes_a_partial_write(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(dml_records.os, "write", lambda file, data: write(file, data[:50]))
    dml_records.start().step(images=8, loss=0.5)
    (record,) = lines(place)
    assert record["loss"] == 0.5


def test_readers_accept_two_ranks_as_continuous_job(tmp_path: Path) -> None:
    for rank in range(2):
        environment = {
            **os.environ,
            "PYTHONPATH": str(FILES),
            "DML_RECORDS": str(tmp_path),
            "OMPI_COMM_WORLD_RANK": str(rank),
            "OMPI_COMM_WORLD_SIZE": "2",
            "PMIX_NAMESPACE": "7",
        }
        subprocess.run([sys.executable, "-c", SCRIPT], env=environment, check=True)
    logs = [parse((tmp_path / f"rank{rank}.jsonl").read_text()) for rank in range(2)]
    assert [log.problems for log in logs] == [[], []]
    assert [len(log.steps) for log in logs] == [60, 60]
    assert [[mark["mark"] for mark in log.marks] for log in logs] == [["begin", "end"]] * 2
    records = [dict(record) for log in logs for record in log.steps + log.marks]
    judged = verdict(records, [], {"max_gap_s": 60}, ended="finished", require=())
    assert judged["verdict"] == "continuous", judged


def test_keras_reports_batches_and_evaluation(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    callbacks = types.SimpleNamespace(Callback=object)
    keras = types.SimpleNamespace(callbacks=callbacks)
    monkeypatch.setitem(sys.modules, "tensorflow", types.SimpleNamespace(keras=keras))
    callback = dml_records.keras_callback(dml_records.start(), images=32)
    callback.on_train_batch_end(0, {"loss": 1.5})
    callback.on_test_begin()
    callback.on_test_end()
    reported = [(record["phase"], record.get("mark"), record["loss"]) for record in lines(place)]
    assert reported == [("train", None, 1.5), ("eval", "begin", None), ("eval", "end", None)]


@pytest.mark.parametrize("path", sorted(FILES.glob("*.py")), ids=lambda path: path.name)
def test_code_on_nodes_keeps_to_old_syntax(path: Path) -> None:
    oldest = (3, 6) if path.name in FOR_TENSORFLOW_1 else (3, 8)
    tree = ast.parse(path.read_text(), path.name, feature_version=oldest)
    futures = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    assert path.name not in FOR_TENSORFLOW_1 or futures == []
