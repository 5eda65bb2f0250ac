"""Checkpoints of each framework, complete and torn: a torn one is never resumed from, and the one before is."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.training.results import checkpoint, checkpoint_reader
from plugins.module_utils.training.results.saved_checkpoints import newest_checkpoint
from plugins.module_utils.training.results.saved_manifests import write_manifest
from tests.fakes.calling import here

from .test_manifest import a_manifest

Files = Mapping[str, "bytes | None"]


def zipped(content: bytes = b"x" * 500) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("archive/data.pkl", content)
    return written.getvalue()


def hdf5() -> bytes:
    return b"\x89HDF\r\n\x1a\n" + bytes(32) + (200).to_bytes(8, "little") + bytes(152)


HEADER = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
TENSORS = len(HEADER).to_bytes(8, "little") + HEADER + bytes(8)
ZIP, H5 = zipped(), hdf5()
PARTS = b"\x80\x04\x8c\x0c__0_0.distcp\x94\x8c\x0c__1_0.distcp\x94."
INDEX = b'{"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}'
SHARDS = {f"model-0000{number}-of-00002.safetensors": TENSORS for number in (1, 2)}
ZERO = {f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt": ZIP for rank in (0, 1)}


def below(folder: str, files: Files) -> dict[str, bytes | None]:
    return {f"{folder}/{name}": content for name, content in files.items()}


# The files of a complete checkpoint by its number, and its path.
COMPLETE: dict[str, tuple[Callable[[int], Files], str]] = {
    "trainer": (
        lambda n: below(
            f"checkpoint-{n}",
            {"config.json": b"{}", "model.safetensors": TENSORS, "optimizer.pt": ZIP, "trainer_state.json": b"{}"},
        ),
        "checkpoint-{}",
    ),
    "accelerate": (
        lambda n: below(f"ck_{n}", {"model.safetensors": TENSORS, "optimizer.bin": ZIP, "random_states_0.pkl": ZIP}),
        "ck_{}",
    ),
    "dcp": (lambda n: below(f"step-{n}", {"__0_0.distcp": ZIP, "__1_0.distcp": ZIP, ".metadata": PARTS}), "step-{}"),
    "dcp_by_rank": (
        lambda n: below(
            f"step-{n}", {"__0_0.distcp": ZIP, "__1_0.distcp": ZIP, "__0.metadata": b"\x80.", "__1.metadata": b"\x80."}
        ),
        "step-{}",
    ),
    "deepspeed": (
        lambda n: {
            **below(f"ds/global_step{n}", {"mp_rank_00_model_states.pt": ZIP, **ZERO}),
            "ds/latest": f"global_step{n}\n".encode(),
        },
        "ds/global_step{}",
    ),
    "megatron": (
        lambda n: {
            f"m/iter_{n:07d}/mp_rank_00/model_optim_rng.pt": ZIP,
            "m/latest_checkpointed_iteration.txt": str(n).encode(),
        },
        "m/iter_00000{}",
    ),
    "lightning": (lambda n: {f"hpc_ckpt_{n}.ckpt": ZIP}, "hpc_ckpt_{}.ckpt"),
    "lightning_on_exception": (lambda n: {f"v{n}/on_exception.ckpt": ZIP}, "v{}/on_exception.ckpt"),
    "lightning_sharded": (
        lambda n: below(
            f"last-v{n}.ckpt", {"__0_0.distcp": ZIP, "__1_0.distcp": ZIP, ".metadata": PARTS, "meta.pt": ZIP}
        ),
        "last-v{}.ckpt",
    ),
    "keras": (lambda n: {f"epoch{n}.weights.h5": H5}, "epoch{}.weights.h5"),
    "keras_backup": (
        lambda n: below(f"backup{n}", {"latest.weights.h5": H5, "training_metadata.json": b"{}"}),
        "backup{}",
    ),
    "torch": (lambda n: {f"model_{n}.pt": ZIP}, "model_{}.pt"),
    "titan_hf": (lambda n: below(f"step-{n}", {**SHARDS, "model.safetensors.index.json": INDEX}), "step-{}"),
    "shards": (lambda n: below(f"w{n}", {**SHARDS, "model.safetensors.index.json": INDEX}), "w{}"),
}
# A complete checkpoint, what a death left of the next one instead, and why that one is torn.
TORN: list[tuple[str, Files, str]] = [
    ("trainer", {"checkpoint-20/trainer_state.json": b""}, "trainer_state.json: it is empty"),
    ("trainer", {"checkpoint-20/trainer_state.json": b'{"global_step": 2'}, "trainer_state.json: it is not JSON"),
    ("trainer", {"checkpoint-20/trainer_state.json": None}, "it has no trainer_state.json"),
    ("trainer", {"checkpoint-20/checkpoint-is-incomplete.txt": b""}, "it contains checkpoint-is-incomplete.txt"),
    ("accelerate", {"ck_20/random_states_0.pkl": b""}, "random_states_0.pkl: it is empty"),
    ("accelerate", {"ck_20/random_states_0.pkl": ZIP[:-30]}, "random_states_0.pkl: its archive has no directory"),
    ("accelerate", {"ck_20/optimizer.bin": ZIP[:-30]}, "optimizer.bin: its archive has no directory"),
    ("dcp", {"step-20/.metadata": b""}, ".metadata: it is empty"),
    ("dcp", {"step-20/.metadata": PARTS[:-9]}, ".metadata: it was cut off"),
    ("dcp", {"step-20/.metadata": None, "step-20/.metadata.tmp": PARTS}, "it has no .metadata"),
    ("dcp", {"step-20/__1_0.distcp": b""}, "__1_0.distcp: it is empty"),
    ("dcp", {"step-20/__1_0.distcp": None}, "it lacks __1_0.distcp"),
    ("dcp_by_rank", {"step-20/__1.metadata": None}, "it lacks __1.metadata"),
    ("deepspeed", {"ds/latest": b"global_step10"}, "latest names global_step10"),
    ("deepspeed", {"ds/global_step20/zero_pp_rank_0_mp_rank_00_optim_states.pt": None}, "it lacks zero_pp_rank_0_mp"),
    ("deepspeed", {"ds/global_step20/mp_rank_00_model_states.pt": ZIP[:-30]}, "its archive has no directory"),
    ("megatron", {"m/latest_checkpointed_iteration.txt": b"10"}, "latest_checkpointed_iteration.txt names 10"),
    ("lightning", {"hpc_ckpt_20.ckpt": ZIP[:-30]}, "its archive has no directory"),
    ("lightning", {"hpc_ckpt_20-unfinished": b""}, "hpc_ckpt_20-unfinished is beside it"),
    ("lightning_sharded", {"last-v20.ckpt/meta.pt": None}, "it lacks meta.pt"),
    ("lightning_sharded", {"last-v20.ckpt/.metadata": None}, "it has no .metadata"),
    ("keras", {"epoch20.weights.h5": H5[:-1]}, "it was cut off"),
    ("keras", {"epoch20.weights.h5": b"text"}, "it is not a file of HDF5"),
    ("keras_backup", {"backup20/latest.weights.h5": None}, "it has no latest.weights.h5"),
    ("torch", {"model_20.pt": ZIP[:-30]}, "its archive has no directory"),
    ("shards", {"w20/model-00002-of-00002.safetensors": None, "w20/model.safetensors.index.json": None}, "it lacks"),
    ("shards", {"w20/model.safetensors.index.json": None}, "it lacks model.safetensors.index.json"),
    ("shards", {"w20/model.safetensors.index.json": b""}, "index.json: it is empty"),
]


def write(folder: Path, files: Files, at: int) -> None:
    for name, content in files.items():
        path = folder / name
        if content is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (at, at))


def newest(folder: Path) -> dict[str, Any]:
    return here(newest_checkpoint, name="one", folder=str(folder), patterns=[], required=False)


@pytest.mark.parametrize("kind", COMPLETE)
def test_resumes_from_each_frameworks_newest_complete_checkpoint(tmp_path: Path, kind: str) -> None:
    files, path = COMPLETE[kind]
    for number in (10, 20):
        write(tmp_path, files(number), number)

    answer = newest(tmp_path)

    assert (answer["path"], answer["warnings"]) == (path.format(20), [])


@pytest.mark.parametrize(("kind", "left", "why"), TORN, ids=[f"{kind}: {why}" for kind, _left, why in TORN])
def test_names_a_torn_checkpoint_and_uses_an_earlier(tmp_path: Path, kind: str, left: Files, why: str) -> None:
    files, path = COMPLETE[kind]
    write(tmp_path, files(10), 10)
    write(tmp_path, files(20), 20)
    write(tmp_path, left, 20)

    answer = newest(tmp_path)

    assert answer["path"] == path.format(10)
    assert answer["warnings"][0].startswith("the checkpoint ") and why in answer["warnings"][0]


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (below("checkpoint-5", {"config.json": b"{}", "model.safetensors": TENSORS}), "it has no trainer_state.json"),
        ({"model-00001-of-00002.safetensors": TENSORS}, "it lacks model-00002-of-00002.safetensors"),
        ({"__0_0.distcp": ZIP}, "it has no .metadata"),
        (below("ds/global_step5", {"mp_rank_00_model_states.pt": ZIP}), "latest, which is written last, is not beside"),
    ],
    ids=["trainer", "shards", "dcp", "deepspeed"],
)
def test_ignores_a_first_save_that_was_killed(tmp_path: Path, files: Files, why: str) -> None:
    write(tmp_path, files, 5)

    answer = newest(tmp_path)

    assert answer["path"] == "" and why in answer["warnings"][0]


@pytest.mark.parametrize(
    ("kind", "rewritten", "why"),
    [
        ("dcp", "step-10/__0_0.distcp", "its parts are newer than .metadata"),
        ("deepspeed", "ds/global_step10/mp_rank_00_model_states.pt", "it is newer than latest"),
    ],
)
def test_refuses_a_checkpoint_that_was_being_overwritten(tmp_path: Path, kind: str, rewritten: str, why: str) -> None:
    files, _path = COMPLETE[kind]
    write(tmp_path, files(10), 10)
    write(tmp_path, {rewritten: ZIP}, 99)

    assert why in newest(tmp_path)["warnings"][0]


@pytest.mark.parametrize(
    ("began", "path"), [(5, ""), (99, "ds/global_step10")], ids=["of_this_run", "of_an_earlier_run"]
)
def test_deepspeed_checkpoints_need_parts_of_all_ranks(tmp_path: Path, began: int, path: str) -> None:
    outputs = tmp_path / "one" / "outputs"
    write(outputs, COMPLETE["deepspeed"][0](10), 10)
    given = {**a_manifest(), "nodes": ["w1", "w2"], "ranks_per_node": 2, "started": began}
    here(write_manifest, folder=str(tmp_path / "one"), manifest=given)

    answer = newest(outputs)

    assert answer["path"] == path
    assert path or "it lacks zero_pp_rank_2_mp_rank_00_optim_states.pt" in answer["warnings"][0]


def test_the_documentation_has_the_table_of_checkpoints() -> None:
    text = (Path(__file__).parents[6] / "roles" / "training" / "README.md").read_text()

    lacking = [
        row for each in checkpoint.FORMATS if (row := f"| {each.name} | {each.folder} | {each.complete} |") not in text
    ]

    assert lacking == []


@pytest.mark.parametrize("kind", COMPLETE)
def test_reader_sees_each_frameworks_checkpoint_during_the_run(tmp_path: Path, kind: str) -> None:
    files, path = COMPLETE[kind]
    for number in (10, 20):
        write(tmp_path, files(number), at=number * 30)

    at_once = checkpoint_reader.read(tmp_path, [], 0, 600 + 1.0)["seen"][0]
    read = checkpoint_reader.read(tmp_path, [], 0, 600 + 45.0)

    assert (at_once["path"], at_once["why"]) == (path.format(20), "its files changed a moment ago")
    (seen,) = read["seen"]
    beside = 1 if kind in ("deepspeed", "megatron") else 0
    expected = {"path": path.format(20), "why": "", "age": 45.0, "parts": len(files(20)) - beside}
    assert {key: seen[key] for key in expected} == expected and read["interval"] == 300.0


def test_reader_names_torn_checkpoint_before_complete_one(tmp_path: Path) -> None:
    files, _path = COMPLETE["trainer"]
    state = json.dumps({"global_step": 11}).encode()
    write(tmp_path, {**files(10), "checkpoint-10/trainer_state.json": state}, at=100)
    write(tmp_path, {**files(20), "checkpoint-20/trainer_state.json": state[:9]}, at=200)
    torn, complete = checkpoint_reader.read(tmp_path, [], 0, 500.0)["seen"]
    assert (torn["path"], torn["why"]) == ("checkpoint-20", "trainer_state.json: it is not JSON, so it was cut off")
    assert (complete["path"], complete["step"], complete["optimizer"]) == ("checkpoint-10", 11, True)
    assert complete["bytes"] == sum(path.stat().st_size for path in (tmp_path / "checkpoint-10").iterdir())
    assert checkpoint_reader.read(tmp_path / "none", [], 0, 500.0) == {"seen": [], "interval": None, "bytes": 0}


@pytest.mark.parametrize(
    ("kind", "more", "optimizer"),
    [
        ("trainer", {"checkpoint-20/optimizer.pt": None}, False),
        ("accelerate", {}, True),
        ("deepspeed", {}, True),
        ("dcp", {}, None),
        ("dcp", {"step-20/.metadata": PARTS[:-1] + b"optimizer.state.w."}, True),
        ("torch", {}, None),
        ("torch", {"model_20.pt": zipped(b"}q\x00(X\x05\x00\x00\x00modelq\x01X\x09\x00\x00\x00optimizer")}, True),
        ("lightning", {"hpc_ckpt_20.ckpt": zipped(b"optimizer_states")}, True),
        ("keras", {}, None),
    ],
)
def test_reader_knows_whether_checkpoint_has_optimizer(
    tmp_path: Path, kind: str, more: Files, optimizer: bool | None
) -> None:
    write(tmp_path, {**COMPLETE[kind][0](20), **{name: each for name, each in more.items() if each}}, at=100)
    for name in (name for name, content in more.items() if content is None):
        (tmp_path / name).unlink()
    (seen,) = checkpoint_reader.read(tmp_path, [], 2, 500.0)["seen"]
    assert (seen["why"], seen["optimizer"]) == ("", optimizer)
