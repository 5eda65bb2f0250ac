"""The nodes and the queue of a job that a window has stopped: kept from other jobs, and released."""

from __future__ import annotations

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.kubernetes.kept_nodes import JobPlace
from tests.fakes.kubernetes_objects import Objects, node, queue

JOB, IN_QUEUE = "research/one", ("research", "research")


def place(objects: Objects, nodes: tuple[str, ...] = ("w1", "w2")) -> JobPlace:
    return JobPlace(objects.here, {}, JOB, nodes, IN_QUEUE, {"nvidia.com/gpu": 1})


def test_keeps_queue_and_nodes_until_they_are_freed() -> None:
    objects = Objects(node("w1"), node("w2"), node("w3"), *queue())
    before = dict(objects.found)

    place(objects).keep()
    place(objects).keep()

    assert objects.writes == [("ClusterQueue", "gpus"), ("Node", "w1"), ("Node", "w2")], "the queue first, and once"
    assert objects.spec("ClusterQueue", "gpus") == {"stopPolicy": "Hold"}
    assert objects.spec("Node", "w1") == {"unschedulable": True}
    # A later controller need not know the nodes.
    place(objects, ()).free()
    place(objects).free()
    assert objects.writes[3:] == [("Node", "w1"), ("Node", "w2"), ("ClusterQueue", "gpus")] and objects.kept == []
    for key in before:
        assert objects.found[key]["spec"] == before[key]["spec"], key


def test_nodes_that_others_cordoned_stay_cordoned() -> None:
    objects = Objects(node("w1", unschedulable=True), node("w2"), *queue("HoldAndDrain"))

    place(objects).keep()
    assert objects.kept == ["w2"]
    place(objects).free()

    assert objects.spec("Node", "w1") == {"unschedulable": True} and "unschedulable" not in objects.spec("Node", "w2")
    assert objects.spec("ClusterQueue", "gpus") == {"stopPolicy": "HoldAndDrain"}


def test_node_is_ready_once_it_offers_its_gpus() -> None:
    objects = Objects(node("w1", is_ready=False), node("w2", gpus=0), node("w3", gpus=0), *queue())

    assert place(objects).why_not_ready() == (
        "node w1 is not ready: Kubelet stopped posting status.; node w2 offers 0 nvidia.com/gpu, and a worker needs 1"
    )
    objects.found.update({("Node", "w1"): node("w1"), ("Node", "w2"): node("w2", gpus=2)})
    assert place(objects).why_not_ready() == ""


def test_node_is_ready_when_it_offers_1k_devices() -> None:
    offering = node("w1")
    offering["status"]["allocatable"]["rdma/hca"] = "1k"
    kept = JobPlace(Objects(offering).here, {}, JOB, ["w1"], needs={"rdma/hca": 1})
    assert kept.why_not_ready() == ""


def test_counts_waiting_jobs_and_refuses_an_unknown_queue() -> None:
    assert place(Objects(*queue(pending=3))).pending() == 3
    assert JobPlace(Objects().here, {}, JOB, ["w1"]).pending() == 0, "a job without a queue"
    with pytest.raises(Refused, match="Kueue has no queue research in the namespace research"):
        place(Objects()).pending()
