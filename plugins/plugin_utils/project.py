# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Python project as the user's folder: pip installs its dependencies, and the ranks import its code from the copy."""

from __future__ import annotations

import os
import tomllib

from ..module_utils.errors import Refused

PROJECT, SOURCE = "pyproject.toml", "src"


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
