"""playbooks/vmotion_test.yml on the lab's Kubernetes: an MPIJob trains on four nodes, whose virtual machines move."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lab.kubernetes.images import OPENMPI
from tests.integration.ansible import Outcome
from tests.kubernetes.mpijob import Jobs
from tests.lab.places import USER, Place, ansible_login
from tests.lab.trial import NUMBERS, PROGRAMS, WORKERS, give, together

STUN = 5.0
# Kubernetes calls a node not ready 40 to 50 s after its last word.
UNNOTICED, SILENT, TOO_LONG, TOLERATION = 20.0, 60.0, 90.0, 10
LIBRARY, RUNS = f"/home/{USER}/training", f"/home/{USER}/runs"
TEST_SECONDS = 2400


def inventory(place: Place, folder: Path) -> Path:
    """The cluster, and its workers as Ansible logs into them."""
    here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    hosts = {name: {"ansible_host": place.address(number)} for number, name in zip(NUMBERS, WORKERS)}
    groups = {"clusters": {"hosts": {"gpu": here}}, "workers": {"hosts": hosts, "vars": ansible_login(place.lab.key)}}
    path = folder / "inventory.yml"
    path.write_text(json.dumps({"all": {"children": groups}}))
    return path


def hand_over(place: Place) -> None:
    """Give every node the training program, in the folder that its pods see."""
    together(lambda number: give(place, number, PROGRAMS[0], folder=LIBRARY))


def variables(place: Place, tmp_path: Path) -> dict[str, Any]:
    """A job without a named namespace, with a GPU for each pod, and a test of it; each has its own name."""
    environment = place.lab.environment
    kubernetes = {"image": OPENMPI, "kubectl": environment["LAB_KUBECTL"], "kubeconfig": environment["KUBECONFIG"]}
    return {
        "training_backend": "kubernetes",
        "training_kubernetes": {**kubernetes, "job": {"gpus": 1}},
        "training_name": tmp_path.name,
        "training_dir": LIBRARY,
        "training_runs": RUNS,
        "training_command": ["python3", "-u", f"{LIBRARY}/train.py", "--seconds", "0.2"],
        "vmotion_test_dir": str(tmp_path / "tests"),
        "vmotion_test_warmup_steps": 5,
        "vmotion_test_finish_timeout": 5,
        "vmotion_test_limits": {"max_gap_s": 60, "resume_deadline_s": 120},
    }


def values(evidence: Path, key: str) -> list[dict[str, Any]]:
    """The values in the journal of a test whose keys begin so."""
    lines = map(json.loads, (evidence / "journal.jsonl").read_text().splitlines())
    return [one["value"] for one in lines if one["key"].startswith(key)]


@pytest.fixture
def place(members: Place) -> Place:
    """The members of Kubernetes without a job, whose moves are short."""
    jobs = Jobs(members.lab.kubernetes)
    for job in members.lab.kubernetes.get("mpijobs")["items"]:
        jobs.remove(job["metadata"]["name"])
    members.lab.hypervisor.ask("PUT", "/moves", {"precopy_seconds": 1, "stun_seconds": STUN})
    hand_over(members)
    return members


def test_job_survives_moves_of_all_its_nodes(place: Place, tmp_path: Path) -> None:
    where, given = inventory(place, tmp_path), json.dumps(variables(place, tmp_path))
    before = {number: place.facts_of(number)["host"] for number in NUMBERS}
    done = place.ansible.playbook("playbooks/vmotion_test.yml", "-i", str(where), "-e", given, timeout=TEST_SECONDS)
    assert done.rc == 0, done.out[-6000:]
    (evidence,) = (tmp_path / "tests").iterdir()
    verdict = json.loads((evidence / "verdict.json").read_text())
    assert (verdict["verdict"], verdict["moved"], verdict["unproven"]) == ("continuous", "all", [])
    assert sorted(one["worker"] for one in verdict["moves"]) == WORKERS
    assert all(STUN - 0.5 <= one["gap_s"] < 60 for one in verdict["moves"]), "a stun was not seen as it was"
    assert all(place.facts_of(number)["host"] != host for number, host in before.items())
    # Ranks tell the names of pods; each move has the rank of the pod on its node.
    (warm,) = values(evidence, "warm")
    assert sorted(one["worker"] for one in warm["pods"].values()) == WORKERS
    assert sorted(rank for one in verdict["moves"] for rank in one["ranks"]) == [0, 1, 2, 3]
    assert [one["ranks"] for one in verdict["moves"]] == [warm["hosts"][one["worker"]] for one in verdict["moves"]]
    # Kubernetes was asked before each move, and had nothing against one.
    requested = values(evidence, "request")
    assert len(requested) == len(WORKERS)
    assert not [one for entry in requested for one in entry["findings"] if one["severity"] == "stop"]
    assert re.search(rf"with rank 0 in pod dml-{tmp_path.name.replace('_', '-')}-\w+-worker-0", done.out)
    # The test had started the job.
    assert place.lab.kubernetes.get("mpijobs")["items"] == []


def stunned(
    place: Place, tmp_path: Path, seconds: float, worker: str = "worker02", more: Mapping[str, Any] | None = None
) -> tuple[Outcome, dict[str, Any]]:
    """Move one worker with a stun of that length; how the playbook ended, and the verdict."""
    place.lab.hypervisor.ask("PUT", "/moves", {"precopy_seconds": 1, "stun_seconds": seconds})
    limits = {"max_gap_s": 2 * seconds, "resume_deadline_s": 2 * seconds}
    which = {"vmotion_test_workers": [worker], "vmotion_test_limits": limits}
    given = {**variables(place, tmp_path), **which, **(more or {})}
    where = inventory(place, tmp_path)
    command = ("playbooks/vmotion_test.yml", "-i", str(where), "-e", json.dumps(given))
    done = place.ansible.playbook(*command, timeout=TEST_SECONDS)
    (evidence,) = (tmp_path / "tests").iterdir()
    return done, json.loads((evidence / "verdict.json").read_text())


def operators(place: Place) -> str:
    """The node of the operator."""
    (pod,) = place.lab.kubernetes.get("pods", "--namespace", "mpi-operator", "--selector", "app=mpi-operator")["items"]
    return str(pod["spec"]["nodeName"])


def test_kubernetes_does_not_notice_a_short_stun(place: Place, tmp_path: Path) -> None:
    done, verdict = stunned(place, tmp_path, UNNOTICED)
    assert done.rc == 0, done.out[-6000:]
    assert (verdict["verdict"], verdict["moved"]) == ("continuous", "all"), verdict
    assert verdict["moves"][0]["gap_s"] >= UNNOTICED - 0.5
    assert not [reported for reported in verdict["notes"] if "not ready" in reported]


@pytest.mark.parametrize("is_operators", [False, True], ids=["another", "operators"])
def test_node_not_ready_for_a_while_loses_nothing(place: Place, tmp_path: Path, is_operators: bool) -> None:
    worker = operators(place) if is_operators else next(one for one in WORKERS if one != operators(place))
    done, verdict = stunned(place, tmp_path, SILENT, worker)
    assert done.rc == 0, done.out[-6000:]
    assert (verdict["verdict"], verdict["moved"]) == ("continuous", "all"), verdict
    assert verdict["moves"][0]["gap_s"] >= SILENT - 0.5
    (note,) = [reported for reported in verdict["notes"] if "not ready" in reported]
    assert note.startswith(f"Kubernetes reported node {worker} as not ready"), note


def test_reports_deleted_pods_with_too_short_tolerations(place: Place, tmp_path: Path) -> None:
    there = variables(place, tmp_path)["training_kubernetes"]
    short = {**there, "job": {**there["job"], "toleration_seconds": TOLERATION}}
    # Before a move the test asks Kubernetes, and refuses it; here someone takes that for no reason to stay.
    more = {"training_kubernetes": short, "vmotion_test_accept": ["toleration"]}
    done, verdict = stunned(place, tmp_path, TOO_LONG, more=more)
    assert done.rc != 0
    assert verdict["verdict"] == "broken", verdict
    message = " ".join(done.out.split())
    for words in (f"was silent for longer than the pod tolerates ({TOLERATION} s)", "raise tolerationSeconds"):
        assert words in message, done.out[-6000:]
