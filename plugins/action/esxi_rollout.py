# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans the hosts of a cluster and shows the plan, or carries it out a few hosts at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ansible.plugins.action import ActionBase

from ..module_utils.durable.calls import Arguments, Result
from ..module_utils.durable.program import ControllerGone, MemoryJournal, Program
from ..module_utils.errors import CollectionError
from ..module_utils.hosts.change_hosts import HostChangeOptions
from ..module_utils.hosts.image_plan import compare_image
from ..module_utils.hosts.rollout import (
    RolloutOptions,
    RolloutPlan,
    after_canary,
    hosts_at_once,
    plan_hosts,
    require_positive,
    require_possible,
    rollout,
    window_of,
)
from ..plugin_utils import running_jobs
from ..plugin_utils.interruption import shown_if_interrupted
from ..plugin_utils.modules import CONNECTION, Modules
from ..plugin_utils.role_options import RENAMED, ROLE_OF_HOSTS, of_esxi_rollout, requested_of_role, specification
from ..plugin_utils.world import ActionWorld

ARGUMENTS: dict[str, Any] = {
    **specification(of_esxi_rollout()),
    **{name: {"type": "bool", "default": False} for name in ("around_job", "plan_only")},
}
ONE_AT_A_TIME = "around a training job whose workers move, one host leaves service at a time"
WRITERS = ("esxi_image", "esxi_power", "esxi_profile")


class RolloutWorld(ActionWorld):
    """The world of a rollout, which keeps the changes, differences and warnings of its modules for the result."""

    def __init__(self, modules: Modules, cluster: str) -> None:
        super().__init__(modules, cluster)
        self.changed, self.diff = False, list[Any]()
        self.out_of_service: list[str] = []
        self.warnings: dict[str, Any] = {}

    def here(self, module: str, options: Arguments) -> Result:
        """Run a module on the controller, and return its result."""
        if module == "esxi_power" and options.get("state") == "maintenance":
            self.out_of_service = list(options["hosts"])
        result = super().here(module, options)
        if module == "esxi_power" and options.get("state") == "in_service" and not result.get("failed"):
            self.out_of_service = []
        self.changed = self.changed or (module in WRITERS and bool(result.get("changed")))
        return self._kept(module, result)

    def jobs_on_workers(self, options: Arguments) -> Result:
        """Fail if training jobs run on the workers of the cluster; return why they are not known."""
        self.must_be_attended()
        return running_jobs.again(self._modules, options)

    def interrupted(self) -> str:
        """Return what a run leaves that the user interrupts, and how it continues."""
        out = f"{', '.join(self.out_of_service)} may be out of service, " if self.out_of_service else ""
        again = "Run the playbook again: it takes over the lock, and continues with these hosts"
        return f"{self._subject}: the run was interrupted: {out}the lock of the cluster is held. {again}."

    def planned(self, module: str, options: Arguments) -> Result:
        """Run a module on the controller in check mode, and return its result."""
        return self._kept(module, super().planned(module, options))

    def _kept(self, module: str, result: Result) -> Result:
        self.warnings.update({str(warning): warning for warning in result.get("warnings") or []})
        if module in ("esxi_image", "esxi_profile"):
            self.diff += [part for part in result.get("diff") or [] if part not in self.diff]
        return result


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible is not read by mypy
    """Runs the plan or the program of a rollout; check mode skips the program."""

    TRANSFERS_FILES = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> Result:
        """Return the plan that was made or carried out."""
        of_role = requested_of_role(self, task_vars or {}, ROLE_OF_HOSTS)
        own = {RENAMED.get(name, name): value for name, value in of_role.items()}
        self._task.args = {**{name: own[name] for name in own if name in ARGUMENTS}, **self._task.args}
        arguments = {**ARGUMENTS, **{name: {"type": "raw"} for name in CONNECTION}}
        _validation, given = self.validate_argument_spec(arguments)
        self._supports_check_mode = given["plan_only"]
        result: dict[str, Any] = super().run(tmp, task_vars)
        world = RolloutWorld(Modules(self, task_vars or {}), given["cluster"])
        try:
            result.update(self._plan(world, given) if given["plan_only"] else self._rollout(world, given))
        except ControllerGone:
            result.update(failed=True, msg=f"{given['cluster']}: the ansible run that changes its hosts is gone")
        except CollectionError as error:
            result.update(failed=True, msg=str(error), changed=world.changed)
        return {**result, "diff": world.diff, "warnings": list(world.warnings.values())}

    def _plan(self, world: RolloutWorld, given: dict[str, Any]) -> Result:
        how = options_of(given)
        require_positive(how.change)
        is_check = self._task.check_mode
        if not is_check:
            compare_image(world, how.change.cluster, how.change.image)
        # In a real run these adapters must exist.
        plan = plan_hosts(world, how, given["adapters_to_come"] if is_check else ())
        for line in plan["lines"]:
            world.show(line)
        require_possible(plan)
        if plan["leaving"]:
            world.show(ONE_AT_A_TIME if how.around_job else hosts_at_once(world, plan["leaving"], how.change)["why"])
        # In a real run the task that makes the change reports it.
        return {**result_of(plan, how, is_changed=not is_check), "changed": is_check and plan["changed"]}

    def _rollout(self, world: RolloutWorld, given: dict[str, object]) -> Result:
        how = options_of(given)
        require_positive(how.change)
        with shown_if_interrupted(world.interrupted), world.own_clock():
            plan = rollout(Program(MemoryJournal(), world), world, how)
        return {**result_of(plan, how, is_changed=True), "changed": world.changed}


def options_of(given: Mapping[str, Any]) -> RolloutOptions:
    """Return the options of a rollout from the validated options of the task."""
    # A rollout has no training job, and no workers of one.
    names = {field.name for field in fields(HostChangeOptions)} & set(given)
    change = HostChangeOptions(**{name: given[name] for name in names})
    own = {field.name: given[field.name] for field in fields(RolloutOptions) if field.name in given}
    return RolloutOptions(change, **{**own, "around_job": given["around_job"] or bool(given["training"])})


def result_of(plan: RolloutPlan, how: RolloutOptions, *, is_changed: bool) -> Result:
    """Return a plan as the result of the task, with the window in which hosts leave service around a job."""
    return {
        **{key: value for key, value in plan.items() if key in ("hosts", "in_service", "leaving")},
        "window": window_of(plan, how),
        "after_canary": after_canary(plan, how, is_changed=is_changed),
    }
