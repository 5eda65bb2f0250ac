# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""docs/testing.md names a test for each threat of docs/threats.md."""

from __future__ import annotations

import hashlib
from pathlib import Path

from plugins.module_utils.training.runs import training_run
from tests.rules import coverage_map

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threats.md").read_text()
ROWS = coverage_map.rows(PAGE)


def test_each_threat_has_a_test_that_exists() -> None:
    listed = coverage_map.section("Threats")
    assert list(listed) == [threat for threat, _mitigation in ROWS]
    for threat, tests in listed.items():
        assert coverage_map.NAME.search(tests), threat
        assert coverage_map.missing(tests) == []


def test_the_page_is_one_page() -> None:
    assert len(ROWS) >= 15
    assert len(PAGE.splitlines()) <= 120


def test_a_result_has_digests_of_the_environment() -> None:
    environment = {"TOKEN": "hush-hush-token", "ONE": 1}
    options = {
        "environment": environment,
        "command": [],
        "framework": "pytorch",
        "options": [],
        "image": "",
        "gdr": "auto",
    }
    requested = training_run.request_of({**options, "ranks_per_node": 1, "stack": "current"})
    assert requested["environment"] == {
        name: hashlib.sha256(str(value).encode()).hexdigest() for name, value in environment.items()
    }
    assert "hush-hush-token" not in str(requested)
