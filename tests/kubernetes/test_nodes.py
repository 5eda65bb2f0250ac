"""playbooks/kubernetes.yml on the lab: limits in force, labels of verified capabilities, a second run unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lab.kubernetes.cluster import Cluster
from tests.integration.ansible import Outcome
from tests.kubernetes.test_vmotion import inventory
from tests.lab.places import Place
from tests.lab.trial import NUMBERS, WORKERS

# No more than what this machine may lock itself: nodes cannot raise its limits.
MEMLOCK = 4 << 20
FACTS = "/etc/ansible/facts.d"
GPUS = {"proven": True, "gpus": [{"name": "GRID T4-16C"}]}
# Stands in for NVIDIA's program.
PROGRAM = "/usr/local/bin/nvidia-ctk"
DESCRIBES = "printf 'cdiVersion: 0.5.0\\nkind: nvidia.com/gpu\\ndevices: []\\n'"
OURS = "dml.vsphere/"


def prepare(place: Place, folder: Path, *arguments: str, **more: Any) -> Outcome:
    """Run the playbook."""
    environment = place.lab.environment
    given = {
        "kubernetes_node_memlock": MEMLOCK,
        "kubernetes_node_resources": ["nvidia.com/gpu", "rdma/hca"],
        "kubernetes_node_kubeconfig": environment["KUBECONFIG"],
        "mpi_operator_install": False,
        "mpi_operator_kubeconfig": environment["KUBECONFIG"],
        **more,
    }
    where = ("-i", str(inventory(place, folder)), "-e", json.dumps(given))
    return place.ansible.playbook("playbooks/kubernetes.yml", *where, *arguments, timeout=900)


def labels(cluster: Cluster) -> dict[str, dict[str, str]]:
    """The labels of ours, by node."""
    nodes = {node["metadata"]["name"]: node["metadata"]["labels"] for node in cluster.get("nodes")["items"]}
    return {name: {key: one for key, one in every.items() if key.startswith(OURS)} for name, every in nodes.items()}


def memlock(place: Place, number: int) -> str:
    """The limit of the container runtime that runs."""
    pid = place.inside(number, "systemctl show --property=MainPID --value containerd").stdout.strip()
    return place.inside(number, f"grep 'Max locked memory' /proc/{pid}/limits").stdout.split()[4]


def prove_gpus(place: Place, number: int, reported: dict[str, Any]) -> None:
    """Write what the role gpu_driver keeps of a GPU, and the program that describes it."""
    place.inside(
        number, f"sudo mkdir -p {FACTS} && sudo tee {FACTS}/dml_gpu_driver.fact <<'E'\n{json.dumps(reported)}\nE"
    )
    place.inside(number, f"sudo tee {PROGRAM} <<'E' && sudo chmod 755 {PROGRAM}\n#!/bin/sh\n{DESCRIBES}\nE")


def test_workers_become_nodes_that_can_train(members: Place, tmp_path: Path) -> None:
    cluster = members.lab.kubernetes
    prove_gpus(members, 2, GPUS)
    shown = prepare(members, tmp_path, "--check", "--diff")
    assert shown.rc == 0, shown.out[-4000:]
    assert labels(cluster) == {name: {} for name in WORKERS}, "a check wrote labels"
    assert {memlock(members, number) for number in NUMBERS} != {str(MEMLOCK)}, "a check set limits"
    done = prepare(members, tmp_path)
    assert done.rc == 0, done.out[-4000:]
    assert {memlock(members, number) for number in NUMBERS} == {str(MEMLOCK)}
    with_gpu = {f"{OURS}gpu": "GRID-T4-16C", f"{OURS}gpus": "1"}
    assert labels(cluster) == {name: with_gpu if name == "worker02" else {} for name in WORKERS}
    assert "kind: nvidia.com/gpu" in members.inside(2, "cat /etc/cdi/nvidia.yaml").stdout
    assert members.inside(1, "ls /etc/cdi/nvidia.yaml", check=False).returncode != 0
    proof = json.loads(members.inside(2, f"cat {FACTS}/dml_kubernetes_node.fact").stdout)
    assert (proof["proven"], proof["labels"], proof["memlock"]) == (True, with_gpu, str(MEMLOCK))
    again = prepare(members, tmp_path)
    assert again.rc == 0 and set(again.changes.values()) == {0}, again.out[-4000:]
    # A card that is gone takes its labels with it.
    prove_gpus(members, 2, {"proven": False, "why": "nvidia-smi sees 0 GPUs, not 1."})
    assert prepare(members, tmp_path).rc == 0
    assert labels(cluster) == {name: {} for name in WORKERS}


def test_refuses_a_machine_that_offers_too_little(members: Place, tmp_path: Path) -> None:
    lost = prepare(members, tmp_path, "--limit", "worker01", kubernetes_node_name="nobody")
    message = " ".join(lost.out.split())
    assert lost.rc != 0 and "Kubernetes has no node nobody: let the worker join" in message
    assert "nobody" not in labels(members.lab.kubernetes)
    more = {"kubernetes_node_resources": ["example.com/none"], "kubernetes_node_timeout": 2}
    short = prepare(members, tmp_path, "--limit", "worker01", **more)
    assert short.rc != 0 and "The node offers no example.com/none: check that" in " ".join(short.out.split())
