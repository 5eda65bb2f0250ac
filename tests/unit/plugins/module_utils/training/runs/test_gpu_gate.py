"""A sick GPU stops a run before it starts, unless a healthy spare node takes the place of its node."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.training.runs import gpu_gate
from tests.fakes.training_world import TrainingWorld

SICK = "GPU 00000000:3b:00.0 (NVIDIA H100): Xid 79: take the GPU out of service."
SPARE = {"reach": ["ssh", "w3"]}


def world(*sick: str, **options: Any) -> TrainingWorld:
    made = TrainingWorld(esxi_hosts={"w2": "esx02.lab"}, **options)
    made.sick = dict.fromkeys(sick, SICK)
    return made


def test_healthy_nodes_are_kept() -> None:
    nodes = world()

    assert gpu_gate.replacements(nodes, nodes.run(), {}) == {}
    assert nodes.lines == []


def test_refuses_a_sick_node_without_a_spare() -> None:
    nodes = world("w2")

    with pytest.raises(Refused) as refused:
        gpu_gate.replacements(nodes, nodes.run(), {})

    assert f"w2 (rank 1, on esx02.lab): {SICK} (no other node of the play is spare)" in str(refused.value)
    assert "training_gpu_health=warn" in str(refused.value)


def test_a_healthy_spare_replaces_a_sick_node() -> None:
    nodes = world("w2")

    assert gpu_gate.replacements(nodes, nodes.run(), {"w3": SPARE}) == {"w2": "w3"}
    assert nodes.lines[-1].endswith(f"w3 takes the place of w2 (rank 1, on esx02.lab): {SICK}")


def test_a_sick_spare_replaces_no_node() -> None:
    nodes = world("w1", "w3")

    assert gpu_gate.replacements(nodes, nodes.run(), {"w3": SPARE, "w4": SPARE}) == {"w1": "w4"}
    nodes.sick["w4"] = SICK
    with pytest.raises(Refused, match="too few of the 2 spare nodes are healthy"):
        gpu_gate.replacements(nodes, nodes.run(), {"w3": SPARE, "w4": SPARE})


def test_starts_the_run_despite_findings_if_only_warning() -> None:
    nodes = world("w2", gpu_health="warn")

    assert gpu_gate.replacements(nodes, nodes.run(), {"w3": SPARE}) == {}
    assert any(SICK in line for line in nodes.lines)


def test_reads_no_gpu_if_health_is_ignored() -> None:
    nodes = world("w2", gpu_health="ignore")

    assert gpu_gate.replacements(nodes, nodes.run(), {}) == {}
    assert nodes.log == []


def test_a_started_run_may_use_its_gpus() -> None:
    nodes = world("w2")
    nodes.jobs["/runs/one"] = SimpleNamespace(is_running=True, options={"environment": {}})  # type: ignore[assignment]  # only its state counts

    assert gpu_gate.replacements(nodes, nodes.run(), {}) == {}


@pytest.mark.parametrize(
    ("options", "gdr"),
    [({}, ""), ({"nccl": "2.30.7"}, ""), ({"nccl": "2.30.7", "transport": "rdma", "gdr": "PHB"}, "PHB")],
)
def test_gpudirect_is_checked_only_for_nccl_over_rdma(options: dict[str, Any], gdr: str) -> None:
    nodes, given = world(**options), []
    nodes._nodes_read_gpus = lambda _host, each: given.append(each["gdr"]) or {"findings": []}  # type: ignore[func-returns-value] # for `or`

    gpu_gate.read(nodes, nodes.run(), nodes.run().nodes)

    assert given == [gdr]


def test_names_the_ranks_of_a_multi_gpu_node() -> None:
    nodes = world(ranks_per_node=4)

    assert gpu_gate.where(nodes.run(), "w2") == "w2 (ranks 4 to 7, on esx02.lab)"


def test_ranks_in_pods_or_images_use_another_nccl() -> None:
    requests = []
    for options in ({}, {"image": "ours"}, {"backend": "kubernetes"}, {"share_nodes": True}):
        nodes = world(**options)
        nodes._nodes_read_gpus = lambda _host, given: requests.append(given) or {"findings": []}  # type: ignore[func-returns-value] # for `or`
        gpu_gate.read(nodes, nodes.run(), nodes.run().nodes)

    assert [(given["python"], given["idle"]) for given in requests] == [
        ("/venv/bin/python", True),
        ("", True),
        ("", True),
        ("/venv/bin/python", False),
    ]
