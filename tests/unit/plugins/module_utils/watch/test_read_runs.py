"""The function read_runs on this machine as its node, with folders as the supervisor and the ranks leave them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.training.results import other_runs
from plugins.module_utils.training.results.other_runs import read_runs
from tests.fakes.calling import here

NODES = [{"name": "worker01", "reach": ["sh", "-c"]}]


def record(at: float) -> str:
    return json.dumps({"t": at, "step": 1, "stride": 1, "rank": 0, "size": 2, "host": "worker01", "pid": 7}) + "\n"


def run_of(runs: Path, name: str, first: float, last: float) -> Path:
    """Make the folder of a run that wrote its first and its last record at these times."""
    folder = runs / name
    folder.mkdir(parents=True)
    (folder / "rank0.jsonl").write_text(record(first) + record(last))
    os.utime(folder / "rank0.jsonl", (last, last))
    return folder


def read(folder: Path, since: float = 1000.0) -> dict[str, Any]:
    return here(read_runs, nodes=NODES, folder=str(folder), since=since)


def ended(reading: dict[str, Any]) -> list[str]:
    """Return the runs that have ended: other tests on this machine may run jobs meanwhile."""
    return [text for text in reading["sentences"] if not text.endswith("still active")]


def test_names_a_run_that_ended_during_the_test(tmp_path: Path) -> None:
    own = run_of(tmp_path, "mine", 900, 2000)
    run_of(tmp_path, "rates", 1060, 1125)
    run_of(tmp_path, "long ago", 100, 900)
    (tmp_path / "no run").mkdir()
    (tmp_path / "a link").symlink_to(tmp_path / "rates")

    (text,) = ended(read(own))

    assert text.startswith("rates of ") and text.endswith(
        " on worker01: from 1970-01-01 00:17:40 UTC, until 1970-01-01 00:18:45 UTC"
    )


def test_a_run_with_a_process_is_still_active(tmp_path: Path) -> None:
    own, other = run_of(tmp_path / "runs", "mine", 900, 2000), tmp_path / "elsewhere" / "sweep.1"
    other.mkdir(parents=True)
    command = [sys.executable, "-c", "print(flush=True); input()"]
    environment = {**os.environ, "DML_RECORDS": str(other)}
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline()
        sentences = read(own)["sentences"]
        process.communicate(b"\n")

    assert [text for text in sentences if text.startswith("sweep.1 ") and text.endswith(", still active")]
    assert not [text for text in read(own)["sentences"] if text.startswith("sweep.1 ")]


def test_finds_the_checkpoints_usable_for_resuming(tmp_path: Path) -> None:
    own = run_of(tmp_path, "mine", 900, 2000)
    times = {"outputs/epoch1.pt": 1100, "outputs/epoch2.pt": 1200, "outputs/log.txt": 1300, "model.pt": 0}
    times.update({f"outputs/checkpoint-5/{name}": 1250 for name in ("trainer_state.json", "model.safetensors")})
    for path, at in times.items():
        file = own / "work" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (at, at))

    assert read(own)["saved"] == [1100.0, 1200.0, 1250.0]


def test_an_unreachable_node_hides_no_other_nodes_runs(tmp_path: Path) -> None:
    own = run_of(tmp_path, "mine", 900, 2000)
    run_of(tmp_path, "rates", 1060, 1125)
    nodes = [*NODES, {"name": "worker02", "reach": ["false"]}]

    found = here(read_runs, nodes=nodes, folder=str(own), since=1000.0)

    assert [text.partition(" of ")[0] for text in ended(found)] == ["rates"]


def test_reports_one_run_on_several_nodes_once() -> None:
    stay = {"run_dir": "/var/lib/dml/runs/rates", "user": "anna", "since": 1060.4, "until": 1125.0}
    later = {**stay, "since": 1070.0, "until": None}

    texts = other_runs.sentences({"w2": {"runs": [stay]}, "w1": {"runs": [later]}})

    assert texts == ["rates of anna on w1, w2: from 1970-01-01 00:17:40 UTC, still active"]


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {"error": "it did not answer in time"},
        {"runs": None, "files": 7},
        {"runs": [None, {}, {"run_dir": "/r", "user": "u", "since": "x", "until": 1}], "files": [None, [], ["a.pt"]]},
        {"runs": [{"run_dir": "/r", "user": "u", "since": float("nan"), "until": 1}], "files": [["a.pt", "nan"]]},
    ],
)
def test_an_answer_in_another_form_is_left_out(answer: Any) -> None:
    assert other_runs.sentences({"w1": answer}) == [] and other_runs.saved({"w1": answer}) == []


def test_the_list_of_runs_is_limited() -> None:
    runs = [{"run_dir": f"/runs/{n}", "user": "", "since": 1.0, "until": 2.0} for n in range(25)]

    assert other_runs.sentences({"w1": {"runs": runs}})[-1] == "5 further runs"
