# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The newest complete checkpoint, with real archives that are complete, cut off, empty or of another checksum."""

from __future__ import annotations

import os
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.training.checkpoint import OutputFile, candidates
from tests.fakes.calling import here


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
    return here("newest_checkpoint", name="one", folder=str(folder), patterns=list(patterns), required=True)


def test_the_newest_complete_checkpoint_is_found_and_torn_ones_are_named(tmp_path: Path) -> None:
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
def test_the_highest_number_is_the_newest_checkpoint_of_one_second(paths: tuple[str, ...], newest: str) -> None:
    """Copies have whole seconds, and a quick program writes several within one."""
    files = [OutputFile(path, 1.0 + number / 10) for number, path in enumerate(paths)]
    assert candidates(files, [])[0].path == newest


def test_a_checkpoint_in_the_format_before_pytorch_1_6_is_not_torn(tmp_path: Path) -> None:
    """torch.save with _use_new_zipfile_serialization=False writes pickles, which have no directory."""
    legacy = tmp_path / "old.pth"
    legacy.write_bytes(bytes.fromhex("80028a0a6cfc9c46f9206aa850192e") + b"\x80\x02M\xe9\x03.")
    (tmp_path / "zeros.npz").write_bytes(b"\x80" * 99)
    os.utime(legacy, (1, 1))
    answer = found(tmp_path)
    assert (answer["path"], len(answer["warnings"])) == ("old.pth", 1)
    assert answer["warnings"][0].startswith("the checkpoint zeros.npz is torn")


def trainer(folder: Path, number: int, *, is_complete: bool = True, cut: int = 0) -> None:
    """Write a checkpoint of Hugging Face's Trainer in the order of its files."""
    for name in ("model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth"):
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


def test_a_folder_of_another_program_with_such_a_name_is_not_a_checkpoint(tmp_path: Path) -> None:
    save(tmp_path, "checkpoint-5/model.pt", 5)
    assert found(tmp_path)["path"] == "checkpoint-5/model.pt"
