"""The connections of ranks, with this machine as the node."""

from __future__ import annotations

import json
from pathlib import Path

from plugins.module_utils.training.transport import connections as transport_seen
from plugins.module_utils.watch.node_programs import read_connections
from tests.fakes.calling import here


def test_a_finished_job_reports_its_ranks_checksums(tmp_path: Path) -> None:
    for rank, checksum in ((0, "aa"), (1, "bb")):
        (tmp_path / f"summary{rank}.json").write_text(json.dumps({"rank": rank, "parameters_sha256": checksum}))
    nodes = [{"name": "n1", "reach": ["sh", "-c"]}]
    result = here(read_connections, nodes=nodes, folder=str(tmp_path))
    assert result["nodes"]["n1"] == {
        "ranks": [],
        "devices": result["nodes"]["n1"]["devices"],
        "checksums": {"summary0.json": "aa", "summary1.json": "bb"},
    }
    assert transport_seen.checksums(result["nodes"]) == {"n1:summary0.json": "aa", "n1:summary1.json": "bb"}
