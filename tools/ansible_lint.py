"""Runs ansible-lint, which checks the syntax of all playbooks and roles in one process of Ansible.

By itself, ansible-lint starts one process for each playbook and each role, which takes most of its processor time. It
still does so if they do not pass together, because its messages name the file.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansiblelint import __main__, runner
from ansiblelint.errors import MatchError
from ansiblelint.file_utils import Lintable


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


if __name__ == "__main__":
    vars(runner)["Runner"] = Runner
    sys.exit(__main__.main())
