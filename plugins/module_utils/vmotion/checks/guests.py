# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""All findings in the nodes of a job that forbid a stun: timers, licences, checkpoints and drivers; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...core import findings as found
from . import guest_checks, guest_versions


def findings(
    nodes: Mapping[str, Any],
    budget: float,
    now: float,
    fitting: tuple[Iterable[Mapping[str, Any]], Mapping[str, Any]],
    *,
    lasts: float = 0.0,
    minutes: float = 0.0,
) -> list[dict[str, Any]]:
    """The findings as plain data.

    ``budget`` are the seconds that a stun may take, ``lasts`` those that the test takes at least, ``minutes`` how old a
    checkpoint may be, 0 where there is none; ``fitting`` are the hosts of esxi_info with their VIBs and the table
    stacks/facts/compatibility.yml.
    """
    inside = guest_checks.findings(nodes, budget, now, lasts=lasts, minutes=minutes or None)
    return found.as_dicts([*inside, *guest_versions.findings(nodes, *fitting)])
