# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The limits of a vMotion test; pure."""

from __future__ import annotations

from typing import Any

from ...continuity.limits import read_limits
from ...errors import Refused


def check_limits(limits: dict[str, Any]) -> None:
    """Raise Refused for limits that the verdict would refuse after the moves."""
    try:
        read_limits(limits)
    except ValueError as error:
        raise Refused("limits", "judge a test with them", str(error), "correct the named value") from error
