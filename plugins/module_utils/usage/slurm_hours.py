# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The GPU hours of accounts and users in Slurm, from ``sacct``; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

# The columns of sacct. Names of accounts and users contain no "|".
FORMAT = "Account,User,ElapsedRaw,AllocTRES"
_GPUS = re.compile(r"(?:^|,)gres/gpu=([0-9]{1,9})(?:,|$)")
_SECONDS = re.compile(r"[0-9]{1,12}")


def hours_of(lines: Iterable[str], price: float | None = None) -> list[dict[str, Any]]:
    """Return the jobs with GPUs, GPU hours and costs by account and user, the largest first.

    ``lines`` are those of ``sacct --allocations --truncate --parsable2 --noheader`` with ``FORMAT``.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in (line.split("|") for line in lines):
        gpus = _GPUS.search(row[3]) if len(row) == FORMAT.count(",") + 1 and _SECONDS.fullmatch(row[2]) else None
        if gpus and int(row[2]):
            one = found.setdefault((row[0], row[1]), {"account": row[0], "user": row[1], "jobs": 0, "gpu_hours": 0.0})
            one["jobs"] += 1
            one["gpu_hours"] += int(gpus[1]) * int(row[2]) / 3600
    for one in found.values():
        one["cost"] = None if price is None else one["gpu_hours"] * price
    return sorted(found.values(), key=lambda one: (-one["gpu_hours"], one["account"], one["user"]))
