# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The unfinished test of a cluster, and its moves so far."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...durable.program_journal import NAME, ends
from ..checks import move_lines
from . import facts_file, trial_folder

NOTHING: dict[str, Any] = {"found": False, "folder": "", "replaced": False, "launcher": "", "user": "", "moves": []}


def unfinished_test(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the unfinished test of a cluster; refuse one of another kind, or a window with other settings.

    ``options["folder"]`` is the folder of the test; if it is empty, the test is searched in ``options["dir"]``. The
    options ``window`` and ``observe`` are those of the requested test.
    """
    folder = trial_folder.find(options["folder"], options["dir"], options["cluster"])
    return _test_in(folder, options) if folder else NOTHING


def _test_in(folder: Path, requested: Mapping[str, Any]) -> dict[str, Any]:
    settings = ends(folder / NAME).start if (folder / NAME).exists() else None
    if settings is None:
        return NOTHING
    trial_folder.refuse_other(folder, settings, requested)
    moves = facts_file.read(folder).moves if (folder / facts_file.NAME).exists() else []
    return {
        "found": True,
        "folder": str(folder),
        "replaced": trial_folder.is_replaced(settings, requested),
        "launcher": settings["launcher"],
        "user": settings["user"],
        "moves": [move_lines.without_events(move) for move in moves],
    }
