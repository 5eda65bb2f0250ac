# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Equal folders give equal archives, without the files that stay on the controller."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plugins.module_utils.errors import Refused
from plugins.plugin_utils import packed_folder
from tests.fakes.training_folder import make, packed


def test_only_content_names_and_the_permission_to_execute_count(tmp_path: Path) -> None:
    one, two = make(tmp_path / "one"), make(tmp_path / "two")
    os.utime(two / "train.py", (1, 1))
    (two / "train.py").chmod(0o600)
    (two / ".git" / "more").touch()
    assert packed(one, tmp_path / "one.tar") == packed(two, tmp_path / "two.tar")
    (two / "train.py").chmod(0o755)
    assert packed(one, tmp_path / "one.tar") != packed(two, tmp_path / "two.tar")


def test_the_files_that_stay_are_not_listed(tmp_path: Path) -> None:
    files = packed_folder.files_of(str(make(tmp_path / "one")), ["*.sh"])
    assert [file.path for file in files] == [".dmlignore", "mylib/__init__.py", "same.py", "train.py"]


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="could not read the folder: there is no such folder; specify a folder"):
        packed_folder.files_of(str(tmp_path / "nothing"))
