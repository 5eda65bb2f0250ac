# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""playbooks/vmotion_test.yml on the lab's Kubernetes: an MPIJob trains on four nodes, whose virtual machines move."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from lab.kubernetes.images import OPENMPI
from tests.kubernetes.mpijob import Jobs
from tests.lab.places import LOGIN, USER, Place
from tests.lab.trial import NUMBERS, PROGRAMS, WORKERS, together

STUN = 5.0
LIBRARY, RUNS, NAME = f"/home/{USER}/training", f"/home/{USER}/runs", "rolling"
TEST_SECONDS = 2400


def inventory(place: Place, folder: Path) -> Path:
    """The cluster, and its workers as Ansible logs into them."""
    here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    login = {
        "ansible_user": USER,
        "ansible_ssh_private_key_file": str(place.lab.key),
        "ansible_ssh_common_args": " ".join(LOGIN),
        "ansible_python_interpreter": "/usr/bin/python3",
    }
    hosts = {name: {"ansible_host": place.address(number)} for number, name in zip(NUMBERS, WORKERS)}
    groups = {"clusters": {"hosts": {"gpu": here}}, "workers": {"hosts": hosts, "vars": login}}
    path = folder / "inventory.yml"
    path.write_text(json.dumps({"all": {"children": groups}}))
    return path


def hand_over(place: Place) -> None:
    """Give every node the training program, in the folder that its pods see."""
    program = PROGRAMS[0]
    text = (
        f"mkdir -p {LIBRARY} && cat > {LIBRARY}/{program.name} <<'END_OF_PROGRAM'\n{program.read_text()}END_OF_PROGRAM"
    )
    together(lambda number: place.inside(number, text))


def wanted(place: Place, tmp_path: Path) -> dict[str, Any]:
    """A job without a named namespace, with a GPU for each pod, and a test of it."""
    environment = place.lab.environment
    kubernetes = {"image": OPENMPI, "kubectl": environment["LAB_KUBECTL"], "kubeconfig": environment["KUBECONFIG"]}
    return {
        "training_backend": "kubernetes",
        "training_kubernetes": {**kubernetes, "job": {"gpus": 1}},
        "training_name": NAME,
        "training_dir": LIBRARY,
        "training_runs": RUNS,
        "training_command": ["python3", "-u", f"{LIBRARY}/train.py", "--seconds", "0.2"],
        "vmotion_test_dir": str(tmp_path / "tests"),
        "vmotion_test_warmup_steps": 5,
        "vmotion_test_finish_timeout": 5,
        "vmotion_test_limits": {"max_gap_s": 60, "resume_deadline_s": 120},
    }


def entries(evidence: Path, kind: str) -> list[dict[str, Any]]:
    """The entries of one kind in the journal of a test."""
    lines = map(json.loads, (evidence / "journal.jsonl").read_text().splitlines())
    return [one for one in lines if one["entry"] == kind]


@pytest.fixture
def place(members: Place) -> Place:
    """The members of Kubernetes without a job, whose moves are short."""
    jobs = Jobs(members.lab.kubernetes)
    for job in members.lab.kubernetes.get("mpijobs")["items"]:
        jobs.remove(job["metadata"]["name"])
    members.lab.hypervisor.ask("PUT", "/moves", {"precopy_seconds": 1, "stun_seconds": STUN})
    hand_over(members)
    return members


def test_a_job_outlives_the_moves_of_all_its_nodes(place: Place, tmp_path: Path) -> None:
    where, given = inventory(place, tmp_path), json.dumps(wanted(place, tmp_path))
    before = {number: place.told(number)["host"] for number in NUMBERS}
    done = place.ansible.playbook("playbooks/vmotion_test.yml", "-i", str(where), "-e", given, timeout=TEST_SECONDS)
    assert done.rc == 0, done.out[-6000:]
    (evidence,) = (tmp_path / "tests").iterdir()
    verdict = json.loads((evidence / "verdict.json").read_text())
    assert (verdict["verdict"], verdict["moved"], verdict["unproven"]) == ("continuous", "all", [])
    assert sorted(one["worker"] for one in verdict["moves"]) == WORKERS
    assert all(STUN - 0.5 <= one["gap_s"] < 60 for one in verdict["moves"]), "a stun was not seen as it was"
    assert all(place.told(number)["host"] != host for number, host in before.items())
    # Ranks tell the names of pods; each move has the rank of the pod on its node.
    (warm,) = entries(evidence, "warm")
    assert sorted(one["worker"] for one in warm["pods"].values()) == WORKERS
    assert sorted(rank for one in verdict["moves"] for rank in one["ranks"]) == [0, 1, 2, 3]
    assert [one["ranks"] for one in verdict["moves"]] == [warm["hosts"][one["worker"]] for one in verdict["moves"]]
    # Kubernetes was asked before each move, and had nothing against one.
    asked = entries(evidence, "preflight")
    assert len(asked) == len(WORKERS)
    assert not [one for entry in asked for one in entry["findings"] if one["severity"] == "stop"]
    assert "with rank 0 in pod dml-rolling-worker-0" in done.out
    # The job was the test's own.
    assert place.lab.kubernetes.get("mpijobs")["items"] == []
