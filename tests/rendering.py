"""Evaluates the variables of a role for given facts of a node, without a node and without a playbook."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar
from ansible.template import trust_as_template as trusted

from tests.rules.yaml_rules import tasks_of

ROLES = Path(__file__).parents[1] / "roles"


@functools.cache
def begin() -> None:
    """Let Ansible find filters and lookups by their full names."""
    init_plugin_loader()


@functools.cache
def variables(role: str) -> dict[str, Any]:
    """Return the defaults and the variables of a role, not evaluated."""
    loader = DataLoader()
    found: dict[str, Any] = {}
    for kind in ("defaults", "vars"):
        path = ROLES / role / kind / "main.yml"
        found.update(loader.load_from_file(str(path), trusted_as_template=True) if path.exists() else {})
    return found


def task_of(role: str, file: str, begin: str) -> dict[str, Any]:
    """Return the task of a role whose name begins so, also from a block."""
    document = yaml.safe_load((ROLES / role / "tasks" / file).read_text(encoding="utf-8"))
    (found,) = [task for task in tasks_of(document) if str(task["name"]).startswith(begin)]
    return found


def value(role: str, name: str, **known: Any) -> Any:
    """Return the value of one variable of a role, if the others have these values."""
    begin()
    reported = {**variables(role), **known}
    return Templar(DataLoader(), variables=reported).template(reported[name])


def truth(condition: str, **known: Any) -> bool:
    """Return whether the condition of a task or role holds for these variables."""
    return rendered("{{ " + condition + " }}", **known) in {True, "True"}


def rendered(text: str, **known: Any) -> Any:
    """Return a text evaluated with these variables."""
    begin()
    return Templar(DataLoader(), variables=known).template(trusted(text))
