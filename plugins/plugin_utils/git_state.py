# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commit of a folder of the controller, and whether files differ from it."""

from __future__ import annotations

import subprocess
from typing import Any

SECONDS = 10


def git_state(folder: str) -> dict[str, Any]:
    """Return the commit and whether a file differs; empty for a folder without git or without a commit."""
    commit, changes = _printed(folder, "rev-parse", "HEAD"), _printed(folder, "status", "--porcelain", "--", ".")
    return {"commit": commit.strip(), "dirty": bool(changes)} if commit and changes is not None else {}


def _printed(folder: str, *words: str) -> str | None:
    try:
        command = ["git", "-C", folder, *words]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout if ended.returncode == 0 else None
