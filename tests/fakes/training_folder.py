"""An ordinary folder of a training program, and its archive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plugins.module_utils.training.guest import code_folder
from plugins.module_utils.training.guest.code_folder import CodeFolder, MadeFolders
from plugins.module_utils.training.guest.shared_data import SharedData
from plugins.plugin_utils import packed_folder


def make(folder: Path) -> Path:
    """Write an ordinary folder of a training program."""
    (folder / "mylib").mkdir(parents=True)
    (folder / "mylib" / "__init__.py").write_text("RATE = 1\n")
    (folder / "train.py").write_text("import mylib\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o700)
    (folder / "same.py").symlink_to("train.py")
    for name in (".git", "mylib/__pycache__", "data"):
        (folder / name).mkdir()
        (folder / name / "left_out").touch()
    (folder / ".dmlignore").write_text("data/\n")
    return folder


def packed(folder: Path, archive: Path) -> str:
    """Pack a folder and return the checksum."""
    files = packed_folder.files_of(str(folder))
    with archive.open("wb") as output:
        packed_folder.pack(str(folder), files, output)
    assert packed_folder.digest(str(folder), files) == code_folder.checksum(str(archive))
    return packed_folder.digest(str(folder), files)


def converge(subject: CodeFolder | MadeFolders | SharedData) -> list[Any]:
    """Apply what is due and return the changes."""
    plan = subject.plan(subject.read())
    assert not plan.unmet
    if plan.due:
        subject.apply(plan)
        assert not subject.plan(subject.read()).due
    return list(plan.due)
