# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options and nodes of a program that asks nodes itself: its play has one host, and gathers no facts.

The launcher of a run that this controller has started answers for the run, so a question takes seconds with any number
of workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from ansible.plugins.action import ActionBase

from ..module_utils.core import run_request
from ..module_utils.errors import Refused
from ..module_utils.training.programs import ask
from ..module_utils.training.runs import run_source, training_run
from ..module_utils.training.runs.training_options import Options
from ..module_utils.training.runs.training_run import TrainingRun
from .modules import Modules
from .node_modules import NodeModules, Variables
from .requested_options import ROLE
from .training_site import TrainingSetup, describe
from .world import NodeWorld

# Questions are short: more nodes than Ansible has forks are asked at the same time.
AT_ONCE = 32
HOSTS = "ansible_play_hosts_all"


class Nodes(Mapping[str, dict[str, Any]]):
    """The nodes by their names; each is described when it is needed."""

    def __init__(self, names: Sequence[str], describe_one: Callable[[str], dict[str, Any]]) -> None:
        self._names, self._describe = dict.fromkeys(names), describe_one

    def __getitem__(self, name: str) -> dict[str, Any]:
        if name not in self._names:
            raise KeyError(name)
        return self._describe(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class AskingSetup(TrainingSetup):
    """The setup of such a program; the hosts are those that a play on the workers would have."""

    def __init__(self, action: ActionBase, task_vars: Variables) -> None:
        super().__init__(action, {**task_vars, HOSTS: _hosts(task_vars)})
        nodes = NodeModules(action, self._vars, at_least_at_once=AT_ONCE)
        self.calls = NodeWorld(Modules(action, self._vars), nodes, ROLE)
        self._place = ("", "")

    @cached_property
    def options(self) -> Options:
        """Return the options; those that follow from facts have their defaults."""
        return {**self._requested.options({}), "interfaces": {}}

    def all_nodes(self) -> Mapping[str, dict[str, Any]]:
        """Return every node of the inventory's workers within the limit."""
        return Nodes(self._vars[HOSTS], self._described_here)

    def named(self, name: str = "") -> TrainingRun:
        """Return the named run with the manifest of its latest attempt here; only its owner's files are touched."""
        o: Options = {**self.options, "name": name or self.options["name"]}
        if not o["name"]:
            raise Refused("training_name", "find the run", "it is empty", "name a run that dml.vsphere.runs lists")
        known = run_source.latest_attempt(self._own, training_run.name_of_run(o, ""))
        run_source.require_owner(o, known)
        own = str(known.get("name") or o["name"])
        run = TrainingRun({**o, "name": own}, self.all_nodes(), own, own, self.requested_by, known=known)
        self._place = (str(known.get("launcher") or ""), run.dir)
        return run

    def requested(self) -> TrainingRun:
        """Return the named run with its program; if this controller does not know it, all workers are asked."""
        run = self.named()
        known = ask.known_manifest(self.site, run)
        if not known:
            return run
        run = replace(run, o=run_source.with_followed(run.o, known), known=known)
        self._place = (run.launcher, run.dir)
        return run

    def _described_here(self, name: str) -> dict[str, Any]:
        """Return how a node is reached, from its variables; those of the host of the task are not those of others."""
        hosts = self._vars["hostvars"]
        own = hosts.raw_get(str(self._vars["inventory_hostname"]))
        of_play = {key: value for key, value in self._vars.items() if key not in own or key in (HOSTS, "hostvars")}
        facts = {"ansible_local": {"dml_node": {"user": self._owner}}}
        return describe(
            self._action, {**of_play, **hosts.raw_get(name), "ansible_facts": facts, HOSTS: self._vars[HOSTS]}
        )

    @cached_property
    def _owner(self) -> str:
        """Return the user of the run, as its launcher reports the owner of its folder; empty for the login user."""
        launcher, folder = self._place
        if launcher not in self._vars[HOSTS]:
            return ""
        found = (
            self.calls.on(launcher, "ansible.builtin.stat", {"path": folder, "get_checksum": False}).get("stat") or {}
        )
        owner, login = str(found.get("pw_name") or ""), self._vars["hostvars"][launcher].get("ansible_user")
        return "" if owner in ("root", login) else owner


def _hosts(task_vars: Variables) -> list[str]:
    """Return the workers within the limit, in the order of the inventory; the play has only the first of them."""
    hosts = list(task_vars[HOSTS])
    limit = tuple(run_request.split(task_vars.get("ansible_limit") or ""))
    request = run_request.RunRequest((), groups=task_vars["groups"], limit=limit)
    workers = run_request.in_order(run_request.worker_pattern(task_vars.get("guests")), request)
    return workers if workers[:1] == hosts else hosts
