"""The plugin that makes mypy report unknown keys of a TypedDict."""

from __future__ import annotations

from pathlib import Path

import mypy.api

CONFIGURATION = Path(__file__).parents[2] / "pyproject.toml"
READS = """from typing import TypedDict

class Move(TypedDict, total=False):
    worker: str

def known(move: Move) -> str | None:
    return move.get("worker")

def misspelt(move: Move) -> bool:
    return bool(move.get("workr"))
"""


def test_mypy_refuses_get_of_an_unknown_key(tmp_path: Path) -> None:
    (tmp_path / "reads.py").write_text(READS)

    text, _errors, _code = mypy.api.run(
        ["--config-file", str(CONFIGURATION), "--cache-dir", str(tmp_path / "cache"), str(tmp_path / "reads.py")]
    )

    (error, _summary) = text.splitlines()
    assert error.endswith('error: TypedDict "Move" has no key "workr"  [misc]')
