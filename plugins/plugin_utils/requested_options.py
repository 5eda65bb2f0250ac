# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the role training for a command, for which no node is asked.

Those of the command line outweigh those in dml.yml of the folder, and these outweigh those of the inventory.
dml.yml may name a file of variables, and the folder may have a pyproject.toml.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import tomllib
from collections.abc import Collection, Mapping
from functools import cache, cached_property
from typing import Any, NamedTuple, cast

from ansible.errors import AnsibleError
from ansible.parsing.utils.yaml import from_yaml
from ansible.plugins.action import ActionBase
from ansible.utils.vars import load_extra_vars

from ..module_utils.core import regular_file
from ..module_utils.core import schema as schemas
from ..module_utils.errors import Refused
from ..module_utils.training.launch import data
from ..module_utils.training.runs import run_source, training_run
from ..module_utils.training.runs.training_options import Options
from .modules import ROOT
from .node_modules import Variables
from .role_options import role_options

MOST_BYTES = 1 << 20
READ = "read the settings of the folder"
PROJECT, SOURCE = "pyproject.toml", "src"
FILE = "dml.yml"
# The keys that are options of the role under the same name.
SAME = ("command", "ranks_per_node", "data_sha256", "outputs", "outputs_every", "sweep", "attempts")
SCALARS = (str, int, float)
LINE = re.compile(r"(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*(.*)", re.ASCII)
ROLE = "training"
# Folders of the controller: a relative path is relative to where the user stands.
PATHS = ("fabric_results", "folder", "metrics", "results", "vmotion_tests")
ENVIRONMENT = "environment"
# The variable of a host with the reply to the question for its facts.
FACTS = "training_facts"


class FolderOptions(NamedTuple):
    """The options that dml.yml sets, and the patterns of files that stay on the controller because of it."""

    options: dict[str, Any]
    left_out: list[str]


@cache
def read_folder(folder: str) -> FolderOptions:
    """Return the options in a folder's dml.yml, and the variables of a project; empty without both."""
    path = os.path.join(folder, FILE)
    of_project = project_variables(folder) if folder else {}
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


def project_variables(folder: str) -> dict[str, str]:
    """Return the variables with which the ranks find the packages in the folder src of a project."""
    is_project = os.path.isfile(os.path.join(folder, PROJECT)) and os.path.isdir(os.path.join(folder, SOURCE))
    return {"PYTHONPATH": SOURCE} if is_project else {}


def _refused(path: str, cause: str) -> Refused:
    return Refused(path, "read the requirements", cause, 'write requirements.txt, or set training_requirements to ""')


def options_of(folder: str, document: Any, schema: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the options that the document of a folder sets; refuse it with all its faults.

    ``variables`` are those of the file in ``environment_from``; the document outweighs them.
    """
    path = posixpath.join(folder, FILE)
    document = {} if document is None else document
    if faults := schemas.faults(_without_values(document), schema, FILE):
        text = " ".join(faults).rstrip(".")
        raise Refused(
            path, "read the settings of the folder", text, f"correct {FILE}; docs/dml.schema.json describes its keys"
        )
    options = {key: document[key] for key in SAME if key in document}
    if "data" in document:
        # The file travels with its folder, wherever the command is typed.
        options["data"] = _beside(folder, document["data"])
    if "nodes" in document:
        nodes = document["nodes"]
        options["nodes"] = [str(nodes)] if isinstance(nodes, int) else list(nodes)
    if variables or "environment" in document:
        own = {str(name): str(value) for name, value in (document.get("environment") or {}).items()}
        options["environment"] = {**variables, **own}
    if "stun_seconds" in document.get("window", {}):
        options["stun_seconds"] = document["window"]["stun_seconds"]
    return options


def variables_of(path: str, text: str) -> dict[str, str]:
    """Return the variables in a file with a line NAME=VALUE for each; no error has a value."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        plain = line.strip()
        if not plain or plain.startswith("#"):
            continue
        match = LINE.fullmatch(plain)
        value = _unquoted(match[2]) if match else None
        if not match or value is None:
            cause = f"line {number} is not NAME=VALUE, or its quote does not end"
            raise Refused(path, "read the variables of the ranks", cause, "write one variable on each line")
        found[match[1]] = value
    return found


def _unquoted(text: str) -> str | None:
    """Return a value without its quotes, or without the comment after it; None if a quote does not end."""
    quote = text[:1] if text[:1] in ("'", '"') else ""
    if not quote:
        return re.sub(r"\s+#.*", "", text)
    end = text.find(quote, 1)
    rest = text[end + 1 :].strip()
    return None if end < 0 or (rest and not rest.startswith("#")) else text[1:end]


def _without_values(document: Any) -> object:
    """Return a document for the check, whose faults show values: not those of the environment, which may be secrets."""
    given = document.get("environment") if isinstance(document, Mapping) else None
    if not isinstance(given, Mapping):
        return document
    masked = {
        name: "" if isinstance(each, SCALARS) and not isinstance(each, bool) else None for name, each in given.items()
    }
    return {**document, "environment": masked}


def _beside(folder: str, given: str) -> str:
    return given if data.is_url(given) or given.startswith("~") else posixpath.join(folder, given)


class RequestedOptions:
    """The options of one command; ``given`` are those of ``task_vars`` that outweigh dml.yml too."""

    def __init__(self, action: ActionBase, task_vars: Variables, given: Collection[str] = ()) -> None:
        self._action, self._vars, self._given = action, task_vars, given

    @cached_property
    def extra(self) -> Mapping[str, Any]:
        """Return the variables of the command line."""
        return dict(load_extra_vars(self._action._loader))

    @cached_property
    def nodes(self) -> list[str]:
        """Return the names of the nodes of the run."""
        return list(self._nodes_and_size["nodes"])

    @property
    def names_program(self) -> bool:
        """Return whether the command line names a program: one of the inventory is for new runs."""
        return any(self.extra.get(f"{ROLE}_{key}") for key in run_source.GIVEN)

    def options(self, known: Mapping[str, object]) -> Options:
        """Return all options; ``known`` are the settings that follow from the nodes, without them their defaults."""
        options = self._read({"__training_known": known})
        file = self._file.options
        # The type of the role would split the text of a command at its commas.
        options["command"] = file["command"] if self._is_of_file("command") else self._raw("training_command")
        options["exec"] = self._raw("training_exec")
        own = file.get(ENVIRONMENT) or {}
        is_last = f"{ROLE}_{ENVIRONMENT}" in self.extra
        options[ENVIRONMENT] = {**own, **options[ENVIRONMENT]} if is_last else {**options[ENVIRONMENT], **own}
        options.update({name: from_here(options[name]) for name in PATHS if options[name]})
        if options["data"] and not data.is_url(options["data"]):
            options["data"] = from_here(options["data"])
        if options["folder"] and f"{ROLE}_steps" not in self.extra:
            # The number of an inventory is that of another program.
            options["steps"] = 0
        options["left_out"] = [_results_in(options), *self._file.left_out]
        return cast("Options", options)

    @cached_property
    def _folder(self) -> str:
        folder = str(role_options(self._action, self._vars, ROLE, only=("folder",))["folder"])
        return from_here(folder) if folder else ""

    @cached_property
    def _file(self) -> FolderOptions:
        return read_folder(self._folder)

    def _is_of_file(self, name: str) -> bool:
        return name in self._file.options and f"{ROLE}_{name}" not in self.extra and name not in self._given

    @cached_property
    def _nodes_and_size(self) -> dict[str, Any]:
        """Return the nodes, and for a sweep the number of nodes of each of its runs, which share all nodes."""
        names = ("nodes", "sweep", "sweep_size")
        o = role_options(self._action, self._vars, ROLE, self._from_file(), only=names)
        hosts = answering(self._vars)
        nodes = training_run.nodes_of(o["nodes"], hosts)
        if o["sweep"] and not o["sweep_size"] and nodes != o["nodes"]:
            return {"nodes": hosts, "sweep_size": len(nodes)}
        return {"nodes": nodes, "sweep_size": o["sweep_size"]}

    def _from_file(self) -> dict[str, object]:
        names = [name for name in self._file.options if name != ENVIRONMENT and self._is_of_file(name)]
        return {f"{ROLE}_{name}": self._file.options[name] for name in names}

    def _read(self, more: Mapping[str, object]) -> dict[str, Any]:
        chosen = {f"{ROLE}_{name}": value for name, value in self._nodes_and_size.items()}
        return role_options(self._action, self._vars, ROLE, {**self._from_file(), **chosen, **more})

    def _raw(self, name: str) -> object:
        return self._action._templar.template(self._vars[name])


def answering(task_vars: Variables) -> list[str]:
    """Return the hosts of the play that were not off when their facts were read."""
    hosts = task_vars["hostvars"]
    return [
        name for name in task_vars["ansible_play_hosts_all"] if not (hosts[name].get(FACTS) or {}).get("unreachable")
    ]


def from_here(path: str) -> str:
    """Return an absolute path: modules of the controller run in the folder of the playbook."""
    return os.path.abspath(os.path.expanduser(os.path.expandvars(path)))


def _results_in(o: Mapping[str, Any]) -> str:
    """Return the pattern that leaves the results of runs out of the copy of the folder."""
    return "/" + os.path.relpath(o["results"], o["folder"]) if o["folder"] else "/"
