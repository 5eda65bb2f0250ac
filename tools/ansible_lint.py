"""Runs ansible-lint, which checks the syntax of all playbooks and roles in one process of Ansible.

By itself, ansible-lint starts one process for each playbook and each role. It still does so if they do not pass
together, because its messages name the file. It also copies each task for each of its rules, which takes most of the
rest: here, the rules share a copy of its values.
"""

from __future__ import annotations

import copy
import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ansiblelint import __main__, file_utils, runner, utils
from ansiblelint.errors import MatchError
from ansiblelint.file_utils import Lintable
from ansiblelint.utils import Task


def passes(playbooks: Sequence[str], roles: Sequence[str]) -> bool:
    """Return whether Ansible accepts the syntax of all these playbooks and roles."""
    tasks = [{"ansible.builtin.import_role": {"name": role}} for role in roles]
    with tempfile.NamedTemporaryFile("w", prefix="play", suffix=".yml") as play:
        play.write(json.dumps([{"hosts": "localhost", "tasks": tasks}]))
        play.flush()
        program = str(Path(sys.executable).with_name("ansible-playbook"))
        command = [program, "--syntax-check", "-i", "localhost,", *playbooks, play.name]
        return subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0


class Runner(runner.Runner):
    """Starts a process for each file only if not all pass together."""

    def _map_syntax_check_workers(self, worker: Any, files: list[Lintable]) -> list[list[MatchError]]:
        names = {kind: [str(file.path) for file in files if file.kind == kind] for kind in ("playbook", "role")}
        if passes(names["playbook"], names["role"]):
            return []
        return super()._map_syntax_check_workers(worker, files)


def own(task: Task) -> Task:
    """Return a copy to whose keys a rule may add."""
    copied = copy.copy(task)
    vars(copied)["_normalized_task"] = dict(task.normalized_task)
    return copied


def shared(find: Callable[..., Iterator[Task]]) -> Callable[..., Iterator[Task]]:
    """Return a function that finds the tasks in some data of a file only once."""
    known: dict[tuple[int, str, str], tuple[Any, list[Task]]] = {}

    def tasks(data: Any, file: Lintable, kind: str, position: str = ".") -> Iterator[Task]:
        key = (id(data), kind, position)
        if key not in known:
            # While the data are kept, no other data have their id.
            known[key] = (data, list(find(data, file, kind, position)))
        return map(own, known[key][1])

    return tasks


if __name__ == "__main__":
    vars(runner)["Runner"] = Runner
    vars(utils)["task_in_list"] = shared(utils.task_in_list)
    vars(file_utils)["kind_from_path"] = functools.cache(file_utils.kind_from_path)
    sys.exit(__main__.main())
