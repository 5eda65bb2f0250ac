"""The changes of code that no test notices are reported, and a tool that cannot tell fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = "def is_small(number):\n    return number < 3\n"
PROFILE = "from hypothesis import settings\nsettings.register_profile('mutants')\n"
TEST = "import os\nfrom plugins.module_utils.room.sizes import is_small\n\n\ndef test_size():\n    {}\n"


@pytest.mark.parametrize(
    ("test", "code", "message"),
    [
        ("assert is_small(2) and not is_small(3)", 0, "room: 3 of 3 changes noticed"),
        ("assert is_small(1) and not is_small(5)", 0, "sizes.py:2: number < 3  ->  number <= 3"),
        ("assert is_small(5) is False or os._exit(7)", 1, "a process ended with 7 on the change"),
        ("assert is_small(5)", 1, "these fail on the code as it is: "),
        (
            "assert os.getpid() == os.getpgid(0) and not is_small(5)",
            1,
            "a test fails in a new process without a change",
        ),
    ],
)
def test_tool_reports_unnoticed_changes_and_own_errors(tmp_path: Path, test: str, code: int, message: str) -> None:
    for name, text in {
        "plugins/module_utils/room/sizes.py": CODE,
        "tests/unit/plugins/module_utils/room/test_sizes.py": TEST.format(test),
        "tests/unit/plugins/conftest.py": PROFILE,
        "pytest.ini": "[pytest]\naddopts = --import-mode=importlib\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    done = subprocess.run(
        [sys.executable, "-m", "tools.mutants", "--all", "room"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False, capture_output=True, text=True,
        process_group=0,
    )  # fmt: skip

    assert (done.returncode, message in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr
