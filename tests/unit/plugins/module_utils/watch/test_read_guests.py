"""The guests of nodes, with this machine as a node."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from pathlib import Path

from plugins.module_utils.watch.node_programs import read_guests
from tests.fakes.calling import here


def test_a_node_reports_timers_ranks_and_checkpoint(tmp_path: Path) -> None:
    kept = tmp_path / "checkpoints" / "step-40"
    kept.parent.mkdir()
    kept.write_bytes(b"weights")
    os.utime(kept, (time.time() - 90,) * 2)
    kept.with_suffix(".sha256").write_text(f"{hashlib.sha256(b'weights').hexdigest()}  step-40\n")
    with subprocess.Popen(["sleep", "60"], env={**os.environ, "NCCL_IB_TIMEOUT": "22", "SECRET": "no"}) as rank:
        (tmp_path / "rank0.jsonl").write_text(json.dumps({"rank": 0, "pid": rank.pid}) + "\n")
        nodes = [{"name": "n1", "reach": ["sh", "-c"]}, {"name": "n2", "reach": ["false"]}]
        reported = here(read_guests, nodes=nodes, folder=str(tmp_path), checkpoints=str(kept.parent), timeout=60)[
            "nodes"
        ]
        rank.kill()
    assert reported["n2"] == {"error": "it ended with 1"}
    node = reported["n1"]
    assert node["sysctls"]["net.ipv4.tcp_retries2"] > 0
    assert (node["environment"]["NCCL_IB_TIMEOUT"], "SECRET" in node["environment"]) == ("22", False)
    assert (node["checkpoint"]["path"], node["checkpoint"]["verified"]) == (str(kept), True)
    assert 89 <= node["checkpoint"]["age_s"] < 200
    kept.write_bytes(b"spoilt")
    spoilt = here(read_guests, nodes=nodes[:1], folder=str(tmp_path), checkpoints=str(kept.parent))
    assert spoilt["nodes"]["n1"]["checkpoint"]["verified"] is False
    assert spoilt["nodes"]["n1"]["environment"] is None, "its rank is gone"
