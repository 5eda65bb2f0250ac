# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: the hosts of a play, if the request of the user makes sense."""

from __future__ import annotations

DOCUMENTATION = r"""
name: run_request
short_description: The hosts of a play, after a check of the command line and the inventory
version_added: 1.0.0
description:
  - Each playbook of this collection reads its hosts with this lookup, so that a run with a wrong name ends with an
    error before it changes anything.
  - It rejects an inventory without clusters or workers, a host or group of C(--limit) or a tag that does not exist, and
    extra variables that look like variables of the collection and do not exist.
  - It also rejects tags that select no work, and options that leave out checks, such as C(--start-at-task) and
    C(--skip-tags always).
  - For a host of a play, it returns the sentences about variables of the inventory that do not exist or have a wrong
    type, and about options that allow harm, such as C(confirm), which belong on the command line.
  - If the command line names only playbooks of this collection, or playbooks that only import them, child processes of
    the run, such as ssh, do not get E(VMWARE_USER) and E(VMWARE_PASSWORD). The modules get both from
    P(dml.vsphere.login#lookup). The facts of nodes are then not variables, whatever C(inject_facts_as_vars) says.
  - A host with a fact that is named like a variable of the collection is rejected.
  - If AWX started the run, an extra variable of this collection with an empty text is an unanswered question of a
    survey, and does not override the inventory.
options:
  _terms: {description: The name of the playbook., required: true}
  hosts:
    description:
      - The host pattern of the play. V(workers) is replaced by the variable C(guests).
      - Without it, the lookup checks the variables of the host.
    type: str
    default: ""
  first:
    description: Whether to return only the first of the hosts, for a program that asks the others itself.
    type: bool
    default: false
  optional: {description: Whether the inventory may have no such hosts., type: bool, default: false}
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Prepare the ESXi hosts of every cluster
  hosts: "{{ lookup('dml.vsphere.run_request', 'hosts', hosts='clusters') }}"
  gather_facts: false
  tasks: []
"""

RETURN = r"""
_raw:
  description:
    - The host pattern of the play; an empty list if the tags of the run select no part of the playbook.
    - Without O(hosts), the sentences about variables.
  type: list
  elements: raw
"""

import os
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ansible import constants, context
from ansible.errors import AnsibleError
from ansible.plugins.loader import filter_loader
from ansible.plugins.lookup import LookupBase
from ansible.utils.vars import load_extra_vars
from ansible_collections.dml.vsphere.plugins.module_utils.core import child_environment, run_request, variable_types
from ansible_collections.dml.vsphere.plugins.module_utils.core.run_request import RunRequest
from ansible_collections.dml.vsphere.plugins.module_utils.errors import CollectionError
from ansible_collections.dml.vsphere.plugins.plugin_utils import facts
from ansible_collections.dml.vsphere.plugins.plugin_utils.interruption import keep_output, pause_before_the_end
from ansible_collections.dml.vsphere.plugins.plugin_utils.known_variables import COLLECTION, known, specs
from ansible_collections.dml.vsphere.plugins.plugin_utils.run_limit import limit_of

DEBUG = (
    "ansible-playbook: could not start: ANSIBLE_DEBUG is set, with which ansible-core writes the password of vCenter "
    "to its output; unset it, and use -vvv"
)
# With these options ansible-playbook does not run anything.
LISTING = ("syntax", "listhosts", "listtasks", "listtags")
# The line that makes a file the settings of an inventory plugin.
PLUGIN = re.compile(rb"^['\"]?plugin['\"]?\s*:", re.MULTILINE)
IMPORT = ("import_playbook", "ansible.builtin.import_playbook")
# One filter per file: Ansible then loads the imports of that file too.
OFTEN_USED = ("package_specs", "network_card")


def extra_variables(loader: object) -> dict[str, object]:
    """Return the extra variables without those that AWX passes for unanswered questions of a survey.

    Ansible has one dictionary of them, so that the inventory's values apply in all plays from the first one on.
    """
    extra: dict[str, Any] = load_extra_vars(loader)
    for name in run_request.unanswered(extra, specs()):
        del extra[name]
    return extra


@cache
def load_filters() -> None:
    """Load the filters that many tasks use.

    Ansible runs each task in a new process, which compiles a filter again unless the process of the play has loaded it.
    """
    for name in OFTEN_USED:
        filter_loader.get(f"dml.vsphere.{name}")


class LookupModule(LookupBase):  # type: ignore[misc]  # ansible is not read by mypy
    """The hosts of a play, or the sentences about the variables of a host."""

    def run(self, terms: list[str], variables: dict[str, object] | None = None, **options: object) -> list[Any]:
        extra = extra_variables(self._loader)
        self.set_options(var_options=variables, direct=options)
        given, (playbook,) = variables or {}, terms
        pattern = self.get_option("hosts")
        if not pattern:
            return self._of_inventory(given)
        if pattern == run_request.WORKERS:
            pattern = run_request.worker_pattern(self._templar.template(given.get("guests")) or pattern)
        if any(context.CLIARGS.get(option) for option in LISTING):
            return [pattern]
        _protect_login(self._loader)
        load_filters()
        keep_output()
        if playbook == "hosts":
            pause_before_the_end()
        request = self._request(given, playbook, extra)
        if self.get_option("optional"):
            request = replace(request, needs_workers=False)
        found = run_request.problems(known(), request, playbook, pattern)
        if found := found + variable_types.wrong_types(specs(), extra, frozenset(extra)):
            raise AnsibleError("; ".join(found))
        unwanted = not request.needs_workers and (
            not run_request.evaluate([pattern], request.groups) or self._is_left_out(given, request, playbook)
        )
        if unwanted or not run_request.is_selected(known(), request, playbook):
            return []
        return run_request.in_order(pattern, request)[:1] if self.get_option("first") else [pattern]

    def _request(self, given: dict[str, Any], playbook: str, extra: dict[str, Any]) -> RunRequest:
        """Return the request from the command line and the variables of the play."""
        named = tuple(_name(argument) for argument in context.CLIARGS.get("args", ()))
        groups = {name: list(members) for name, members in given.get("groups", {}).items()}
        return RunRequest(
            playbooks=named or (playbook,),
            extra=tuple(extra),
            tags=() if "all" in (tags := tuple(given.get("ansible_run_tags", ()))) else tags,
            skipped_tags=tuple(given.get("ansible_skip_tags", ())),
            limit=limit_of(given),
            groups=groups,
            start_at_task=context.CLIARGS.get("start_at_task") or "",
            sources=tuple(map(str, given.get("ansible_inventory_sources", ()))),
            needs_workers=self._needs_workers(given, playbook, named),
        )

    def _needs_workers(self, given: dict[str, object], playbook: str, named: tuple[str, ...]) -> bool:
        """Return whether the user asked for this playbook: within site, guests=true asks for guests."""
        requested = self._asks(given.get("guests"))
        ours = [name for name in named if name in known().playbooks]
        return playbook in named or not ours or (requested and not given.get("ansible_check_mode"))

    def _is_left_out(self, given: dict[str, Any], request: RunRequest, playbook: str) -> bool:
        """Return whether no variable asks site for its part: Ansible is slow at skipping each task."""
        # Before the first play, Ansible has no variables of hosts.
        if "site" not in request.playbooks or "hostvars" not in given:
            return False
        group = run_request.WORKERS if playbook == "guests" else run_request.CLUSTERS
        hosts = [given["hostvars"][host] for host in request.groups.get(group, [])]
        if playbook == "guests":
            return not any(self._asks(reported.get("guests")) for reported in [given, *hosts])
        needed = known().playbooks[playbook].get("needs", ())
        return bool(needed) and not any(name in host for host in hosts for name in needed)

    def _asks(self, guests: object) -> bool:
        """Return whether a value of the variable ``guests`` asks for guests."""
        return str(self._templar.template(guests or "")).lower() not in run_request.FALSE

    def _missing_workers(self, given: dict[str, Any]) -> list[str]:
        """Return the sentence about workers that site is asked to prepare and that this run cannot have."""
        request = self._request(given, "site", load_extra_vars(self._loader))
        guests = self._templar.template(given.get("guests"))
        if "site" not in request.playbooks or not self._asks(guests):
            return []
        if not run_request.is_selected(known(), request, "guests"):
            return []
        hosts = [given["hostvars"][host] for host in request.groups.get(run_request.CLUSTERS, [])]
        return [
            *run_request.missing_workers(
                request,
                run_request.worker_pattern(guests),
                is_dynamic=any(_is_dynamic(Path(source)) for source in request.sources),
                is_described=any(host.get("worker_vms") for host in hosts),
            )
        ]

    def _of_inventory(self, given: dict[str, Any]) -> list[str]:
        """Return the sentences about the variables of the host from the inventory and about extra variables."""
        host = given["inventory_hostname"]
        try:
            facts.require_no_variables(host, given.get("ansible_facts"))
        except CollectionError as error:
            raise AnsibleError(str(error)) from error
        names = set(given["hostvars"][host]) - set(given.get("ansible_facts", ()))
        # Templates stay as they are: some can be evaluated only later.
        values = {name: value for name, value in given["hostvars"].raw_get(host).items() if name in names}
        extra = frozenset(extra_variables(self._loader))
        wrong = [
            *run_request.unknown_variables(known(), names),
            *run_request.harmful_variables(names - extra),
            *variable_types.wrong_types(specs(), values, extra),
        ]
        remedy = ["correct or remove these variables"] if wrong else []
        return [*wrong, *remedy, *self._missing_workers(given)]


def _is_dynamic(source: Path) -> bool:
    """Return whether a source of the inventory can find other hosts when it is read again."""
    if source.is_dir():
        return any(_is_dynamic(child) for child in sorted(source.iterdir()) if not child.name.startswith("."))
    if not source.is_file():
        return False
    # A script, or the settings of an inventory plugin. The file may have tags of Ansible, such as !vault.
    return os.access(source, os.X_OK) or bool(PLUGIN.search(source.read_bytes()))


def _is_ours(argument: str, loader: Any) -> bool:
    """Return whether a playbook of the command line has only plays of this collection: others may need the login."""
    path = Path(argument)
    if path.suffix not in {".yml", ".yaml"}:
        return argument.startswith("dml.vsphere.")
    if path.resolve() in {COLLECTION / "site.yml", *(COLLECTION / "playbooks").iterdir()}:
        return True
    try:
        plays = loader.load_from_file(str(path))
    except AnsibleError:
        return False
    return isinstance(plays, list) and all(map(_imports_ours, plays))


def _imports_ours(play: object) -> bool:
    """Return whether an entry of a playbook imports a playbook of this collection."""
    imported = [play.get(key) for key in IMPORT if key in play] if isinstance(play, dict) else []
    return bool(imported) and all(str(name).startswith("dml.vsphere.") for name in imported)


def _name(argument: str) -> str:
    """Return the name of a playbook from its path or its full name."""
    path = Path(argument)
    return path.stem if path.suffix in {".yml", ".yaml"} else argument.rpartition(".")[2]


def _protect_login(loader: object) -> None:
    """Refuse a run that shows the password, and keep the login from child processes of this collection's playbooks."""
    if constants.DEFAULT_DEBUG:
        raise AnsibleError(DEBUG)
    if all(_is_ours(argument, loader) for argument in context.CLIARGS.get("args", ())):
        child_environment.hide_login(os.environ)
        facts.keep_out_of_variables()
