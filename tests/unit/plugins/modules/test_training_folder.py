"""The modules that run for a folder of a training program, with this machine as the node."""

from __future__ import annotations

import sys
from pathlib import Path

from plugins.module_utils.training.results.outputs import copy_outputs
from plugins.modules import training_folder
from plugins.plugin_utils import packed_folder
from tests.fakes.calling import here
from tests.fakes.training_folder import make, packed

from .test_continuity_verdict import call


def test_copies_outputs_only_once(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "model").write_text("weights")
    paths = {"folder": str(tmp_path / "there"), "dest": str(tmp_path / "here")}
    copied = here(copy_outputs, node="w1", reach=["sh", "-c"], limit=1, **paths)
    assert (copied["changed"], list(copied["state"])) == (True, ["model"])
    assert not here(copy_outputs, node="w1", reach=["sh", "-c"], limit=1, **paths)["changed"]


def test_check_mode_names_the_environment_and_creates_nothing(tmp_path: Path) -> None:
    environment = {"python": sys.executable, "requirements": "rich", "store": str(tmp_path / "environments")}
    paths = {"path": str(tmp_path), "dest": str(tmp_path / "work"), "store": str(tmp_path / "store")}
    planned = call(training_folder, sha256="a" * 64, environment=environment, _ansible_check_mode=True, **paths)
    assert planned["changed"]
    assert planned["python"].startswith(str(tmp_path / "environments"))
    assert not (tmp_path / "environments").exists()


def test_check_mode_does_not_need_the_archive(tmp_path: Path) -> None:
    paths = {"path": str(tmp_path), "dest": str(tmp_path / "work"), "store": str(tmp_path / "store")}
    planned = call(training_folder, sha256="a" * 64, once=True, _ansible_check_mode=True, **paths)
    assert (planned["changed"], planned["missing"]) == (True, True)
    assert not (tmp_path / "work").exists()


def test_small_archive_is_unpacked_and_not_repeated(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    files = packed_folder.files_of(str(folder))
    content = packed_folder.small_archive(str(folder), files, "")
    paths = {"path": str(folder), "dest": str(tmp_path / "work"), "store": str(tmp_path / "store")}

    answer = call(training_folder, sha256=packed(folder, tmp_path / "kept.tar"), content=content, **paths)

    assert (tmp_path / "work" / "train.py").read_text() == "import mylib\n"
    assert (answer["missing"], content in str(answer)) == (False, False)
    assert packed_folder.small_archive("", [], str(tmp_path / "kept.tar")) == content
