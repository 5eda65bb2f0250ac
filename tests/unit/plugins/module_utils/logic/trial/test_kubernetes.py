# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A vMotion test of a job on Kubernetes: whom it asks about the job, and what becomes of pods that are others."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.logic.trial import calls, judging
from plugins.module_utils.logic.trial.observed import observed
from plugins.modules import mpijob_info
from tests.fakes.trial import LAUNCHER, World

WHERE = {"name": "train", "namespace": "ml", "kubeconfig": "/k", "context": "here"}
PODS = {
    name: {"uid": f"{name}-1", "node": name, "restarts": 0, "started": 1.0, "is_deleted": False} for name in ("a", "b")
}


class Kubernetes(World):
    """The same cluster with its job on Kubernetes."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(kubernetes=WHERE, **settings)
        self.pods: list[dict[str, Any]] = [PODS]
        self.asked: list[dict[str, Any]] = []

    def mpijob_info(self, options: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(options)
        pods = self.pods[min(len(self.asked), len(self.pods)) - 1]
        return {"job": {"state": self.job, "launcher": LAUNCHER, "pods": pods}}

    def k8s(self, options: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(options)
        self.job = "absent"
        return {}


def test_the_job_is_asked_about_at_kubernetes_and_never_on_its_launcher() -> None:
    world = Kubernetes(workers=["w1"])
    seen = world.carry_out()
    assert all(options == WHERE for options in world.asked) and len(world.asked) >= 3
    assert not {"training_job_info", "training_job"} & set(world.calls)
    assert judging.case(seen)["facts"]["pods"] == []


def test_a_pod_that_was_recreated_is_a_fact_of_the_verdict() -> None:
    world = Kubernetes(workers=["w1"])
    world.pods = [PODS, {**PODS, "b": {**PODS["b"], "uid": "other"}}]
    assert judging.case(world.carry_out())["facts"]["pods"] == ["pod b was recreated: b-1 became other"]


def test_a_job_of_mpirun_has_no_such_fact() -> None:
    assert judging.case(World(workers=["w1"]).carry_out())["facts"]["pods"] is None


@pytest.mark.parametrize(("api", "version"), [({}, "v2beta1"), ({"api": "v1alpha2"}, "v1alpha2")])
def test_a_job_of_the_test_is_ended_by_deleting_it(api: dict[str, str], version: str) -> None:
    world = World(kubernetes={**WHERE, **api})
    call = calls.call("stop", observed(world.journal), "/test")
    assert call is not None and (call.module, call.where) == ("kubernetes.core.k8s", calls.HERE)
    assert call.options == {
        "api_version": f"kubeflow.org/{version}",
        "kind": "MPIJob",
        "state": "absent",
        "wait": True,
        **WHERE,
    }


def test_a_job_without_a_named_namespace_is_deleted_where_it_is_read() -> None:
    there = {key: value for key, value in WHERE.items() if key != "namespace"}
    call = calls.call("stop", observed(World(kubernetes=there).journal), "/test")
    assert call is not None
    assert call.options["namespace"] == mpijob_info.ARGUMENTS["namespace"]["default"] == "default"
