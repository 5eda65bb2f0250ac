"""Runs the task files of roles on a data centre in memory: order, conditions and options are those of the files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from plugins.module_utils.errors import CollectionError, WholeError
from tests.rendering import ROLES, begin, variables

Scope = dict[str, Any]
Task = Mapping[str, Any]
BUILTIN, OURS = "ansible.builtin.", "dml.vsphere."


@cache
def tasks_of(role: str, name: str) -> list[Task]:
    """Return the tasks of a file of a role."""
    path = ROLES / role / "tasks" / f"{name}.yml"
    return list(DataLoader().load_from_file(str(path), trusted_as_template=True))


class RoleTasks:
    """One run of roles. ``call`` runs a module; ``replaced`` has stand-ins for whole roles."""

    def __init__(
        self, call: Callable[[str, Scope, bool], Scope], replaced: Mapping[str, Callable[[Scope], None]]
    ) -> None:
        begin()
        self._call, self._replaced = call, replaced
        self._registered: Scope = {"ansible_check_mode": False}

    def run(self, role: str, given: Scope, name: str = "main") -> None:
        """Run a task file of a role with these variables; raise the error of the task that fails."""
        scope = {**variables(role), **given}
        for task in tasks_of(role, name):
            self._task(role, task, scope)

    def _task(self, role: str, task: Task, scope: Scope) -> None:
        inner = {**scope, **task.get("vars", {})}
        conditions = task.get("when", [])
        if not all(self._holds(one, inner) for one in (conditions if isinstance(conditions, list) else [conditions])):
            return
        if "block" in task:
            self._block(role, task, inner)
            return
        entries = self._value(task["loop"], inner) if "loop" in task else [None]
        for entry in entries:
            looped = {task["loop_control"]["loop_var"]: entry} if "loop" in task else {}
            self._do(role, task, {**inner, **looped})

    def _block(self, role: str, task: Task, scope: Scope) -> None:
        """Run a block, and what always follows it unless the controller is killed."""
        try:
            for one in task["block"]:
                self._task(role, one, scope)
        except CollectionError:
            self._always(role, task, scope)
            raise
        self._always(role, task, scope)

    def _always(self, role: str, task: Task, scope: Scope) -> None:
        for one in task.get("always", []):
            self._task(role, one, scope)

    def _do(self, role: str, task: Task, scope: Scope) -> None:
        module = next(key for key in task if key.startswith((BUILTIN, OURS)))
        options = task[module]
        if module == f"{BUILTIN}include_tasks":
            self._include(role, scope, Path(options).stem)
        elif module == f"{BUILTIN}include_role":
            name = options["name"].removeprefix(OURS)
            if name in self._replaced and "tasks_from" not in options:
                self._replaced[name]({key: self._value(scope[key], scope) for key in task.get("vars", {})})
            else:
                self._include(name, {**variables(name), **scope}, options.get("tasks_from", "main"))
        elif module == f"{BUILTIN}assert":
            if not self._holds(options["that"], scope):
                raise WholeError(self._value(options["fail_msg"], scope))
        elif module != f"{BUILTIN}debug":
            is_planned = bool(task.get("check_mode"))
            result = self._call(
                module.removeprefix(OURS).removeprefix(BUILTIN), self._value(options, scope), is_planned
            )
            self._registered.update({task["register"]: result} if "register" in task else {})
            if result.get("failed"):
                raise WholeError(str(result["msg"]))

    def _include(self, role: str, scope: Scope, name: str) -> None:
        for task in tasks_of(role, name):
            self._task(role, task, scope)

    def _holds(self, condition: Any, scope: Scope) -> bool:
        return bool(Templar(DataLoader(), variables={**scope, **self._registered}).evaluate_conditional(condition))

    def _value(self, value: Any, scope: Scope) -> Any:
        return Templar(DataLoader(), variables={**scope, **self._registered}).template(value)
