# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""playbooks/vmotion_test.yml on nodes: real Open MPI trains on four workers, which move ten times each."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.integration.ansible import BIN
from tests.lab.places import LOGIN, USER, Place
from tests.lab.trial import RUNS, WORKERS

pytestmark = pytest.mark.slow
ROUNDS = int(os.environ.get("ROLLING_ROUNDS", "10"))
STUN = 5.0  # a shorter one drowns in the noise of a machine that is busy
RUN = f"{RUNS}/rolling"
SSH = "ssh -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"


def inventory(place: Place, folder: Path) -> Path:
    """The cluster, and the worker on which mpirun runs."""
    here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    there = {
        "ansible_host": place.address(1),
        "ansible_user": USER,
        "ansible_ssh_private_key_file": str(place.lab.key),
        "ansible_ssh_common_args": " ".join(LOGIN),
        "ansible_python_interpreter": "/usr/bin/python3",
    }
    groups = {"clusters": {"hosts": {"gpu": here}}, "launchers": {"hosts": {"worker01": there}}}
    path = folder / "inventory.yml"
    path.write_text(json.dumps({"all": {"children": groups}}))
    return path


def tcp(place: Place) -> dict[str, Any]:
    """The environment and the words of mpirun for TCP."""
    network = ".".join(place.address(1).split(".")[:3]) + ".0/24"
    arguments = ["--mca", "pml", "ob1", "--mca", "btl", "^openib", "--bind-to", "none"]
    for layer in ("btl", "oob"):
        arguments += ["--mca", f"{layer}_tcp_if_include", network]
    return {"environment": {}, "mpirun_arguments": arguments}


def train(place: Place, where: Path, speech: Mapping[str, Any], **more: Any) -> None:
    """Start a training on all workers, from the first; ``more`` is of the job."""
    options = {
        "run_dir": RUN,
        "command": ["python3", f"/home/{USER}/train.py", "--seconds", "0.1"],
        "hosts": [{"name": place.address(number)} for number in place.numbers],
        "environment": {"PYTHONPATH": f"/home/{USER}", **speech["environment"]},
        "mpirun_arguments": speech["mpirun_arguments"],
        "remote_shell": SSH,
        **more,
    }
    command = [str(BIN / "ansible"), "worker01", "-i", str(where), "-m", "dml.vsphere.training_job"]
    done = place.ansible.run([*command, "-a", json.dumps(options)])
    assert done.returncode == 0, done.stdout


def moved(place: Place, where: Path, **more: Any) -> tuple[Path, dict[str, Any]]:
    """Run the playbook on the job that trains; its folder of evidence, and the verdict, which is continuous."""
    named = [(f"worker0{number}", place.login(place.address(number))) for number in place.numbers]
    given: dict[str, Any] = {
        "vmotion_test_launcher": "worker01",
        "vmotion_test_run_dir": RUN,
        "vmotion_test_records": RUN,
        "vmotion_test_nodes": [{"name": name, "reach": reach} for name, reach in named],
        "vmotion_test_dir": str(where.parent / "tests"),
        "vmotion_test_warmup_steps": 5,
        **more,
    }
    done = place.ansible.playbook("playbooks/vmotion_test.yml", "-i", str(where), "-e", json.dumps(given), timeout=3600)
    assert done.rc == 0, done.out[-4000:]
    (evidence,) = (where.parent / "tests").iterdir()
    verdict = json.loads((evidence / "verdict.json").read_text())
    assert (verdict["verdict"], verdict["moved"], verdict["unproven"]) == ("continuous", "all", [])
    return evidence, verdict


@pytest.fixture
def place(equipped: Place) -> Iterator[Place]:
    """Five hosts for four workers: one to spare, and the sixth out of service."""
    equipped.lab.control.set_host(free := equipped.free_hosts()[0], maintenance=True)
    yield equipped
    equipped.lab.control.set_host(free, maintenance=False)


def test_ten_rounds_in_a_row(place: Place, tmp_path: Path) -> None:
    where = inventory(place, tmp_path)
    place.lab.hypervisor.ask("PUT", "/moves", {"precopy_seconds": 1, "stun_seconds": STUN})
    train(place, where, tcp(place))
    limits = {"max_gap_s": 30, "resume_deadline_s": 60}
    evidence, verdict = moved(place, where, vmotion_test_rounds=ROUNDS, vmotion_test_limits=limits)
    assert len(verdict["moves"]) == ROUNDS * len(WORKERS)
    assert all(STUN - 0.5 <= one["gap_s"] < 30 for one in verdict["moves"]), "a stun was not seen as it was"
    timeline = json.loads((evidence / "timeline.json").read_text())
    assert {len(one["stays"]) for one in timeline["hosts"]} == {ROUNDS + 1}
    assert "worker01" in (evidence / "timeline.html").read_text()
