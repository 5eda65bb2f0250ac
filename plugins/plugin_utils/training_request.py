# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks what a command asks of the playbook train before the first contact with a node, and returns all refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from ansible.plugins.action import ActionBase

from ..module_utils.durable.calls import Result
from ..module_utils.errors import CollectionError, Refused, summary
from ..module_utils.training.launch import data, folder
from ..module_utils.training.launch.launcher_words import LauncherError, rank_command
from ..module_utils.training.runs import run_source, training_run
from ..module_utils.training.runs.rank_words import refused, split_command
from ..module_utils.training.runs.training_options import Options
from ..module_utils.training.runs.variations import variations
from . import packed_folder
from .node_modules import Variables
from .requested_options import RequestedOptions
from .training_site import earlier_run, requirements_of, with_variables

DATA = "{data}"


def run(action: ActionBase, task_vars: Variables) -> Result:
    """Return all refusals as the message of a failure."""
    try:
        requested = RequestedOptions(action, task_vars)
        o = requested.options({})
        is_new = requested.names_program or not (o["name"] or o["resume"] or o["repeat"])
        checks: list[Callable[[], object]] = [
            lambda: training_run.require_nodes(o["nodes"], task_vars["ansible_play_hosts_all"])
        ]
        checks += _of_program(o) if is_new else [lambda: _earlier(o)]
    except CollectionError as error:
        return {"failed": True, "msg": str(error)}
    errors = [error for error in map(_refusal, checks) if error]
    return {"failed": True, "msg": summary(errors)} if errors else {"changed": False}


def _refusal(check: Callable[[], object]) -> CollectionError | None:
    try:
        check()
    except CollectionError as error:
        return error
    return None


def _earlier(o: Options) -> None:
    """Check the run whose program a new one takes; a run that is followed may be known to its launcher only."""
    if source := earlier_run(o):
        run_source.require_source(with_variables(o, source), source, takes_program=True)


def _of_program(o: Options) -> Iterator[Callable[[], object]]:
    yield lambda: training_run.name_of_run(o, "run")
    yield lambda: earlier_run(o)
    yield lambda: _require_data(o)
    if o["sweep"]:
        name, size = o["name"] or "run", int(o["sweep_size"])
        yield lambda: variations(name, o["sweep"], split_command(o["command"]), o["nodes"], size)
    yield lambda: _require_runnable(o)
    if not o["folder"]:
        return
    yield lambda: requirements_of(o)
    left_out = [*o["left_out"], *([f"/{o['outputs']}"] if o["resume"] else [])]
    path, files = o["folder"], cache(lambda: packed_folder.files_of(o["folder"], left_out))
    yield lambda: folder.check(path, files(), o["folder_limit"])
    yield lambda: folder.check_secrets(path, packed_folder.secrets_of(path, files(), o["include"]))
    yield lambda: folder.check_command(path, split_command(o["command"]), files())


def _require_runnable(o: Options) -> None:
    """Refuse a command that cannot be run on the nodes."""
    words = split_command(o["command"])
    if not o["data"] and any(DATA in word for word in words):
        cause = f"it has {DATA}, and there is no training_data"
        raise Refused("training_command", "run it", cause, "set training_data, or write the path into the command")
    try:
        rank_command(words, "python", "")
    except LauncherError as error:
        raise refused(error) from error


def _require_data(o: Options) -> None:
    if o["data"]:
        data.sha256_of(o["data"], o["data_sha256"])
        if not data.is_url(o["data"]):
            packed_folder.data_files(o["data"], o["data_limit"])
