"""The newest complete checkpoint, with real archives that are complete, cut off, empty or of another checksum."""

from __future__ import annotations

import json
import os
import tracemalloc
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.training.results import checkpoint_reader
from plugins.module_utils.training.results.checkpoint import OutputFile, candidates
from plugins.module_utils.training.results.saved_checkpoints import newest_checkpoint, unusable_checkpoint
from plugins.module_utils.training.results.saved_manifests import write_manifest
from plugins.plugin_utils import packed_folder
from tests.fakes.calling import here

from .test_manifest import a_manifest


def save(folder: Path, name: str, modified: int, *, cut: int = 0) -> Path:
    """Write a checkpoint as PyTorch does; some bytes of its end may be missing."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", os.urandom(5000))
    path.write_bytes(path.read_bytes()[: -cut or None])
    os.utime(path, (modified, modified))
    return path


def found(folder: Path, *patterns: str) -> dict[str, Any]:
    return here(newest_checkpoint, name="one", folder=str(folder), patterns=list(patterns), required=True)


def test_finds_newest_complete_checkpoint_and_names_torn_ones(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        save(tmp_path, f"deep/epoch{number}.pt", number, cut=30 if number == 3 else 0)
    (tmp_path / "log.txt").write_text("newer")
    (tmp_path / "newest.pt").symlink_to(tmp_path / "deep" / "epoch1.pt")
    answer = found(tmp_path)
    assert answer["path"] == "deep/epoch2.pt"
    torn = "the checkpoint deep/epoch3.pt is torn (its archive has no directory, so it was cut off)"
    assert answer["warnings"] == [f"{torn}, so deep/epoch2.pt is used"]
    assert found(tmp_path, "epoch1.*")["path"] == "deep/epoch1.pt"
    assert found(tmp_path, "deep/epoch?.pt")["path"] == "deep/epoch2.pt"
    assert "its outputs contain no checkpoint" in found(tmp_path, "epoch1")["msg"]


def test_names_parts_that_only_other_nodes_have(tmp_path: Path) -> None:
    """Two ranks with FSDP wrote a checkpoint on two nodes; the outputs of a run are those of one of them."""

    def unusable() -> str:
        return unusable_checkpoint("one", str(tmp_path), [])

    (tmp_path / "loss.csv").write_text("1")
    assert unusable() == ""
    (tmp_path / "step20").mkdir()
    (tmp_path / "step20" / "__0_0.distcp").write_bytes(b"x")
    (tmp_path / "step20" / ".metadata").write_bytes(
        b"\x80\x02X\x0c\x00\x00\x00__0_0.distcpX\x0c\x00\x00\x00__1_0.distcpq."
    )
    assert "step20" in unusable() and "lacks __1_0.distcp; if another node has it, let the ranks write" in unusable()
    (tmp_path / "step20" / "__1_0.distcp").write_bytes(b"x")
    assert unusable() == ""


def test_a_checksum_beside_the_checkpoint_decides(tmp_path: Path) -> None:
    old, new = save(tmp_path, "a.bin", 1), save(tmp_path, "b.bin", 2)
    for path in (old, new):
        (tmp_path / f"{path.name}.sha256").write_text(f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n")
    assert found(tmp_path, "*.bin")["path"] == "b.bin"
    new.write_bytes(b"torn")
    answer = found(tmp_path, "*.bin")
    assert answer["path"] == "a.bin" and "(b.bin.sha256 has another checksum)" in answer["warnings"][0]
    (tmp_path / "a.bin.sha256").write_text("")
    assert "a.bin.sha256 has another checksum" in found(tmp_path, "*.bin")["msg"]


@pytest.mark.parametrize(("name", "content"), [("a.pt", b""), ("a.pt", b"not an archive"), ("a.safetensors", b"")])
def test_without_a_complete_checkpoint_the_run_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    message = found(tmp_path)["msg"]
    assert f"the training run one: could not find a complete checkpoint: {name}: it" in message
    assert "training_checkpoints" in message


@pytest.mark.parametrize(
    ("paths", "newest"),
    [
        (("checkpoint-100/trainer_state.json", "checkpoint-90/trainer_state.json"), "checkpoint-100"),
        (("epoch9.pt", "epoch10.pt"), "epoch10.pt"),
        (("b.pt", "a.PT", "c.txt"), "a.PT"),
    ],
)
def test_the_highest_number_decides_between_simultaneous_checkpoints(paths: tuple[str, ...], newest: str) -> None:
    """Copies have whole seconds, and a quick program writes several within one."""
    files = [OutputFile(path, 1.0 + number / 10) for number, path in enumerate(paths)]
    assert candidates(files, [])[0].path == newest


def test_a_checkpoint_in_the_legacy_format_is_complete(tmp_path: Path) -> None:
    """torch.save with _use_new_zipfile_serialization=False writes pickles, which have no directory."""
    legacy = tmp_path / "old.pth"
    legacy.write_bytes(bytes.fromhex("80028a0a6cfc9c46f9206aa850192e") + b"\x80\x02M\xe9\x03.")
    (tmp_path / "zeros.npz").write_bytes(b"\x80" * 99)
    os.utime(legacy, (1, 1))
    answer = found(tmp_path)
    assert (answer["path"], len(answer["warnings"])) == ("old.pth", 1)
    assert answer["warnings"][0].startswith("the checkpoint zeros.npz is torn")


def tensors(path: Path, modified: int, *, cut: int = 0) -> None:
    """Write a file of safetensors with one tensor; some bytes of its end may be missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    header = json.dumps({"__metadata__": {"format": "pt"}, "w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})
    content = len(header).to_bytes(8, "little") + header.encode() + bytes(8)
    path.write_bytes(content[: -cut or None])
    os.utime(path, (modified, modified))


def write(path: Path, modified: int, content: bytes = b"content") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (modified, modified))


def trainer(folder: Path, number: int, *, is_complete: bool = True, cut: int = 0) -> None:
    """Write a checkpoint of Hugging Face's Trainer in the order of its files."""
    tensors(folder / f"checkpoint-{number}" / "model.safetensors", number)
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
        save(folder / f"checkpoint-{number}", name, number, cut=cut if name == "optimizer.pt" else 0)
    if is_complete:
        state = folder / f"checkpoint-{number}" / "trainer_state.json"
        state.write_text("{}")
        os.utime(state, (number, number))


def test_a_checkpoint_of_the_trainer_is_its_folder(tmp_path: Path) -> None:
    """The newest file is the state of the random numbers, from which nothing can resume."""
    trainer(tmp_path, 500)
    trainer(tmp_path, 1000)
    assert found(tmp_path)["path"] == "checkpoint-1000"
    trainer(tmp_path / "run", 1500, cut=30)
    trainer(tmp_path / "run", 2000, is_complete=False)
    answer = found(tmp_path)
    assert answer["path"] == "checkpoint-1000"
    assert answer["warnings"] == [
        "the checkpoint run/checkpoint-2000 is torn (it has no trainer_state.json), so checkpoint-1000 is used",
        (
            "the checkpoint run/checkpoint-1500 is torn (optimizer.pt: its archive has no directory, so it was cut "
            "off), so checkpoint-1000 is used"
        ),
    ]
    assert found(tmp_path, "optimizer.pt")["path"] == "run/checkpoint-2000/optimizer.pt"


def test_a_similarly_named_folder_is_not_a_checkpoint(tmp_path: Path) -> None:
    save(tmp_path, "checkpoint-5/model.pt", 5)
    assert found(tmp_path)["path"] == "checkpoint-5/model.pt"


@pytest.mark.parametrize("cut", [3, 12, 100])
def test_a_truncated_safetensors_file_is_torn(tmp_path: Path, cut: int) -> None:
    tensors(tmp_path / "step1.safetensors", 1)
    tensors(tmp_path / "step2.safetensors", 2, cut=cut)
    answer = found(tmp_path)
    assert answer["path"] == "step1.safetensors" and "so it was cut off" in answer["warnings"][0]


@pytest.mark.parametrize(
    "header",
    ["[]", "{", '{"w": 1}', '{"w": {"data_offsets": [0, Infinity]}}', '{"w": {"data_offsets": [0]}}', "[" * 9999],
)
def test_an_invalid_safetensors_file_is_torn(tmp_path: Path, header: str) -> None:
    (tmp_path / "a.safetensors").write_bytes(len(header).to_bytes(8, "little") + header.encode())
    assert "a.safetensors: its header cannot be read, so it was cut off" in found(tmp_path)["msg"]


def test_reader_limits_the_header_of_safetensors(tmp_path: Path) -> None:
    with (tmp_path / "a.safetensors").open("wb") as file:
        file.write((1_500_000_000).to_bytes(8, "little"))
        file.truncate(1_500_000_100)  # without blocks on the disk
    tracemalloc.start()
    answer = found(tmp_path)
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "a.safetensors: its header has 1500000000 bytes, more than that of any model" in answer["msg"]
    assert peak < 1 << 26


def test_parts_below_a_trainer_checkpoint_belong_to_it(tmp_path: Path) -> None:
    """With DeepSpeed and FSDP; the parts have the time of the folder, because copies have whole seconds."""
    for number in (500, 1000):
        trainer(tmp_path, number)
        folder = tmp_path / f"checkpoint-{number}"
        save(folder, f"global_step{number}/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt", number)
        write(folder / "pytorch_model_fsdp_0" / "__0_0.distcp", number)
        write(folder / "latest", number, f"global_step{number}".encode())
        save(folder, f"global_step{number}/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt", number)
        write(folder / "pytorch_model_fsdp_0" / ".metadata", number, b"\x8c\x0c__0_0.distcp\x94.")
    assert found(tmp_path)["path"] == "checkpoint-1000"
    (tmp_path / "checkpoint-1000" / "pytorch_model_fsdp_0" / "__0_0.distcp").unlink()
    answer = found(tmp_path)
    assert (
        answer["path"] == "checkpoint-500"
        and "checkpoint-1000 is torn (it lacks __0_0.distcp;" in answer["warnings"][0]
    )


def test_a_distributed_checkpoint_needs_parts_of_all_ranks(tmp_path: Path) -> None:
    """The metadata, which rank 0 writes last, name all parts; those of other nodes are not among the outputs."""
    names = b"\x8c\x0c__0_0.distcp\x94\x8c\x0c__1_0.distcp\x94."
    for number in (9, 10, 11):
        write(tmp_path / f"step_{number}" / "__0_0.distcp", number)
        write(tmp_path / f"step_{number}" / "__1_0.distcp", number)
        write(tmp_path / f"step_{number}" / ".metadata", number, names)
    (tmp_path / "step_11" / ".metadata").unlink()
    assert found(tmp_path)["path"] == "step_10"
    (tmp_path / "step_10" / "__1_0.distcp").unlink()
    answer = found(tmp_path)
    assert answer["path"] == "step_9"
    lacks = "it lacks __1_0.distcp; if another node has it, let the ranks write to a folder that the nodes share"
    assert f"the checkpoint step_10 is torn ({lacks}), so step_9 is used" in answer["warnings"]


def test_a_checkpoint_of_accelerate_is_its_folder(tmp_path: Path) -> None:
    for number in (8, 9, 10):
        tensors(tmp_path / "checkpoints" / f"checkpoint_{number}" / "model.safetensors", number)
        write(tmp_path / "checkpoints" / f"checkpoint_{number}" / "optimizer.bin", number)
        if number < 10:
            write(tmp_path / "checkpoints" / f"checkpoint_{number}" / "random_states_0.pkl", number)
    answer = found(tmp_path)
    assert answer["path"] == "checkpoints/checkpoint_9"
    assert "checkpoint_10 is torn (it has no random_states_0.pkl)" in answer["warnings"][0]


@pytest.mark.parametrize("weights", ["model.safetensors", "final/adapter_model.safetensors", "in several files"])
def test_weights_after_checkpoints_of_trainer_do_not_count(tmp_path: Path, weights: str) -> None:
    """A script of Trainer ends with save_model, also after the signal of a window."""
    for number in (100, 150):
        trainer(tmp_path, number)
    if weights == "in several files":
        for number in (1, 2):
            tensors(tmp_path / f"model-0000{number}-of-00002.safetensors", 158)
        write(tmp_path / "model.safetensors.index.json", 158, b'{"weight_map": {}}')
    else:
        tensors(tmp_path / weights, 158)
    assert found(tmp_path)["path"] == "checkpoint-150"


def test_weights_without_other_checkpoints_count(tmp_path: Path) -> None:
    tensors(tmp_path / "step5.safetensors", 5)
    assert found(tmp_path)["path"] == "step5.safetensors"


def test_a_state_counts_beside_folders_of_save_pretrained(tmp_path: Path) -> None:
    """The program writes its model as Trainer names it, and what it resumes from into one file."""
    for number in (100, 200):
        tensors(tmp_path / f"checkpoint-{number}" / "model.safetensors", number)
        write(tmp_path / f"checkpoint-{number}" / "config.json", number, b"{}")
    tensors(tmp_path / "state.safetensors", 199)

    assert found(tmp_path)["path"] == "state.safetensors"


def test_weights_beside_flat_accelerate_checkpoints_do_not_count(tmp_path: Path) -> None:
    save(tmp_path, "random_states_0.pkl", 100)
    tensors(tmp_path / "final" / "model.safetensors", 158)

    assert found(tmp_path)["path"] == "."


def test_folders_of_deepspeed_and_of_lightning_are_checkpoints(tmp_path: Path) -> None:
    for number in (100, 200):
        save(tmp_path, f"ds/global_step{number}/mp_rank_00_model_states.pt", number)
        save(tmp_path, f"ds/global_step{number}/zero_pp_rank_0_mp_rank_00_optim_states.pt", number)
    write(tmp_path / "ds" / "latest", 200, b"global_step200")
    assert found(tmp_path)["path"] == "ds/global_step200"
    save(tmp_path, "last.ckpt/checkpoint/mp_rank_00_model_states.pt", 300)
    write(tmp_path / "last.ckpt" / "latest", 300, b"checkpoint")
    assert found(tmp_path)["path"] == "last.ckpt"


def test_a_checkpoint_with_missing_files_is_torn(tmp_path: Path) -> None:
    trainer(tmp_path, 500)
    for number in (1, 2, 3):
        tensors(tmp_path / "checkpoint-500" / f"model-0000{number}-of-00003.safetensors", 500)
    write(tmp_path / "checkpoint-500" / "model.safetensors.index.json", 500, b'{"weight_map": {}}')
    assert found(tmp_path)["path"] == "checkpoint-500"
    (tmp_path / "checkpoint-500" / "model-00002-of-00003.safetensors").unlink()
    assert "it lacks model-00002-of-00003.safetensors" in found(tmp_path)["msg"]


def test_ignores_checkpoints_that_the_program_had_removed(tmp_path: Path) -> None:
    """Copies of the outputs while the job ran brought them here, and nothing removes them here."""
    outputs = tmp_path / "one" / "outputs"
    for number in (1, 2, 3):
        trainer(outputs, number)
    save(outputs, ".dml-killed/checkpoint-4/odd[1].pt", 4)
    write(outputs / "log.txt", 4)
    there = [f"checkpoint-3/{path.name}" for path in (outputs / "checkpoint-3").iterdir()]
    here(write_manifest, folder=str(tmp_path / "one"), manifest=a_manifest(), end={"state": "died"})
    here(write_manifest, folder=str(tmp_path / "one"), outputs=str(outputs), names=[*there, "log.txt"])

    answer = found(outputs)

    assert (answer["path"], answer["has_files"], answer["warnings"]) == ("checkpoint-3", True, [])
    sent = {file.path for file in packed_folder.files_of(str(outputs), answer["left_out"])}
    assert sent == {*there, "log.txt"}


@pytest.mark.parametrize("has_optimizer", [True, False])
def test_restart_facts_include_step_files_and_optimizer(tmp_path: Path, has_optimizer: bool) -> None:
    save(tmp_path, "deep/step7.pt", 1)
    folder = tmp_path / "checkpoint-40"
    folder.mkdir()
    (folder / "trainer_state.json").write_text('{"global_step": 41}')
    weights = save(tmp_path, "checkpoint-40/model.pt", 5)
    names = ["checkpoint-40/model.pt", "checkpoint-40/trainer_state.json"]
    if has_optimizer:
        save(tmp_path, "checkpoint-40/optimizer.pt", 5)
        names.insert(1, "checkpoint-40/optimizer.pt")

    restart = found(tmp_path)["restart"]

    assert (restart["path"], restart["step"], restart["optimizer"]) == ("checkpoint-40", 41, has_optimizer)
    assert [file["path"] for file in restart["files"]] == names and restart["torn"] == []
    assert restart["files"][0]["sha256"] == sha256(weights.read_bytes()).hexdigest()
    file = found(tmp_path, "deep/step?.pt")["restart"]
    assert (file["step"], file["optimizer"], [each["path"] for each in file["files"]]) == (7, None, ["deep/step7.pt"])


def test_names_a_checkpoint_changed_after_the_run(tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    sums = sha256(save(outputs, "step7.pt", 1).read_bytes()).hexdigest()
    end = {"outputs": [{"path": "step7.pt", "bytes": 1, "sha256": sums}]}
    (tmp_path / "manifest.json").write_text(json.dumps(a_manifest("one", end=end)))
    assert found(outputs)["warnings"] == []

    save(outputs, "step7.pt", 1)

    warning = "the checkpoint step7.pt is used, but step7.pt was changed after the end of one"
    assert found(outputs)["warnings"] == [warning] and found(outputs)["path"] == "step7.pt"


def test_a_damaged_trainer_state_gives_no_step(tmp_path: Path) -> None:
    for content in ("{", "[]", '{"global_step": "x"}', '{"global_step": NaN}'):
        (tmp_path / "trainer_state.json").write_text(content)

        assert checkpoint_reader.step_in(tmp_path) is None
