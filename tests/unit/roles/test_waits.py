"""Every wait of a role has a deadline, and the role's page says what it waits for and how long at most."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import Environment, UndefinedError

ROLES = Path(__file__).parents[3] / "roles"
HEADING = "## Waits\n"
ROW = re.compile(r"^\| (?P<task>[^|]+?) \| (?P<what>[^|]+?) \| (?P<most>[^|]+?) \|$", re.MULTILINE)
# Words of tasks that wait by themselves; what waits by a module of ours has its time among that module's options.
WAITING = {"retries", "until", "async"}
PROGRAMS = re.compile(r"(?:ansible\.builtin\.)?(?:wait_for|wait_for_connection|pause|reboot)$")


@dataclass(frozen=True)
class Wait:
    """One task that waits: its role, its name, and its deadline in seconds or as the variable that holds it."""

    role: str
    task: str
    most: str

    def __str__(self) -> str:
        return f"{self.role}: {self.task}"


def tasks_of(content: Any) -> Iterator[dict[str, Any]]:
    """All tasks of a file, those in blocks too."""
    for one in content if isinstance(content, list) else []:
        yield one
        for inside in ("block", "rescue", "always"):
            yield from tasks_of(one.get(inside))


def waits() -> list[Wait]:
    """All waits of all roles."""
    found = []
    for path in sorted(ROLES.glob("*/tasks/**/*.yml")):
        for task in tasks_of(yaml.safe_load(path.read_text())):
            if WAITING & set(task) or any(PROGRAMS.match(key) for key in task):
                role = path.relative_to(ROLES).parts[0]
                found.append(Wait(role, str(task.get("name")).partition(" # ")[0], deadline(role, task)))
    return found


def deadline(role: str, task: dict[str, Any]) -> str:
    """Its deadline, as the page writes it; empty if none exists."""
    if "async" in task:
        return written(role, task["async"], 1)
    if "retries" in task:
        return written(role, task["retries"], task.get("delay", 5))
    for module, option in (("reboot", "reboot_timeout"), ("wait_for", "timeout"), ("wait_for_connection", "timeout")):
        if option in (given := task.get(f"ansible.builtin.{module}") or {}):
            return written(role, given[option], 1)
    return ""


def written(role: str, times: Any, delay: Any) -> str:
    """Return the number of attempts times the delay in seconds, or the option of the role that has the seconds."""
    inner = str(times).strip().removeprefix("{{").removesuffix("}}")
    own = ROLES / role / "vars" / "main.yml"
    known = yaml.safe_load(own.read_text()) if own.exists() else {}
    number = Environment(autoescape=False).compile_expression(inner, undefined_to_none=False)
    try:
        return f"{int(number(**known)) * int(delay)} s"
    except UndefinedError:
        (option,) = re.findall(rf"\b{role}_[a-z_]+\b", inner)
        return f"`{option}`"


def documented(role: str) -> dict[str, str]:
    """The deadlines in the table of waits of a role's page, by task."""
    page = (ROLES / role / "README.md").read_text()
    section = page.partition(HEADING)[2].partition("\n## ")[0]
    return {row["task"]: row["most"] for row in ROW.finditer(section) if row["task"] not in ("Task", "---")}


@pytest.mark.parametrize("wait", waits(), ids=str)
def test_each_wait_has_a_documented_deadline(wait: Wait) -> None:
    assert wait.most, "it has no deadline"
    assert documented(wait.role).get(wait.task, "").startswith(wait.most)


def test_no_page_documents_a_missing_wait() -> None:
    there = {(one.role, one.task) for one in waits()}
    pages = [path.parent.name for path in ROLES.glob("*/README.md")]
    assert [(role, task) for role in pages for task in documented(role) if (role, task) not in there] == []


def test_each_time_option_is_documented_in_seconds() -> None:
    unsaid = []
    for path in ROLES.glob("*/meta/argument_specs.yml"):
        options = yaml.safe_load(path.read_text())["argument_specs"]["main"].get("options", {})
        for name, option in options.items():
            if re.search(r"_(timeout|seconds|ttl|silence)$", name):
                text = " ".join(
                    [option["description"]] if isinstance(option["description"], str) else option["description"]
                )
                unsaid += [] if re.search(r"[Ss]econds", text) else [name]
    assert unsaid == []
