"""Equal folders give equal archives, without the files that stay on the controller."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.training.guest import code_folder
from plugins.module_utils.training.results.saved_checkpoints import newest_checkpoint
from plugins.plugin_utils import packed_folder
from tests.fakes.training_folder import make, packed


def test_archive_ignores_times_and_group_write_permission(tmp_path: Path) -> None:
    one, two = make(tmp_path / "one"), make(tmp_path / "two")
    os.utime(two / "train.py", (1, 1))
    (one / "train.py").chmod(0o644)
    (two / "train.py").chmod(0o664)
    (two / ".git" / "more").touch()
    assert packed(one, tmp_path / "one.tar") == packed(two, tmp_path / "two.tar")
    (two / "train.py").chmod(0o755)
    assert packed(one, tmp_path / "one.tar") != packed(two, tmp_path / "two.tar")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o700])
def test_a_file_keeps_its_permissions_on_the_node(tmp_path: Path, mode: int) -> None:
    folder, there = make(tmp_path / "one"), tmp_path / "there"
    (folder / "train.py").chmod(mode)
    packed(folder, tmp_path / "one.tar")

    code_folder.unpack(str(tmp_path / "one.tar"), str(there))

    assert (there / "train.py").stat().st_mode & 0o777 == mode
    assert code_folder.differing(str(tmp_path / "one.tar"), str(there)) == []
    (there / "train.py").chmod(0o666)
    assert code_folder.differing(str(tmp_path / "one.tar"), str(there)) == ["train.py"]


def test_archive_keeps_empty_folders(tmp_path: Path) -> None:
    """torch.save makes no folder: a program that writes to an empty one would end at its first checkpoint."""
    folder, there = make(tmp_path / "one"), tmp_path / "there"
    before = packed(folder, tmp_path / "one.tar")
    (folder / "runs" / "checkpoints").mkdir(parents=True)
    (folder / "data" / "empty").mkdir()
    (folder / "mylib" / "__pycache__" / "empty").mkdir()
    (folder / "cached" / "__pycache__").mkdir(parents=True)
    assert packed(folder, tmp_path / "one.tar") != before

    code_folder.unpack(str(tmp_path / "one.tar"), str(there))
    code_folder.unpack(str(tmp_path / "one.tar"), str(there))

    assert (there / "runs" / "checkpoints").is_dir() and not (there / "data").exists()
    assert not (there / "cached").exists()
    assert code_folder.differing(str(tmp_path / "one.tar"), str(there)) == []
    (there / "runs" / "checkpoints").rmdir()
    assert code_folder.differing(str(tmp_path / "one.tar"), str(there)) == ["runs/checkpoints"]


def test_initial_checkpoints_keep_their_order_on_the_node(tmp_path: Path) -> None:
    """Files are unpacked in the order of their names, and large ones take seconds: epoch9 would be the newest."""
    outputs, there = tmp_path / "outputs", tmp_path / "there"
    outputs.mkdir()
    for number in (9, 10):
        (outputs / f"epoch{number}.pth").write_bytes(b"\x80pickle")
        os.utime(outputs / f"epoch{number}.pth", (1000.5 + number, 1000.5 + number))
    (outputs / "last.pth").symlink_to("epoch10.pth")
    files = packed_folder.with_times(str(outputs), packed_folder.files_of(str(outputs)))
    with (tmp_path / "sent.tar").open("wb") as sent:
        packed_folder.pack(str(outputs), files, sent)

    code_folder.unpack(str(tmp_path / "sent.tar"), str(there))

    assert [(there / f"epoch{number}.pth").stat().st_mtime for number in (9, 10)] == [1009, 1010]
    assert newest_checkpoint("one", str(there), [], required=True)["path"] == "epoch10.pth"


def test_detects_a_link_that_escapes_through_another_link(tmp_path: Path) -> None:
    folder = make(tmp_path / "one")
    (tmp_path / "secret").write_text("of the controller")
    (folder / "d").mkdir()
    (folder / "d" / "up").symlink_to("..")
    (folder / "leak").symlink_to("d/up/../secret")

    files = packed_folder.files_of(str(folder))

    assert (folder / "leak").read_text() == "of the controller"
    assert {file.path for file in files if file.leads_out} == {"leak"}


def test_refuses_an_ignore_file_that_is_not_text(tmp_path: Path) -> None:
    fifo, latin, endless = (make(tmp_path / name) for name in ("fifo", "latin", "endless"))
    for folder in (fifo, endless):
        (folder / ".dmlignore").unlink()
    os.mkfifo(fifo / ".dmlignore")
    (endless / ".dmlignore").symlink_to("/dev/zero")
    (latin / ".dmlignore").write_bytes("größe".encode("utf-16"))

    for folder, cause in (
        (fifo, "not a regular file"),
        (endless, "not a regular file"),
        (latin, "it is not UTF-8 text"),
    ):
        with pytest.raises(Refused, match=rf"could not read {folder}/\.dmlignore: .*{cause}"):
            packed_folder.files_of(str(folder))


def test_finds_secrets_by_name_and_content_unless_included(tmp_path: Path) -> None:
    folder = make(tmp_path / "one")
    (folder / "mylib" / "hub.py").write_text(f'login("hf_{"aB3" * 11}x")\n')
    (folder / "late").write_bytes(bytes(packed_folder.BLOCK - 8) + b"-----BEGIN OPENSSH PRIVATE KEY-----\n")
    (folder / ".netrc").write_text("machine example.com")
    (folder / "wanted.pem").touch()
    files = packed_folder.files_of(str(folder))

    found = packed_folder.secrets_of(str(folder), files, ["wanted.pem"])

    assert found == {"mylib/hub.py": "a Hugging Face token", "late": "a private key", ".netrc": "its name"}


def test_does_not_list_excluded_files(tmp_path: Path) -> None:
    files = packed_folder.files_of(str(make(tmp_path / "one")), ["*.sh"])
    assert [file.path for file in files] == [".dmlignore", "mylib/__init__.py", "same.py", "train.py"]


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="could not read the folder: there is no such folder; specify a folder"):
        packed_folder.files_of(str(tmp_path / "nothing"))


def test_keeps_the_code_archive_without_a_node(tmp_path: Path) -> None:
    folder, kept = make(tmp_path / "mine"), tmp_path / "results" / "one" / "code.tar"
    sha256 = packed_folder.digest(str(folder), packed_folder.files_of(str(folder)))
    options: dict[str, Any] = {"folder": str(folder), "exclude": [], "sha256": sha256, "earlier": "/nowhere"}

    assert packed_folder.keep_code(**options, dest=str(kept))

    assert code_folder.checksum(str(kept)) == sha256
    (folder / "train.py").write_text("changed")
    again = tmp_path / "results" / "two" / "code.tar"
    assert not packed_folder.keep_code(**options, dest=str(again))
    assert list(again.parent.iterdir()) == []
    assert packed_folder.keep_code(**{**options, "earlier": str(kept)}, dest=str(again))
    assert again.read_bytes() == kept.read_bytes()


def _key(folder: Path) -> Path:
    key = folder.parent / "key"
    key.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    return key


@pytest.mark.parametrize(
    ("plant", "path", "cause"),
    [
        (lambda folder: (folder / "requirements.txt").symlink_to(_key(folder)), "requirements.txt", "is a link"),
        (lambda folder: (folder / "more").symlink_to(_key(folder).parent), "more/key", "is a link"),
        (lambda folder: (folder / "more").symlink_to(folder / "mylib"), "more/__init__.py", "is a link"),
        (lambda folder: os.mkfifo(folder / "requirements.txt"), "requirements.txt", "not a regular file"),
        (lambda folder: _key(folder).rename(folder / "requirements.txt"), "requirements.txt", "a private key"),
        (lambda folder: (folder / ".env").write_text("A=1"), ".env", "its name"),
        (lambda folder: (folder / "big.txt").write_bytes(b"#" * (1 << 21)), "big.txt", "more than"),
        (_key, "../key", "it is not in the folder"),
    ],
)
def test_requirements_are_a_plain_file_of_the_folder(tmp_path: Path, plant: Any, path: str, cause: str) -> None:
    folder = make(tmp_path / "one")
    (folder / "requirements.txt").unlink(missing_ok=True)
    plant(folder)

    with pytest.raises(Refused, match=cause):
        packed_folder.requirements_of(str(folder), path, [])


def test_reads_included_requirements_that_look_like_a_key(tmp_path: Path) -> None:
    folder = make(tmp_path / "one")
    (folder / "key.txt").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    assert packed_folder.requirements_of(str(folder), "key.txt", ["key.txt"]).startswith("-----BEGIN")


def test_archive_hides_files_with_accounts_from_others(tmp_path: Path) -> None:
    folder = make(tmp_path / "one")
    (folder / "requirements.txt").write_text("--index-url https://user:token@pypi.example.com/simple\nsix\n")
    (folder / "requirements.txt").chmod(0o644)
    modes = {file.path: file.mode for file in packed_folder.files_of(str(folder))}
    assert (modes["requirements.txt"], modes["train.py"]) == (0o600, 0o644)


def test_refuses_data_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "train.csv").write_text("1,2\n")
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    (tmp_path / "file.csv").symlink_to(tmp_path / "real" / "train.csv")
    for path in ("linked", "linked/train.csv", "file.csv"):
        with pytest.raises(Refused, match=r"is a link, which could lead to a key; set training_data to .*/real"):
            packed_folder.data_checksum(str(tmp_path / path), 100)
    assert packed_folder.data_checksum(str(tmp_path / "real"), 100)["sha256"]


def test_reported_run_packs_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(make(tmp_path / "one"))
    sha256 = packed_folder.code_checksum(".", [])
    for folder, is_kept in ((".", True), ("", False)):
        dest = tmp_path / f"kept{is_kept}" / "code.tar"
        assert packed_folder.keep_code(folder, [], sha256, str(tmp_path / "none"), str(dest)) is is_kept


def test_large_and_missing_archives_are_not_small(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(packed_folder.MOST_SMALL_BYTES + 1))
    files = packed_folder.files_of(str(tmp_path))

    assert packed_folder.small_archive(str(tmp_path), files, "") == ""
    assert packed_folder.small_archive("", [], str(tmp_path / "large")) == ""
    assert packed_folder.small_archive("", [], str(tmp_path / "none")) == ""
