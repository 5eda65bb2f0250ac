# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads dml.yml in the user's folder, the file of variables that it names, and pyproject.toml."""

from __future__ import annotations

import json
import os
import tomllib
from functools import cache
from typing import Any, NamedTuple

from ansible.errors import AnsibleError
from ansible.parsing.utils.yaml import from_yaml

from ..module_utils.core import regular_file
from ..module_utils.errors import Refused
from ..module_utils.training.launch.folder_settings import FILE, options_of, variables_of
from .modules import ROOT

MOST_BYTES = 1 << 20
READ = "read the settings of the folder"
PROJECT, SOURCE = "pyproject.toml", "src"


class FolderOptions(NamedTuple):
    """The options that dml.yml sets, and the patterns of files that stay on the controller because of it."""

    options: dict[str, Any]
    left_out: list[str]


@cache
def read(folder: str) -> FolderOptions:
    """Return the options in a folder's dml.yml, and the variables of a project; empty without both."""
    path = os.path.join(folder, FILE)
    of_project = variables(folder) if folder else {}
    if not folder or not os.path.isfile(path):
        return FolderOptions({"environment": of_project} if of_project else {}, [])
    try:
        # No error has content of the file, which may be a secret.
        document = from_yaml(_text(path), file_name=path, show_content=False)
    except AnsibleError as error:
        mark = getattr(error.__cause__, "problem_mark", None)
        cause = f"{error.message}{f' Line {mark.line + 1}' if mark else ''}"
        raise Refused(path, READ, cause, "correct it") from error
    source = document.get("environment_from") if isinstance(document, dict) else None
    named = os.path.normpath(source) if isinstance(source, str) and source else ""
    found = {**of_project, **(_variables(folder, named) if named else {})}
    options = options_of(folder, document, _schema(), found)
    return FolderOptions(options, [f"/{each}" for each in (FILE, named) if each and not os.path.isabs(each)])


def _variables(folder: str, name: str) -> dict[str, str]:
    path = os.path.join(folder, os.path.expanduser(name))
    return variables_of(path, _text(path))


def _text(path: str) -> str:
    try:
        return regular_file.content(path, MOST_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise Refused(path, READ, str(cause), f"correct {FILE}") from error


@cache
def _schema() -> dict[str, object]:
    return dict(json.loads((ROOT / "docs" / "dml.schema.json").read_text(encoding="utf-8")))


def dependencies(path: str, text: str, is_requested: bool) -> str:
    """Return the dependencies in a pyproject.toml as requirements; without a list, refuse the file if it is requested.

    A list that only the build of the package computes is unknown here.
    """
    try:
        given = tomllib.loads(text).get("project", {}).get("dependencies")
    except (tomllib.TOMLDecodeError, AttributeError, RecursionError) as error:
        raise _refused(path, str(error)) from error
    if isinstance(given, list) and all(isinstance(each, str) and "\n" not in each for each in given):
        return "".join(f"{each}\n" for each in given)
    if given is not None or is_requested:
        raise _refused(path, "it has no list of texts as dependencies of the project")
    return ""


def variables(folder: str) -> dict[str, str]:
    """Return the variables with which the ranks find the packages in the folder src of a project."""
    is_project = os.path.isfile(os.path.join(folder, PROJECT)) and os.path.isdir(os.path.join(folder, SOURCE))
    return {"PYTHONPATH": SOURCE} if is_project else {}


def _refused(path: str, cause: str) -> Refused:
    return Refused(path, "read the requirements", cause, 'write requirements.txt, or set training_requirements to ""')
