# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of nodes are data: no fact becomes a variable of a playbook, and one with the name of a variable ends the run.

With inject_facts_as_vars, which ansible-core 2.19 to 2.22 have on by default, each fact is a variable that outranks the
inventory and the defaults of roles, and any module on a node can return facts. A node would choose commands of the
controller.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from ansible import constants
from ansible.executor import task_executor
from ansible.vars import manager

from ..module_utils.core.names import printable
from ..module_utils.errors import Refused
from .known_variables import known

SETTING = "ANSIBLE_INJECT_FACT_VARS"
# Where the releases of ansible-core keep the setting for a process; the others read it each time.
KEPT = ((constants, "INJECT_FACTS_AS_VARS"), (manager, "_INJECT_FACTS"), (task_executor, "_INJECT_FACTS"))
# The results of tasks, and a fact that playbooks set, with names that are not private.
REGISTERED = frozenset(
    {"acceptance_canary_back", "acceptance_canary_hosts", "acceptance_canary_lock", "acceptance_canary_seen"}
    | {"acceptance_seen", "conformance_seen", "depot_folder", "discover_existing", "discover_found", "guest_stack"}
    | {"guest_versions", "judged", "record_answer", "record_made", "training_fabric", "training_listed"}
    | {"training_facts", "training_measured", "training_node", "training_run", "training_started", "training_stopped"}
    | {"training_shown", "training_fetched", "training_executed"}
)
SHOWN = 5


def keep_out_of_variables() -> None:
    """Let the plays of this process read facts from ``ansible_facts`` only, without the ansible.cfg of the collection.

    A play can neither set this nor ask for it.
    """
    os.environ[SETTING] = "false"
    for module, name in KEPT:
        if hasattr(module, name):
            setattr(module, name, False)


def require_no_variables(node: str, facts: Mapping[str, object] | None) -> None:
    """Refuse a node with a fact that is named like a variable of the collection, or of a connection."""
    planted = sorted(_planted(facts or {}))
    if planted:
        more = f" and {len(planted) - SHOWN} more" if len(planted) > SHOWN else ""
        cause = f"they are named like variables of this collection: {', '.join(planted[:SHOWN])}{more}"
        remedy = f"check who is root on {node}, or leave it out with --limit '!{node}'"
        raise Refused(node, "use its facts", cause, remedy)


def require_none_on_workers(task_vars: Mapping[str, Any]) -> None:
    """Refuse facts that are named like variables, on each worker and each host of the play."""
    hosts = task_vars["hostvars"]
    for name in dict.fromkeys((*task_vars["ansible_play_hosts_all"], *(task_vars["groups"].get("workers") or []))):
        require_no_variables(name, hosts[name].get("ansible_facts") if name in hosts else None)


def _planted(facts: Iterable[str]) -> set[str]:
    return {printable(str(name))[:80] for name in facts if str(name) in _variables() or _is_private(str(name))}


def _is_private(name: str) -> bool:
    """Return whether a name is that of an internal variable of a role, or of one with which Ansible connects."""
    is_connection = name.startswith(("become", "ssh_")) and not name.startswith("ssh_host_key_")
    is_interpreter = name.endswith("_interpreter") and not name.startswith("discovered_")
    return name.startswith("__") or is_connection or is_interpreter


@cache
def _variables() -> frozenset[str]:
    """Return the names that no fact may have; ``ansible_facts`` has names without their prefix ``ansible_``."""
    of_ansible = {each.removeprefix("ansible_") for each in constants.COMMON_CONNECTION_VARS}
    return REGISTERED | of_ansible | known().variables | known().all_options
