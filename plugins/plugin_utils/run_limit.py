# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The limit of the command line, including the hosts in its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..module_utils.core.run_request import limit_parts


def limit_of(task_vars: Mapping[str, object]) -> tuple[str, ...]:
    """Return the parts of ``--limit``, and those in its @files."""
    return limit_parts(str(task_vars.get("ansible_limit") or ""), lambda path: Path(path).read_text())
