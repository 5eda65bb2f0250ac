# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A vMotion test of a job on Kubernetes: which API it asks about the job, and how it reports recreated pods."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plugins.module_utils.continuity import verdict
from plugins.module_utils.kubernetes import manifests
from plugins.module_utils.kubernetes.job_spec import job_of
from plugins.module_utils.kubernetes.state import ranks_of_pods
from plugins.module_utils.vmotion.test import judging
from plugins.module_utils.vmotion.test.next_step import kind_of, state_of
from plugins.module_utils.vmotion.test.step import HERE, Controller, ModuleCall
from plugins.module_utils.vmotion.test.steps import before_move, next_moves, tested_job
from plugins.modules import mpijob_info
from tests.fakes.trial import LAUNCHER, Killed, World

NAMES = {"node-1": "w1", "node-2": "w2"}
WHERE: dict[str, Any] = {"name": "train", "namespace": "ml", "kubeconfig": "/k", "context": "here", "names": NAMES}
KEPT = {"restarts": 0, "started": 1.0, "is_deleted": False, "role": "worker"}
PODS = {name: {"uid": f"{name}-1", "node": node, **KEPT} for name, node in (("a", "node-2"), ("b", "node-1"))}
CORDONED = {"severity": "warn", "rule": "node", "object": "node-1", "text": "node-1: the node is cordoned."}
SHORT = {"severity": "stop", "rule": "toleration", "object": "node-1", "text": "node-1: the pods tolerate 10 s."}


class Kubernetes(World):
    """The same cluster with its job on Kubernetes."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(kubernetes=WHERE, **settings)
        self.pods: list[dict[str, Any]] = [PODS]
        self.asked: list[dict[str, Any]] = []
        self.preflights: list[dict[str, Any]] = []
        self.found: list[dict[str, Any]] = []
        self.told: dict[str, Any] = {}

    def training_wait(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the ranks by pod: a rank reports the name of its pod as its host."""
        return {**super().training_wait(options), "hosts": {"a": [0], "b": [1]}}

    def mpijob_preflight_info(self, options: dict[str, Any]) -> dict[str, Any]:
        self.preflights.append(options)
        return {"findings": self.found, "stops": [one for one in self.found if one["severity"] == "stop"]}

    def mpijob_info(self, options: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(options)
        pods = self.pods[min(len(self.asked), len(self.pods)) - 1]
        return {"job": {"state": self.job, "launcher": LAUNCHER, "pods": pods, **self.told}}

    def k8s(self, options: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(options)
        self.job = "absent"
        return {}


def stop_of(world: World) -> ModuleCall:
    """Return the call that stops the job of a test."""
    assert tested_job.STOP.action is not None
    call = tested_job.STOP.action(state_of(world.journal), Controller("/test"))
    assert isinstance(call, ModuleCall)
    return call


def test_the_job_is_asked_about_at_kubernetes_and_never_on_its_launcher() -> None:
    world = Kubernetes(workers=["w1"])
    state = world.carry_out()
    assert all(options == WHERE for options in world.asked) and len(world.asked) >= 3
    assert not {"training_job_info", "training_job"} & set(world.calls)
    assert judging.verdict_input(state)["facts"]["pods"] == []


def test_a_pod_that_was_recreated_is_a_fact_of_the_verdict() -> None:
    world = Kubernetes(workers=["w1"])
    world.pods = [PODS, {**PODS, "b": {**PODS["b"], "uid": "other"}}]
    assert judging.verdict_input(world.carry_out())["facts"]["pods"] == ["pod b was recreated: b-1 became other"]


@pytest.mark.parametrize(
    ("later", "said"),
    [
        ({name: {**one, "is_deleted": True} for name, one in PODS.items()}, []),
        ({}, []),
        (
            {**PODS, "b": {**PODS["b"], "is_deleted": True, "why": "its node was silent"}},
            ["pod b is marked for deletion"],
        ),
        ({**PODS, "b": {**PODS["b"], "uid": "other"}}, ["pod b was recreated: b-1 became other"]),
    ],
    ids=["deleted", "gone", "deleted before its end", "recreated"],
)
def test_pods_that_the_operator_deletes_after_the_end_break_nothing(later: dict[str, Any], said: list[str]) -> None:
    world = Kubernetes(workers=["w1"])
    state = world.carry_out()
    job = {"state": "finished", "launcher": LAUNCHER, "pods": later}
    pods = judging.verdict_input(replace(state, job_now=job))["facts"]["pods"]
    assert [one.partition(",")[0] for one in pods] == said


def test_a_node_that_was_called_not_ready_is_a_fact_of_the_verdict() -> None:
    world = Kubernetes(workers=["w1"])
    world.told = {"silences": ["Kubernetes reported node node-1 as not ready"]}
    assert judging.verdict_input(world.carry_out())["facts"]["silences"] == world.told["silences"]


def test_a_job_of_mpirun_has_no_such_fact() -> None:
    assert judging.verdict_input(World(workers=["w1"]).carry_out())["facts"]["pods"] is None


@pytest.mark.parametrize(("api", "version"), [({}, "v2beta1"), ({"api": "v1alpha2"}, "v1alpha2")])
def test_a_job_of_the_test_is_ended_by_deleting_it(api: dict[str, str], version: str) -> None:
    world = World(kubernetes={**WHERE, **api})
    call = stop_of(world)
    assert (call.module, call.where) == ("kubernetes.core.k8s", HERE)
    made = call.options.pop("resource_definition")
    assert [(one["kind"], one["metadata"]) for one in made] == [
        ("MPIJob", {"name": "train"}),
        ("ConfigMap", {"name": "train-library"}),
        ("Secret", {"name": "train-environment"}),
    ]
    assert made[0]["apiVersion"] == f"kubeflow.org/{version}"
    assert call.options == {
        "state": "absent",
        "wait": True,
        "delete_options": {"propagationPolicy": "Foreground"},
        "namespace": "ml",
        "kubeconfig": "/k",
        "context": "here",
    }


def test_all_that_a_job_can_have_been_given_is_deleted() -> None:
    job = job_of(
        {
            "name": "train",
            "image": "i",
            "command": ["c"],
            "workers": 1,
            "secrets": {"A": "b"},
            "files": {"c": "d"},
            "library": "/lib",
        }
    )
    given = [*manifests.manifests(job), *filter(None, [manifests.secret(job)])]
    left = [(one["apiVersion"], one["kind"], one["metadata"]["name"]) for one in manifests.owned("train", job.api)]
    assert sorted(left) == sorted((one["apiVersion"], one["kind"], one["metadata"]["name"]) for one in given)


def test_a_job_without_a_named_namespace_is_deleted_where_it_is_read() -> None:
    there = {key: value for key, value in WHERE.items() if key != "namespace"}
    call = stop_of(World(kubernetes=there))
    assert call.options["namespace"] == mpijob_info.ARGUMENTS["namespace"]["default"] == "default"


def test_the_ranks_of_a_worker_are_those_of_the_pods_on_its_node() -> None:
    world = Kubernetes()
    state = world.carry_out()
    assert state.ranks == {"w1": [1], "w2": [0]}
    assert [(one["worker"], one["ranks"]) for one in state.moves] == [("w1", [1]), ("w2", [0])]
    (warm,) = [entry for entry in world.journal if entry["entry"] == "warm"]
    assert kind_of("warm").messages(warm, state) == ["rank 0 in pod a on w2", "rank 1 in pod b on w1"]
    state.left = [{"worker": "w1", "source": "esx1", "target": "esx3"}]
    assert next_moves.BEGIN.title_of(state) == "prepares the move w1: esx1 -> esx3, with rank 1 in pod b"


def test_a_pod_with_the_network_of_its_node_is_found_by_the_name_of_that() -> None:
    pods = {"a": {**PODS["a"], "node": "w1.example.com"}, "launch": {**PODS["b"], "role": "launcher"}}
    found = ranks_of_pods({"w1": [0, 1]}, pods, {"w1.example.com": "vm-1"})
    assert found == {"a": {"worker": "vm-1", "ranks": [0, 1]}}
    assert ranks_of_pods({"elsewhere": [0]}, pods, {}) == {}


@pytest.mark.parametrize(
    ("node", "host"),
    [("w1.example.com", "W1.example.com"), ("W1", "w1.example.com"), ("10.0.0.7", "10.0.0.7"), ("k3", "A")],
)
def test_the_host_of_a_rank_is_compared_without_case_and_domain(node: str, host: str) -> None:
    pods = {"a": {**PODS["a"], "node": node}, "b": {**PODS["b"], "node": "10.0.0.8"}}
    assert ranks_of_pods({host: [1, 0]}, pods, {}) == {"a": {"worker": node, "ranks": [0, 1]}}


def test_a_worker_is_not_idle_while_a_rank_runs_in_no_pod_that_kubernetes_reports() -> None:
    class Unknown(Kubernetes):
        def training_wait(self, options: dict[str, Any]) -> dict[str, Any]:
            return {**super().training_wait(options), "hosts": {"a": [0], "inside-another-network": [1]}}

    state = Unknown().carry_out()
    assert state.ranks == {"w2": [0], "inside-another-network": [1]}
    assert judging.verdict_input(state)["facts"]["ranks"] == {"w2": [0]}, "w1 may run rank 1"


def test_kubernetes_is_asked_before_each_move_of_what_would_end_the_job() -> None:
    world = Kubernetes(stun_budget=20.0, accept=["node"])
    state = world.carry_out()
    how = {"stun_seconds": 20.0, "accept": ["node"]}
    where = {key: value for key, value in WHERE.items() if key != "names"}
    assert world.preflights == [{**where, **how, "moved": [node], "at_once": False} for node in ("node-1", "node-2")]

    kinds = [entry["entry"] for entry in world.journal]
    assert [kinds[index + 1] for index, kind in enumerate(kinds) if kind == "preflight"] == ["begin", "begin"]
    assert len(state.moves) == 2


def test_kubernetes_is_asked_about_the_moves_of_a_wave_together() -> None:
    state = Kubernetes().carry_out()
    state.left = [{"worker": worker, "source": "esx1", "target": "esx3", "wave": 1} for worker in ("w1", "w2")]
    assert before_move.PREFLIGHT.action is not None
    call = before_move.PREFLIGHT.action(state, Controller("/test"))
    assert isinstance(call, ModuleCall)
    assert (call.options["moved"], call.options["at_once"]) == (["node-1", "node-2"], True)


def test_a_worker_whose_node_nobody_named_has_its_own_name_there() -> None:
    world = Kubernetes(workers=["w1"])
    world.settings["kubernetes"] = {key: value for key, value in WHERE.items() if key != "names"}
    world.carry_out()
    assert [one["moved"] for one in world.preflights] == [["w1"]]


def test_what_kubernetes_finds_is_kept_and_refuses_the_move() -> None:
    world = Kubernetes(workers=["w1"])
    world.found = [CORDONED, SHORT]
    state = world.carry_out()
    assert (world.calls["vmotion"], len(state.moves), state.moves[0]["started"]) == (0, 1, None)
    assert "the pods tolerate 10 s. Remove the cause, or accept it with vmotion_test_accept." in state.moves[0]["said"]
    (kept,) = [entry for entry in world.journal if entry["entry"] == "preflight"]
    assert (kept["findings"], kept["accepted"]) == (world.found, [])
    assert kind_of("preflight").messages(kept, state) == [CORDONED["text"]], "the entry of the move has the errors"


def test_another_controller_asks_kubernetes_again() -> None:
    world = Kubernetes(workers=["w1"])
    world.dies_in_move = "before"
    with pytest.raises(Killed):
        world.carry_out()
    begun = [entry for entry in world.journal if entry["entry"] == "begin"]
    world.journal = world.journal[: world.journal.index(begun[0])]
    world.carry_out()
    assert len(world.preflights) == 2


def test_a_job_of_mpirun_is_not_asked_about_at_kubernetes() -> None:
    world = World()
    world.carry_out()
    assert "preflight" not in [entry["entry"] for entry in world.journal]


@pytest.mark.parametrize(
    ("job", "told", "why"),
    [
        ("running", {}, ""),
        ("finished", {}, ""),
        ("died", {"why": "pod b was evicted from node-1 (Evicted)"}, "pod b was evicted from node-1 (Evicted)"),
        ("absent", {}, "it is absent"),
    ],
)
def test_what_a_job_died_of_is_a_fact_of_the_verdict(job: str, told: dict[str, str], why: str) -> None:
    world = Kubernetes(workers=["w1"])
    state = world.carry_out()
    state.job_now = {**(state.job_now or {}), "state": job, **told}
    case = judging.verdict_input(state)
    assert case["facts"]["died"] == why
    died = [one["detail"] for one in verdict.verdict([], [], {}, ended=case["ended"], facts=case["facts"])["breaches"]]
    assert died == ([] if not why else [f"the job died: {why}"])
