"""Texts of guests and of vCenter that made a pattern take a time that grows with the square of their length."""

from __future__ import annotations

import re
import time

import pytest

from plugins.module_utils.guests import mpi_checks, node_checks
from plugins.module_utils.hosts.rollback import evidence
from plugins.module_utils.trials.checks import guest_checks
from plugins.module_utils.workers.capacity import machines
from plugins.module_utils.workers.placement import mmio

LENGTH = 200_000


@pytest.mark.parametrize(
    ("pattern", "method", "text"),
    [
        (guest_checks._TIME, "fullmatch", "0" * LENGTH + "x"),
        (evidence._ACCOUNT_IN_URL, "search", "_" * LENGTH),
        (mmio._IN_NAME, "search", "0" * LENGTH),
        (machines.OWNER_LINE, "search", "\n" * LENGTH),
        (machines.OWNER_LINE, "search", "owner: a" + " " * LENGTH + "\x01"),
        (node_checks.ROW, "search", "BW average[Gb/sec]" + "\n" * LENGTH),
        (mpi_checks.NUMBER, "search", "0" * LENGTH),
        (node_checks.UNMEASURED, "search", "\n" * LENGTH),
    ],
)
def test_pattern_takes_linear_time_for_long_text(pattern: re.Pattern[str], method: str, text: str) -> None:
    started = time.process_time()
    getattr(pattern, method)(text)
    assert time.process_time() - started < 1.0
