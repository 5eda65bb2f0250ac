# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Objects of Kubernetes with a part replaced by anything: a job has a state, a site has findings, nothing raises."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from plugins.module_utils.core.findings import Finding
from plugins.module_utils.kubernetes.preflight import Desired, Site, findings, grace, least_tolerated, pods_of
from plugins.module_utils.kubernetes.seen import MOST_RANKS, part, several
from plugins.module_utils.kubernetes.state import changes, ranks_of_pods, state_of, workers_of
from tests.fakes.foreign import mangled

from .objects import CREATED, LAUNCHER, NAME, RUNNING, WORKERS, event, job, pod, seen, unscheduled
from .test_preflight import NODES, rdma
from .test_preflight import pod as pod_of_site

STATES = ("absent", "waiting", "running", "finished", "died", "stopped")
ENDED = {"terminated": {"exitCode": 1, "reason": "OOMKilled", "startedAt": "2026-07-03T14:59:17Z"}}
JOBS: dict[str, Any] = {
    "job": job(CREATED, RUNNING),
    "pods": [LAUNCHER, *WORKERS, unscheduled(3, "0/5 nodes"), pod("launcher", phase="Failed", state=ENDED)],
    "events": [event("Pod", f"{NAME}-worker-0", "TaintManagerEviction", "Marking for deletion")],
}
BUDGET = {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"mpi_job_name": "x"}}}}
SITES: dict[str, Any] = {
    "nodes": NODES,
    "pods": [
        pod_of_site("api", "w1", {"component": "kube-apiserver"}, ["--node-monitor-grace-period=9s"]),
        pod_of_site("operator", "w2", {"app": "mpi-operator"}),
        *WORKERS,
    ],
    "budgets": [BUDGET],
    "config_maps": [rdma(["15b3"])],
}


@given(mangled(JOBS))
def test_a_job_of_odd_objects_has_a_state(told: Any) -> None:
    # The API hands on objects and lists of objects, and nothing else.
    looked = seen(dict(part(told, "job")) or None, several(told, "pods"), several(told, "events"))
    state = state_of(looked)
    assert state["state"] in STATES
    pods = state.get("pods") or {}
    assert list(changes(pods, pods)) == []
    assert len(ranks_of_pods({}, pods, {})) == 0
    assert all(isinstance(one["name"], str) for one in workers_of(looked, ["kubectl"], {}))


@given(mangled(SITES))
def test_a_site_of_odd_objects_has_findings(told: Any) -> None:
    site = Site("v1.35.4", *(several(told, key) for key in ("nodes", "pods", "budgets", "config_maps")))
    asked = Desired(["w1", "w2"], 30, least_tolerated(pods_of(site, "default", NAME)), {"nvidia.com/gpu": 1}, 2, True)
    assert all(isinstance(one, Finding) for one in findings(site, asked))
    assert grace(site) > 0


@pytest.mark.parametrize("data", ['{"configList": 5}', '{"resourceList": {"a": 1}}', "[1]", '{"configList": [[]]}'])
def test_somebody_elses_configuration_says_nothing_of_vendors(data: str) -> None:
    site = Site("v1.35.4", NODES, config_maps=[{"metadata": {"name": "app"}, "data": {"config.json": data}}])
    assert findings(site, Desired(["w1"], 30, 300.0, has_pvrdma=True)) == []


@pytest.mark.parametrize("word", ["soon", "", "-1s"])
def test_a_grace_that_cannot_be_read_is_that_of_the_version(word: str) -> None:
    controllers = pod_of_site("c", "cp", {}, [f"--node-monitor-grace-period={word}"])
    assert grace(Site("v1.35.4", NODES, [controllers])) == 50


@pytest.mark.parametrize(("workers", "slots"), [(MOST_RANKS + 1, 1), (2, MOST_RANKS), (-1, 1), ("many", 1)])
def test_more_ranks_than_can_be_are_not_listed(workers: Any, slots: Any) -> None:
    made = job(RUNNING)
    made["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"], made["spec"]["slotsPerWorker"] = workers, slots
    assert seen(made).ranks == []
