"""The variables in dml.yml of a folder: no error shows them, and no node chooses whose they are."""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from plugins.module_utils.core import schema
from plugins.module_utils.errors import Refused
from plugins.module_utils.training.results.manifest import REPORTED
from plugins.plugin_utils import requested_options
from plugins.plugin_utils.requested_options import options_of, variables_of
from plugins.plugin_utils.training_site import requirements_file, requirements_of, with_variables

SCHEMA = json.loads((Path(__file__).parents[4] / "docs" / "dml.schema.json").read_text())
JUDGE = jsonschema.Draft202012Validator(SCHEMA)


def test_a_reported_run_reads_no_folder(tmp_path: Path) -> None:
    (tmp_path / requested_options.FILE).write_text("environment: {SEED: 7}\ncommand: python train.py\n")
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
    requested_options.read_folder.cache_clear()
    (tmp_path / requested_options.FILE).write_text("environment: {PYTHONPATH: lib}\n")
    assert with_variables({"environment": {}}, {"folder": str(tmp_path)})["environment"] == {"PYTHONPATH": "lib"}


@pytest.mark.parametrize("text", ["environment: {TOKEN: s3cret", "environment: {TOKEN: [s3cret]}", "- s3cret: [\n"])
def test_no_error_shows_a_value(tmp_path: Path, text: str) -> None:
    (tmp_path / requested_options.FILE).write_text(text)

    with pytest.raises(Refused) as raised:
        requested_options.read_folder(str(tmp_path))

    assert "s3cret" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    ("document", "options"),
    [
        (None, {}),
        ({"command": "python train.py --lr 0.1"}, {"command": "python train.py --lr 0.1"}),
        ({"nodes": 2, "attempts": 3}, {"nodes": ["2"], "attempts": 3}),
        ({"nodes": ["w2", "w1"], "ranks_per_node": 8}, {"nodes": ["w2", "w1"], "ranks_per_node": 8}),
        ({"data": "../images", "outputs_every": 60}, {"data": "/mine/../images", "outputs_every": 60}),
        ({"data": "https://h/d", "data_sha256": "ab"}, {"data": "https://h/d", "data_sha256": "ab"}),
        ({"data": "/nfs/d", "outputs": "out"}, {"data": "/nfs/d", "outputs": "out"}),
        ({"environment": {"A": 1, "T": "mine"}}, {"environment": {"A": "1", "T": "mine", "U": "file"}}),
        ({"sweep": {"lr": [0.1, 0.01]}}, {"sweep": {"lr": [0.1, 0.01]}}),
        ({"window": {"stun_seconds": 60}}, {"stun_seconds": 60}),
    ],
)
def test_options_follow_from_the_document(document: Any, options: dict[str, Any]) -> None:
    variables = {"T": "file", "U": "file"} if "environment" in options else {}

    assert options_of("/mine", document, SCHEMA, variables) == options


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ([], "dml.yml must be a mapping, and is []"),
        ({"attemts": 2}, "dml.yml has the unknown key 'attemts': did you mean 'attempts'?"),
        ({"nodes": 0}, "nodes must be 1 or more, and is 0"),
        ({"nodes": []}, "nodes must have 1 or more entries, and has 0"),
        ({"nodes": True}, "nodes must be a whole number or a list, and is True"),
        ({"command": {"a": 1}}, "command must be text in quotes or a list"),
        ({"sweep": {"lr": 0.1}}, "sweep.lr must be a list, and is 0.1"),
        ({"window": {"stun": 1}}, "window has the unknown key 'stun'"),
        ({"environment": {"A": ["hunter22"]}}, "environment.A must be text in quotes or a whole number or a number"),
        ({"attempts": 0, "data": 1}, "attempts must be 1 or more, and is 0. data must be text in quotes, and is 1"),
    ],
)
def test_refuses_a_document_with_all_its_faults(document: Any, sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        options_of("/mine", document, SCHEMA, {})

    assert sentence in str(refused.value)
    assert "/mine/dml.yml: could not read" in str(refused.value) and "hunter22" not in str(refused.value)
    assert not JUDGE.is_valid(document), "editors find it too"
    assert schema.faults(document, SCHEMA), "the checker agrees"


@pytest.mark.parametrize(
    ("line", "variables"),
    [
        ("A=b c", {"A": "b c"}),
        ("  export A = 'b # c' # d", {"A": "b # c"}),
        ('A="x=y"', {"A": "x=y"}),
        ("A=b # c", {"A": "b"}),
        ("A=", {"A": ""}),
        ("# A=b", {}),
    ],
)
def test_reads_variables_as_shells_write_them(line: str, variables: dict[str, str]) -> None:
    assert variables_of(".env", f"\n{line}\n") == variables


@pytest.mark.parametrize("line", ["hunter22", "1A=hunter22", "A='hunter22", "A='x' hunter22", "A-B=hunter22"])
def test_refuses_a_line_without_a_variable(line: str) -> None:
    with pytest.raises(Refused, match=r"line 2 is not NAME=VALUE") as refused:
        variables_of(".env", f"A=b\n{line}")

    assert "hunter22" not in str(refused.value)
