"""The variables in dml.yml of a folder: no error shows them, and no node chooses whose they are."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.training.results.manifest import REPORTED
from plugins.plugin_utils import folder_file
from plugins.plugin_utils.training_site import requirements_file, requirements_of, with_variables


def test_a_reported_run_reads_no_folder(tmp_path: Path) -> None:
    (tmp_path / folder_file.FILE).write_text("environment: {SEED: 7}\ncommand: python train.py\n")
    known = {"folder": str(tmp_path)}

    assert with_variables({"environment": {}}, known)["environment"] == {"SEED": "7"}
    assert with_variables({"environment": {}}, {**known, REPORTED: True})["environment"] == {}


OPTIONS: dict[str, Any] = {"requirements": "requirements.txt", "image": "", "backend": "mpi", "include": []}
PROJECT = """[project]\nname = "mine"\ndependencies = ["tqdm>=4", "lightning[extra]; python_version>'3'"]\n"""


@pytest.mark.parametrize(
    ("text", "more", "expected"),
    [
        (PROJECT, {}, ("pyproject.toml", "tqdm>=4\nlightning[extra]; python_version>'3'\n")),
        (PROJECT, {"image": "pytorch:24"}, ("", "")),
        (PROJECT, {"backend": "kubernetes"}, ("", "")),
        ("[tool.ruff]\n", {}, ("pyproject.toml", "")),
        ("[tool.ruff]\n", {"requirements": "pyproject.toml"}, "has no list of texts as dependencies"),
        ("[project\n", {}, "Expected"),
        ('[project]\ndependencies = "tqdm"\n', {}, "has no list of texts"),
        ('[project]\ndependencies = ["a\\n--index-url=https://b"]\n', {}, "has no list of texts"),
    ],
)
def test_project_is_installed_by_its_dependencies(
    tmp_path: Path, text: str, more: dict[str, str], expected: tuple[str, str] | str
) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    options = {**OPTIONS, "folder": str(tmp_path)}

    if isinstance(expected, str):
        with pytest.raises(Refused, match=expected):
            requirements_of({**options, **more})
    else:
        found = {**options, **more}
        assert (requirements_file(found), requirements_of(found)) == expected


def test_requirements_file_outweighs_the_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "requirements.txt").write_text("numpy\n")
    options = {**OPTIONS, "folder": str(tmp_path)}

    assert requirements_of(options) == "numpy\n"


def test_ranks_find_the_packages_of_a_project(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    assert with_variables({"environment": {}}, {"folder": str(tmp_path)})["environment"] == {"PYTHONPATH": "src"}
    folder_file.read.cache_clear()
    (tmp_path / folder_file.FILE).write_text("environment: {PYTHONPATH: lib}\n")
    assert with_variables({"environment": {}}, {"folder": str(tmp_path)})["environment"] == {"PYTHONPATH": "lib"}


@pytest.mark.parametrize("text", ["environment: {TOKEN: s3cret", "environment: {TOKEN: [s3cret]}", "- s3cret: [\n"])
def test_no_error_shows_a_value(tmp_path: Path, text: str) -> None:
    (tmp_path / folder_file.FILE).write_text(text)

    with pytest.raises(Refused) as raised:
        folder_file.read(str(tmp_path))

    assert "s3cret" not in "".join(traceback.format_exception(raised.value))
