"""playbooks/vmotion_test.yml on a job of a lab: its inventory, the training, and the verdict."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.integration.ansible import BIN
from tests.lab.places import USER, Place, ansible_login
from tests.lab.trial import RUNS

RUN = f"{RUNS}/rolling"
SSH = "ssh -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"


def inventory(place: Place, folder: Path) -> Path:
    """The cluster, and the worker on which mpirun runs."""
    here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    there = {**ansible_login(place.lab.key), "ansible_host": place.address(1)}
    groups = {"clusters": {"hosts": {"gpu": here}}, "launchers": {"hosts": {"worker01": there}}}
    path = folder / "inventory.yml"
    path.write_text(json.dumps({"all": {"children": groups}}))
    return path


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
