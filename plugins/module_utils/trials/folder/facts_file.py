"""The file with the facts of a vMotion test, from which verdicts and pages are made during the test and later."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from ...core import whole_file
from ...durable.program_journal import ADVICE
from ...errors import Failed, Refused
from ..evidence.facts import Facts

NAME = "facts.json"
# The errors of code that uses damaged facts.
DAMAGES = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)


def read(folder: Path) -> Facts:
    """Return the facts of the test in a folder; raise if it has none, or if the file is damaged."""
    path = folder / NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        facts = Facts(**content)
        if not isinstance(facts.settings["cluster"], str) or not isinstance(facts.settings["limits"], dict):
            raise ValueError("it does not have the settings of a test")
    except FileNotFoundError as error:
        reason = f"it ended before the job was warm, or an earlier version of the collection ran it: it has no {NAME}"
        raise Refused(str(folder), "judge the test in it", reason, "name the folder of another test") from error
    except (OSError, *DAMAGES) as error:
        raise damaged(folder, error) from error
    return facts


def damaged(folder: Path, error: Exception) -> Failed:
    reason = f"it is not valid ({error!r}): the file was changed or damaged"
    return Failed(str(folder / NAME), "read the facts of the test", reason, ADVICE)


def write(folder: Path, facts: Facts) -> None:
    """Write the facts atomically: a live page may read them at any time."""
    write_json(folder / NAME, asdict(facts), indent=None)


def write_json(path: Path, content: object, indent: int | None = 4) -> None:
    """Write a file of JSON atomically; only its owner can read it."""
    try:
        whole_file.write(str(path), json.dumps(content, indent=indent).encode())
    except OSError as error:
        reason, remedy = error.strerror or str(error), "free some space and run the playbook again"
        raise Failed(str(path), "write it", reason, remedy) from error
