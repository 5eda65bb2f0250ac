# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The runner for a call about one object: its result is the object's own, without a list."""

from __future__ import annotations

from typing import Any

from . import runner

HERE = ("changed", "needs", "why", "unmet", "state")


def converge(module: runner.Module, subject: Any) -> dict[str, Any]:
    """Bring one subject, which reads for itself, to its plan."""
    result = runner.converge(module, runner.Work(subjects=[subject], refresh=lambda _subjects: None))
    (report,) = result.pop("hosts")
    return {**result, **{key: report[key] for key in HERE if key in report}}
