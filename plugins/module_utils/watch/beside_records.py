"""Small files next to a file of records, in which a watch describes its nodes to the modules that read the records."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Why nodes cannot be read, the other data that nodes send, and the node that reported the end of the job.
TROUBLES, VIEWS, ENDS = "troubles", "views", "ends"
# How far each file of each node was read, from where another watch continues: this file stays.
OFFSETS = "offsets"


def read(records: Path, kind: str) -> dict[str, Any]:
    """Return the content by node; empty without a valid file."""
    try:
        content = json.loads(_file(records, kind).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def write(records: Path, kind: str, content: Mapping[str, object]) -> None:
    """Write the content atomically; only its owner can read it."""
    new = records.with_name(f"{records.name}.{kind}.new")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(content, file)
    new.replace(_file(records, kind))


def remove(records: Path) -> None:
    """Remove all files of a watch that ends."""
    for kind in (TROUBLES, VIEWS, ENDS):
        with contextlib.suppress(FileNotFoundError):
            _file(records, kind).unlink()


def _file(records: Path, kind: str) -> Path:
    return records.with_name(f"{records.name}.{kind}")
