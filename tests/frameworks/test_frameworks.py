"""Steps of unchanged scripts with the real frameworks, in one process and in two ranks: `make frameworks`."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.training.results.saved_checkpoints import newest_checkpoint, unusable_checkpoint

ROOT = Path(__file__).parents[2]
SCRIPTS, FILES = Path(__file__).parent / "scripts", ROOT / "roles" / "training" / "files"
FRAMEWORKS = ROOT / ".cache" / "frameworks"
DEADLINE = 600.0


def begin(environment: str, folder: Path, words: list[str], place: dict[str, str]) -> subprocess.Popen[str]:
    """Begin a rank in one of the environments."""
    python = FRAMEWORKS / environment / "bin" / "python"
    assert python.exists(), "the frameworks are not installed: run make frameworks"
    variables = {
        "DML_STEPS_BY": "auto",
        "DML_RECORDS": str(folder / "run"),
        "PYTHONPATH": str(FILES),
        "HF_HUB_OFFLINE": "1",
    }
    script = str(SCRIPTS / f"{words[0]}.py")
    return subprocess.Popen(
        [str(python), "-u", str(FILES / "dml_torchrun.py"), script, *words[1:]],
        cwd=folder,
        env={**os.environ, **variables, **place},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(environment: str, folder: Path, *words: str, size: int = 1, local: int = 1) -> list[str]:
    """Return the output of each rank of a script that succeeds; ``local`` is the number of ranks of each node."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    ranks = []
    for rank in range(size):
        numbers = {"RANK": rank, "SIZE": size, "LOCAL_RANK": rank % local, "LOCAL_SIZE": local}
        place = {f"OMPI_COMM_WORLD_{name}": str(number) for name, number in numbers.items()}
        ranks.append(
            begin(environment, folder, list(words), {**place, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})
        )
    outputs = [each.communicate(timeout=DEADLINE)[0] for each in ranks]
    assert [each.returncode for each in ranks] == [0] * size, "\n".join(outputs)
    return outputs


def records(folder: Path, rank: int = 0) -> list[dict[str, Any]]:
    """Return the records of a rank."""
    path = folder / "run" / f"rank{rank}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def steps(folder: Path, rank: int = 0) -> list[tuple[int, float | None]]:
    """Return the steps of a rank with their losses."""
    return [(each["step"], each["loss"]) for each in records(folder, rank) if "mark" not in each]


def losses(folder: Path, rank: int = 0) -> list[int]:
    """Return the steps after which a framework logged a loss."""
    return [each["step"] for each in records(folder, rank) if each.get("mark") == "loss"]


def phases(folder: Path, rank: int = 0) -> list[tuple[int, str]]:
    """Return the phases of a rank, each of which has ended, with the last step before them."""
    made = records(folder, rank)
    marks = [(each["step"], each["phase"], each["mark"]) for each in made if each.get("mark", "loss") != "loss"]
    assert [mark for _step, _phase, mark in marks] == ["begin", "end"] * (len(marks) // 2)
    return [(step, phase) for step, phase, mark in marks if mark == "begin"]


@pytest.mark.parametrize(
    ("script", "made", "by", "others"),
    [
        ("plain", 8, "SGD", 0),
        ("amp", 8, "Adam", 0),
        ("two", 8, "SGD", 1),
        # The first ten steps of the second training show that the first one ended.
        ("folds", 190, "SGD", 1),
        ("children", 8, "SGD", 0),
        ("nested", 8, "ZeroRedundancyOptimizer", 0),
        ("trainer", 8, "AdamW", 0),
        ("accelerated", 8, "SGD", 0),
    ],
)
def test_steps_of_the_optimizer_of_an_unchanged_script(
    tmp_path: Path, script: str, made: int, by: str, others: int
) -> None:
    run("pytorch", tmp_path, script, str(tmp_path))
    assert [number for number, _loss in steps(tmp_path)] == list(range(1, made + 1))
    # Only Trainer logs a loss, after each step here.
    assert losses(tmp_path) == (list(range(1, made + 1)) if script == "trainer" else [])
    assert not any("group" in each for each in records(tmp_path))
    last = records(tmp_path)[-1]
    assert (last["by"], last["others"]) == (f"optimizer {by}", others)
    evaluated = [(4, "eval"), (8, "eval"), (8, "checkpoint")] if script == "trainer" else []
    assert phases(tmp_path) == evaluated


@pytest.mark.parametrize("script", ["nested", "trainer", "accelerated"])
def test_each_of_two_ranks_reports_its_steps(tmp_path: Path, script: str) -> None:
    run("pytorch", tmp_path, script, str(tmp_path), size=2, local=2)
    for rank in range(2):
        assert [number for number, _loss in steps(tmp_path, rank)] == list(range(1, 9))


@pytest.mark.parametrize(("nodes", "devices"), [(1, 1), (1, 2), (2, 1)])
def test_lightning_uses_mpirun_ranks_and_reports_steps(tmp_path: Path, nodes: int, devices: int) -> None:
    size = nodes * devices
    outputs = run(
        "pytorch", tmp_path, "lightning_fit", str(tmp_path), str(nodes), str(devices), size=size, local=devices
    )
    for rank, output in enumerate(outputs):
        assert f"lightning {rank} {rank // devices} {rank % devices} {size}" in output
        made = steps(tmp_path, rank)
        assert [number for number, _loss in made] == list(range(1, 9))
        assert losses(tmp_path, rank) == [2, 4, 6, 8]
        assert phases(tmp_path, rank) == [(4, "eval"), (8, "eval")]


@pytest.mark.parametrize(("script", "words"), [("trainer", ()), ("lightning_fit", ("1", "1"))])
def test_resumed_script_counts_steps_after_its_checkpoint(tmp_path: Path, script: str, words: tuple[str, ...]) -> None:
    run("pytorch", tmp_path, script, str(tmp_path), *words, "8")
    run("pytorch", tmp_path, script, str(tmp_path), *words, "12")

    assert [number for number, _loss in steps(tmp_path)] == list(range(1, 13))


def test_lightning_for_one_node_reports_its_lone_ranks(tmp_path: Path) -> None:
    run("pytorch", tmp_path, "lightning_fit", str(tmp_path), "1", "1", "12", size=2)

    for rank in range(2):
        assert {each.get("group") for each in records(tmp_path, rank)[-1:]} == {1}


def test_records_of_the_script_take_precedence(tmp_path: Path) -> None:
    run("pytorch", tmp_path, "own")
    assert steps(tmp_path) == [(1, None), (2, None), (3, None), *((number, 1.0) for number in range(4, 9))]


def test_compiled_step_stays_unchanged_and_reports_nothing(tmp_path: Path) -> None:
    run("pytorch", tmp_path, "compiled")
    assert records(tmp_path) == []


@pytest.mark.parametrize("environment", ["keras2", "keras3"])
def test_batches_of_keras_have_their_loss(tmp_path: Path, environment: str) -> None:
    run(environment, tmp_path, "keras_fit")
    made = steps(tmp_path)
    assert [number for number, _loss in made] == list(range(1, 9))
    assert all(loss is not None and loss > 0 for _number, loss in made)
    marks = [(each["phase"], each["mark"]) for each in records(tmp_path) if "mark" in each]
    assert marks == [("eval", "begin"), ("eval", "end")]


@pytest.mark.parametrize("size", [1, 3])
def test_sharded_checkpoint_resumes_on_fewer_and_more_ranks(tmp_path: Path, size: int) -> None:
    run("pytorch", tmp_path, "fsdp2", "20", size=2)
    outputs = tmp_path / "outputs"
    found = newest_checkpoint("one", str(outputs), [], required=True)
    shutil.rmtree(tmp_path / "run")

    resumed = run("pytorch", tmp_path, "fsdp2", "25", f"outputs/{found['path']}", size=size)

    assert (found["path"], found["restart"]["step"], found["restart"]["optimizer"]) == ("step-20", 20, True)
    assert all(f"ended at step 25 of {size} ranks" in output for output in resumed)
    assert len(steps(tmp_path, rank=size - 1)) == 5
    (outputs / "step-20" / "__1_0.distcp").unlink()
    assert "lacks __1_0.distcp" in unusable_checkpoint("one", str(outputs), [])
