# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The tool of `make lint` that lists dead code finds it."""

from __future__ import annotations

from pathlib import Path

from tools import unused

CODE = """from typing import TypedDict


class Facts(TypedDict):
    read: int
    dead_key: int


def dead_function(facts: Facts) -> int:
    return facts["read"]
"""


def test_functions_and_keys_without_a_use_are_listed(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE)

    found = unused.unused([str(tmp_path)])

    assert [line.split("'")[1] for line in found] == ["dead_key", "dead_function"]
