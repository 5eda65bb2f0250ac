# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs modules for an action: on the controller, or on a host of the inventory."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ansible import constants, context
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import action_loader, connection_loader

from ..module_utils.core.child_environment import account_names
from ..module_utils.durable.calls import Arguments, Result
from .follow import FollowingAction
from .node_modules import NodeModules, Variables, explained

COLLECTION, ROOT = "dml.vsphere", Path(__file__).resolve().parents[2]
# The options of the connection to vCenter, which the action has for all modules that it runs.
CONNECTION = (
    "hostname",
    "username",
    "password",
    "port",
    "validate_certs",
    "ca_path",
    "tls_fingerprint",
    "proxy",
    "timeout",
    "vcenter_uuid",
)
KUBECONFIG, KUBECONFIGS = "kubeconfig", ("KUBECONFIG", "K8S_AUTH_KUBECONFIG")
WITHOUT_VCENTER = ("continuity_verdict", "mpijob_info")
PYTHON = "ansible_python_interpreter"
WITH_PROGRESS = ("esxi_image", "esxi_power", "vmotion")
# Others may change the site while a long check runs.
KEPT_SECONDS = 600.0


def as_text(value: object) -> str:
    """Return a warning of Ansible as its text, and any other object as Python shows it."""
    return str(getattr(getattr(value, "event", None), "msg", value))


def from_here(path: str) -> str:
    """Return a path of the user, or several of KUBECONFIG: they are relative to the folder in which Ansible started."""
    parts = [os.path.expanduser(os.path.expandvars(part)) for part in path.split(os.pathsep)]
    return os.pathsep.join(os.path.abspath(part) if part else "" for part in parts)


def _absolute(options: dict[str, Any]) -> dict[str, object]:
    """Return options whose kubeconfig is absolute: a module runs in the folder of the playbook."""
    return {**options, **({KUBECONFIG: from_here(options[KUBECONFIG])} if options.get(KUBECONFIG) else {})}


def _kubernetes_environment() -> dict[str, str]:
    """Return the variables that name a kubeconfig, with absolute paths."""
    return {name: from_here(os.environ[name]) for name in KUBECONFIGS if os.environ.get(name)}


def _without_account(name: str) -> dict[str, str]:
    """Return an environment that hides the vCenter account from modules that do not connect to vCenter."""
    return {} if _connects(name) else dict.fromkeys(account_names(os.environ), "")


def _connects(name: str) -> bool:
    """Return whether a module connects to vCenter; those of other collections do not."""
    return "." not in name and name not in WITHOUT_VCENTER


class Modules:
    """Runs modules and returns their results; an unreachable host is a failure like any other."""

    def __init__(self, action: ActionBase, task_vars: Variables) -> None:
        self._action, self._task_vars = action, task_vars
        self.environment: dict[str, str] = {}

    @property
    def task(self) -> tuple[ActionBase, Variables]:
        """Return the action whose task runs, and the variables of its host."""
        return self._action, self._task_vars

    def here(self, name: str, options: Arguments) -> dict[str, Any]:
        """Run a module on the controller, and show its progress."""
        action = self._local(name, self._with_connection(name, options))
        return self._ended(action, name, lambda: self._run(action, name))

    def planned(self, name: str, options: Arguments) -> dict[str, Any]:
        """Run a module on the controller in check mode."""
        action = self._local(name, self._with_connection(name, options))
        action._task.check_mode = True
        run = partial(self._ended, action, name, lambda: action._execute_module(task_vars=self._here))
        return planned_once([name, dict(action._task.args), self.environment], run)

    @property
    def host(self) -> str:
        """Return the host of the task, or the one to which it is delegated."""
        return str(self._action._task.delegate_to or self._task_vars["inventory_hostname"])

    def on(self, host: str, user: str, name: str, options: Arguments) -> dict[str, Any]:
        """Run a module on a host of the inventory, as a user, by default that of the task."""
        nodes = NodeModules(self._action, self._task_vars)
        return (nodes.as_user(user) if user else nodes).on(
            host, name if "." in name else f"{COLLECTION}.{name}", options
        )

    def load(self, path: str) -> Any:
        """Return the content of a YAML file of the collection."""
        return self._action._loader.load_from_file(str(ROOT / path))

    @property
    def version(self) -> str:
        """Return the version of the collection, from its manifest if it was installed, otherwise from its source."""
        manifest = ROOT / "MANIFEST.json"
        if manifest.exists():
            return str(json.loads(manifest.read_text())["collection_info"]["version"])
        return str(self.load("galaxy.yml")["version"])

    @property
    def _here(self) -> dict[str, object]:
        """Return the variables of the host, with a Python of this machine: that of a worker may not exist here."""
        known = {key: value for key, value in self._task_vars.items() if key != "ansible_delegated_vars"}
        # A task of a cluster may be delegated to a worker; the variables remain those of the cluster.
        connection = str(known.get("ansible_connection") or self._action._play_context.connection)
        is_here = connection.rpartition(".")[2] == "local"
        return known if is_here else {**known, PYTHON: known["ansible_playbook_python"]}

    def _run(self, action: ActionBase, name: str) -> dict[str, Any]:
        if name in WITH_PROGRESS or not isinstance(action, FollowingAction):
            return dict(action.run(task_vars=self._here))
        return dict(action._execute_module(task_vars=self._here))

    def _with_connection(self, name: str, options: Arguments) -> dict[str, object]:
        if not _connects(name):
            return dict(options)
        given = self._action._task.args
        return {**{key: given[key] for key in CONNECTION if key in given}, **options}

    def _local(self, name: str, options: dict[str, object]) -> ActionBase:
        """Return an action as Ansible creates it from a task, with a connection to this machine."""
        outer = self._action
        task, context = outer._task.copy(), outer._play_context.copy()
        task.action, task.args, task.delegate_to = (
            name if "." in name else f"{COLLECTION}.{name}",
            _absolute(options),
            None,
        )
        task.async_val = 0
        given = outer._task.environment or []
        task.environment = [_kubernetes_environment(), *given, self.environment, _without_account(name)]
        connection = connection_loader.get("ansible.builtin.local", context, "/dev/null")
        connection.set_options()
        parts = {"loader": outer._loader, "templar": outer._templar, "shared_loader_obj": outer._shared_loader_obj}
        # Some modules of Ansible, such as copy, are actions.
        if "." in name and action_loader.has_plugin(name):
            return action_loader.get(name, task=task, connection=connection, play_context=context, **parts)
        return FollowingAction(task=task, connection=connection, play_context=context, **parts)

    def _ended(self, action: ActionBase, name: str, run: Any) -> dict[str, Any]:
        try:
            # Warnings are objects of Ansible. Programs write results into their journals.
            return dict(json.loads(json.dumps(explained(name, run()), default=as_text)))
        except AnsibleConnectionFailure as error:
            return {"failed": True, "unreachable": True, "msg": str(error)}
        except AnsibleError as error:
            return {"failed": True, "msg": str(error)}
        finally:
            action.cleanup()


def planned_once(requested: object, plan: Callable[[], Result]) -> Result:
    """Return the plan for a request; one that an earlier task of the same check has made, if there is one.

    A run that writes plans each time: its own writes change the site.
    """
    if not context.CLIARGS.get("check"):
        return plan()
    path = _path(requested)
    kept = _kept(path)
    if kept is not None:
        return kept
    result = plan()
    if not result.get("failed"):
        _keep(path, result)
    return result


def _path(requested: object) -> Path:
    # Several runs share the folder if one process has started them.
    text = json.dumps([os.getppid(), requested], sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Path(constants.DEFAULT_LOCAL_TMP) / f"dml-plan-{digest}.json"


def _kept(path: Path) -> Result | None:
    try:
        is_recent = time.time() - path.stat().st_mtime < KEPT_SECONDS
        return dict(json.loads(path.read_text(encoding="utf-8"))) if is_recent else None
    except (OSError, ValueError):
        return None


def _keep(path: Path, result: Result) -> None:
    """Write a plan with a rename, so that no task reads a part of it; without space, the next task plans again."""
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as draft:
            json.dump(result, draft)
        os.replace(draft.name, path)
    except OSError:
        return
