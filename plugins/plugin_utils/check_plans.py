# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plans of a run in check mode, which writes nothing: each is made once, by the first task that needs it.

The processes of the tasks share them as files in the private temporary folder of the run, which Ansible removes.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible import constants, context

# Others may change the site while a long check runs.
KEPT_SECONDS = 600.0
Result = dict[str, Any]


def planned_once(requested: object, plan: Callable[[], Result]) -> Result:
    """Return the plan for a request; one that an earlier task of the same check has made, if there is one.

    A run that writes plans each time: its own writes change the site.
    """
    if not context.CLIARGS.get("check"):
        return plan()
    path = _path(requested)
    kept = _kept(path)
    if kept is not None:
        return kept
    result = plan()
    if not result.get("failed"):
        _keep(path, result)
    return result


def _path(requested: object) -> Path:
    # Several runs share the folder if one process has started them.
    text = json.dumps([os.getppid(), requested], sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Path(constants.DEFAULT_LOCAL_TMP) / f"dml-plan-{digest}.json"


def _kept(path: Path) -> Result | None:
    try:
        is_recent = time.time() - path.stat().st_mtime < KEPT_SECONDS
        return dict(json.loads(path.read_text(encoding="utf-8"))) if is_recent else None
    except (OSError, ValueError):
        return None


def _keep(path: Path, result: Result) -> None:
    """Write a plan with a rename, so that no task reads a part of it; without space, the next task plans again."""
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as draft:
            json.dump(result, draft)
        os.replace(draft.name, path)
    except OSError:
        return
