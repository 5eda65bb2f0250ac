# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the role training for a command, for which no node is asked.

Those of the command line outweigh those in dml.yml of the folder, and these outweigh those of the inventory.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any, cast

from ansible.plugins.action import ActionBase
from ansible.utils.vars import load_extra_vars

from ..module_utils.training.launch import data
from ..module_utils.training.runs import run_source, training_run
from ..module_utils.training.runs.training_options import Options
from . import folder_file
from .node_modules import Variables
from .role_options import role_options

ROLE = "training"
# Folders of the controller: a relative path is relative to where the user stands.
PATHS = ("fabric_results", "folder", "metrics", "results", "vmotion_tests")
ENVIRONMENT = "environment"
# The variable of a host with the reply to the question for its facts.
FACTS = "training_facts"


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
    def _file(self) -> folder_file.FolderOptions:
        return folder_file.read(self._folder)

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
