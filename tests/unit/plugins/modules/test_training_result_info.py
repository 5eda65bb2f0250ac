# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The module training_result_info, on a run directory as training_job leaves it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from plugins.modules import training_result_info

from .test_continuity_verdict import call


def run_dir(folder: Path) -> Path:
    gone = {"host": "w1", "pid": 1, "start": -1, "boot_id": "another boot"}
    desired = {"id": "x", "command": ["train"], "hosts": [], "nodes_of_ranks": ["w1", "w2"], "mpirun_command": []}
    run = {"launcher": gone, "supervisor": gone, "job": "1", "started": time.time()}
    end = {"swept": True, "stopped": False, "exit_code": 0, "ended": time.time(), "left": {}}
    for name, content in (("wish", desired), ("run", run), ("end", end)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    (folder / "output.log").write_text("w1:1:1 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\n\xff\n")
    return folder


def judge(folder: Path, **more: Any) -> dict[str, Any]:
    given = {"run_dir": str(folder), "name": "one", "nodes": ["w1", "w2"], "transport": "tcp", **more}
    return call(training_result_info, **given)


def test_the_result_of_a_run_is_read_from_its_directory(tmp_path: Path) -> None:
    result = judge(run_dir(tmp_path), pace={"step": 5, "loss": None}, curve={"images_per_sec": 20.0, "points": []})
    assert result["faults"] == [] and not result["changed"]
    assert result["summary"] == "20.0 images/s on 2 ranks of 2 nodes by tcp: NCCL's log says NET/Socket"
    assert (result["result"]["job"]["state"], result["result"]["steps"]) == ("finished", 5)


def test_a_run_that_fell_back_is_a_result_with_a_fault(tmp_path: Path) -> None:
    result = judge(run_dir(tmp_path), transport="rdma")
    assert result["result"]["proof"]["transport"] == "tcp"
    assert result["faults"] == [
        f"The training job {tmp_path} was set to rdma and used tcp: NCCL's log says NET/Socket."
    ]


def test_a_directory_without_a_job_is_refused(tmp_path: Path) -> None:
    result = judge(tmp_path)
    assert result["failed"] and result["msg"].startswith(f"{tmp_path}: could not read the output of the job: ")


def test_a_job_on_kubernetes_brings_its_state_and_its_output_with_it(tmp_path: Path) -> None:
    output = "w1:1:1 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\n"
    result = judge(tmp_path, job={"state": "finished", "pods": {}}, output=output)
    assert result["faults"] == [] and result["result"]["job"] == {"state": "finished", "pods": {}}
    assert result["result"]["proof"]["transport"] == "tcp"
