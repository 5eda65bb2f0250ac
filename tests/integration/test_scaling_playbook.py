"""playbooks/scaling.yml with real mpirun: interrupted and run again, it measures what is left and shows the table."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.integration.training import Playbook

SWEEP = {"training_sweep_nodes": [1, 2], "training_sweep_repeats": 1, "training_silence": 60, "training_warmup": 3}
FIRST, SECOND = "scaling-1-nodes-tcp-1", "scaling-2-nodes-tcp-1"


@pytest.mark.slow
def test_interrupted_measurement_continues_where_it_ended(tmp_path: Path) -> None:
    playbook = Playbook(tmp_path)
    options = {"playbook": "scaling", "report_dir": str(tmp_path / "report"), **SWEEP}
    half_done = playbook.kill_controller(playbook.begin(60, 0.05, **options), SECOND, rank=1)
    os.kill(half_done["launcher"]["pid"], signal.SIGKILL)
    assert [path.stem for path in (tmp_path / "results").glob("*.json")] == [FIRST]
    first = playbook.run_file(FIRST)

    ran = playbook.run(60, 0.05, **options)
    assert ran.returncode == 0, ran.stdout
    assert f"1 of 2 runs remain:  {SECOND}" in ran.stdout
    assert playbook.run_file(FIRST) == first
    assert playbook.run_file(SECOND)["id"] != half_done["id"]
    results = [playbook.result(name) for name in (FIRST, SECOND)]
    assert [(one["nodes"], one["steps"], one["job"]["state"]) for one in results] == [
        (1, 60, "finished"),
        (2, 60, "finished"),
    ]
    assert all(0 < one["images_per_sec"] <= one["nodes"] * 8 / 0.05 for one in results)
    rows = report_of(tmp_path)["rows"]
    assert [row["images_per_sec"] for row in rows] == [one["images_per_sec"] for one in results]
    assert re.search(rf"- 2 +2 +tcp +{rows[1]['images_per_sec']:.1f} .* 364 +1.07\n", ran.stdout)
    assert "T4 whitepaper, Table 2" in ran.stdout

    other = playbook.run(61, 0.05, **options)
    assert other.returncode != 0
    assert "used another command than requested now" in other.stdout


def report_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "report" / "training.json").read_text()))
