# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""JSON in the output of programs, as it arrives from Ansible."""

from __future__ import annotations

import json
from typing import Any


def parsed(value: Any) -> Any:
    """The data in a text of JSON, None for an empty text; versions of Ansible before 2.19 pass data instead of text."""
    if not isinstance(value, str):
        return value
    return json.loads(value) if value.strip() else None
