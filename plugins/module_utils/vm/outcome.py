# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The result of a call about workers, in words that fit them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def of_workers(result: Mapping[str, Any]) -> dict[str, Any]:
    """The runner's result with workers where it says hosts."""
    workers = [{"name": entry["host"], **{k: v for k, v in entry.items() if k != "host"}} for entry in result["hosts"]]
    return {**{key: value for key, value in result.items() if key != "hosts"}, "workers": workers}
