# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Causes that need the nodes: a folder that a node does not have, and failures of a machine."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.kubernetes.state import state_of

from .objects import CREATED, event, job, pod, snapshot

FAILED = ("Failed", "True", "BackoffLimitExceeded/")
NO_FOLDER = 'MountVolume.SetUp failed for volume "work" : hostPath type check failed: /runs/one/work is not a directory'
LOST = "ORTE has lost communication with a remote daemon.\n\n  Remote daemon: [[1,0],1] on node t2-worker-0\n"
EVICTED = event("Pod", "t2-worker-0", "Evicted", "The node was low on resource: memory.")
KILLED = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}


WAITS = pod("worker", 0, phase="Pending", state={"waiting": {"reason": "ContainerCreating"}})


def test_a_folder_that_is_not_on_the_node_is_the_cause_and_the_sentence_has_the_remedy() -> None:
    failed = event("Pod", "t2-worker-0", "FailedMount", NO_FOLDER, after=7)
    # Another pod is not a cause: it waits for a node.
    others = [pod("worker", 1, phase="Pending", state={"waiting": {"reason": "ImagePullBackOff"}})]
    told = state_of(snapshot(job(CREATED), [*others, WAITS], [failed]))
    assert told["why"] == (
        "pod t2-worker-0 does not start, because node k3 has no folder /runs/one/work: Ansible must reach the node "
        "itself, by ssh, to copy the folder there"
    )
    assert told["blocked"] == told["started"] + 7


@pytest.mark.parametrize(
    ("message", "waits"),
    [
        ('MountVolume.SetUp failed for volume "library" : configmap "t2-library" not found', WAITS),
        (NO_FOLDER, pod("worker", 0)),
    ],
    ids=["another volume", "it runs by now"],
)
def test_other_pods_may_start_by_themselves(message: str, waits: dict[str, Any]) -> None:
    told = state_of(snapshot(job(CREATED), [waits], [event("Pod", "t2-worker-0", "FailedMount", message)]))
    assert (told["state"], "blocked" in told) == ("waiting", False)


@pytest.mark.parametrize(
    ("given", "is_of_machine"),
    [
        ({"log": LOST}, True),
        ({"events": [EVICTED]}, True),
        ({"pods": [pod("worker", 0, phase="Failed", state=KILLED)], "log": LOST}, False),
        ({"log": "[1,1]<stderr>:ValueError: odd\n"}, False),
        ({}, False),
    ],
    ids=["lost node", "evicted", "its own limit", "exception", "unknown"],
)
def test_a_lost_node_is_a_failure_of_a_machine(given: dict[str, Any], is_of_machine: bool) -> None:
    job_state = state_of(snapshot(job(CREATED, FAILED), **given))
    assert (job_state["state"], job_state["machine"]) == ("died", is_of_machine)
