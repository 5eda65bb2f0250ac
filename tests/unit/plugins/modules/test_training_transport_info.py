# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The module training_transport_info, on this machine as its node."""

from __future__ import annotations

import json
from pathlib import Path

from plugins.module_utils.training.transport import connections as transport_seen
from plugins.modules import training_transport_info

from .test_continuity_verdict import call


def test_a_finished_job_reports_the_checksums_of_its_ranks(tmp_path: Path) -> None:
    for rank, checksum in ((0, "aa"), (1, "bb")):
        (tmp_path / f"summary{rank}.json").write_text(json.dumps({"rank": rank, "parameters_sha256": checksum}))
    nodes = [{"name": "n1", "reach": ["sh", "-c"]}]
    result = call(training_transport_info, nodes=nodes, folder=str(tmp_path))
    assert result["nodes"]["n1"] == {
        "ranks": [],
        "devices": result["nodes"]["n1"]["devices"],
        "checksums": {"summary0.json": "aa", "summary1.json": "bb"},
    }
    assert transport_seen.checksums(result["nodes"]) == {"n1:summary0.json": "aa", "n1:summary1.json": "bb"}
