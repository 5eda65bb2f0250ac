"""Runs a program of a role over modules with given answers."""

from __future__ import annotations

from typing import Any

from plugins.action.program import Planned
from plugins.plugin_utils import role_programs


class Answers:
    """Modules that answer as given; ``calls`` has the options of each call."""

    def __init__(self, **answers: Any) -> None:
        self._answers, self.calls = answers, dict[str, dict[str, Any]]()

    def here(self, name: str, options: dict[str, Any], /) -> dict[str, Any]:
        self.calls[name] = options
        return dict(self._answers[name])

    planned = here


def run(name: str, calls: Answers | None = None, *, check: bool = False, **options: Any) -> dict[str, Any]:
    """The result of a program."""
    return role_programs.run(name, options, calls or Answers(), Planned(check))
