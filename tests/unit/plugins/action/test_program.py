"""The action of the programs of roles, apart from what each program does."""

from __future__ import annotations

import subprocess
import sys

from tests.fakes import programs

LOADED = "import sys, plugins.action.program; print(*(name for name in sys.modules if name.startswith('plugins.')))"


def test_action_imports_no_program_before_it_runs() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout.split()

    assert len(loaded) < 40
    assert not {f"plugins.plugin_utils.{name}_programs" for name in ("role", "training")} & set(loaded)


def test_refuses_a_program_that_does_not_exist() -> None:
    assert programs.run("evidense")["msg"] == "There is no program evidense. Correct the name and run again."
