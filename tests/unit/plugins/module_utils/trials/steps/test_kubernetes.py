"""A vMotion test of a job on Kubernetes: which API it asks about the job, and how it reports recreated pods."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from plugins.module_utils.continuity import verdict
from plugins.module_utils.trials.evidence.verdict_input import verdict_input
from tests.fakes.deaths import histories
from tests.unit.simulation.job import LAUNCHER
from tests.unit.simulation.world import World

NAMES = {"node-1": "w1", "node-2": "w2"}
WHERE: dict[str, Any] = {"name": "train", "namespace": "ml", "kubeconfig": "/k", "context": "here", "names": NAMES}
KEPT = {"restarts": 0, "started": 1.0, "is_deleted": False, "role": "worker"}
PODS = {name: {"uid": f"{name}-1", "node": node, **KEPT} for name, node in (("a", "node-2"), ("b", "node-1"))}
CORDONED = {"severity": "warn", "rule": "node", "object": "node-1", "text": "node-1: the node is cordoned."}
SHORT = {"severity": "stop", "rule": "toleration", "object": "node-1", "text": "node-1: the pods tolerate 10 s."}


class Kubernetes(World):
    """The same cluster with its job on Kubernetes."""

    def __init__(self, deaths: Iterable[int] = (), **settings: Any) -> None:
        super().__init__(deaths, **{"kubernetes": WHERE, **settings})
        self.pods: list[dict[str, Any]] = [PODS]
        self.reads: list[dict[str, Any]] = []
        self.preflights: list[dict[str, Any]] = []
        self.moves_before = -1
        self.found: list[dict[str, Any]] = []
        self.reported: dict[str, Any] = {}

    def wait_for_steps(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the ranks by pod: a rank reports the name of its pod as its host."""
        return {**super().wait_for_steps(options), "hosts": {"a": [0], "b": [1]}}

    def mpijob_info(self, options: dict[str, Any]) -> dict[str, Any]:
        if options.pop("gather", []) == ["findings"]:
            self.preflights.append(options)
            self.moves_before = self.moves_before if len(self.preflights) > 1 else self.calls["vmotion"]
            return {"findings": self.found, "stops": [one for one in self.found if one["severity"] == "stop"]}
        self.reads.append(options)
        assert self.job
        pods = self.pods[min(len(self.reads), len(self.pods)) - 1]
        return {"job": {"state": self.job.state, "launcher": LAUNCHER, "pods": pods, **self.reported}}


def test_reads_the_job_only_from_kubernetes() -> None:
    world = Kubernetes(workers=["w1"])
    facts = world.carry_out()
    assert all(options == WHERE for options in world.reads) and len(world.reads) >= 3
    assert not {"training_info", "training_job"} & set(world.calls)
    assert verdict_input(facts)["facts"]["pods"] == []


def test_verdict_gets_a_recreated_pod() -> None:
    world = Kubernetes(workers=["w1"])
    world.pods = [PODS, {**PODS, "b": {**PODS["b"], "uid": "other"}}]
    assert verdict_input(world.carry_out())["facts"]["pods"] == ["pod b was recreated: b-1 became other"]


@pytest.mark.parametrize(
    ("later", "expected"),
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
def test_pods_deleted_after_the_end_break_nothing(later: dict[str, Any], expected: list[str]) -> None:
    world = Kubernetes(workers=["w1"])
    job = {"state": "finished", "launcher": LAUNCHER, "pods": later}
    pods = verdict_input(replace(world.carry_out(), job_now=job))["facts"]["pods"]
    assert [one.partition(",")[0] for one in pods] == expected


def test_verdict_gets_a_node_that_was_not_ready() -> None:
    world = Kubernetes(workers=["w1"])
    world.reported = {"silences": ["Kubernetes reported node node-1 as not ready"]}
    assert verdict_input(world.carry_out())["facts"]["silences"] == world.reported["silences"]


def test_a_job_of_mpirun_has_no_such_fact() -> None:
    assert verdict_input(World(workers=["w1"]).carry_out())["facts"]["pods"] is None


def test_worker_has_the_ranks_of_its_pods() -> None:
    world = Kubernetes()
    facts = world.carry_out()
    assert facts.ranks == {"w1": [1], "w2": [0]}
    assert [(one["worker"], one["ranks"]) for one in facts.moves] == [("w1", [1]), ("w2", [0])]
    start = world.lines.index("waits until the job is warm") + 1
    assert world.lines[start : start + 2] == ["rank 0 in pod a on w2", "rank 1 in pod b on w1"]
    assert "prepares the move w1: esx1 -> esx3, with rank 1 in pod b" in world.lines


def test_rank_outside_known_pods_keeps_workers_busy() -> None:
    class Unknown(Kubernetes):
        def wait_for_steps(self, options: dict[str, Any]) -> dict[str, Any]:
            return {**super().wait_for_steps(options), "hosts": {"a": [0], "inside-another-network": [1]}}

    facts = Unknown().carry_out()
    assert facts.ranks == {"w2": [0], "inside-another-network": [1]}
    assert verdict_input(facts)["facts"]["ranks"] == {"w2": [0]}, "w1 may run rank 1"


def test_checks_kubernetes_before_each_move() -> None:
    world = Kubernetes(stun_budget=20.0, accept=["node"])
    facts = world.carry_out()
    options = {"stun_seconds": 20.0, "accept": ["node"]}
    where = {key: value for key, value in WHERE.items() if key != "names"}
    assert world.preflights == [
        {**where, **options, "moved": [node], "at_once": False} for node in ("node-1", "node-2")
    ]
    assert len(facts.moves) == 2


def test_checks_moves_of_a_wave_together() -> None:
    world = Kubernetes(max_moves=2)
    world.carry_out()
    assert [(one["moved"], one["at_once"]) for one in world.preflights] == [(["node-1", "node-2"], True)]


def test_unnamed_node_has_its_worker_name() -> None:
    world = Kubernetes(workers=["w1"])
    world.settings["kubernetes"] = {key: value for key, value in WHERE.items() if key != "names"}
    world.carry_out()
    assert [one["moved"] for one in world.preflights] == [["w1"]]


def test_finding_of_kubernetes_refuses_the_move() -> None:
    world = Kubernetes(workers=["w1"])
    world.found = [CORDONED, SHORT]
    facts = world.carry_out()
    assert (world.calls["vmotion"], len(facts.moves), facts.moves[0]["started"]) == (0, 1, None)
    assert "the pods tolerate 10 s. Remove the cause, or accept it with vmotion_test_accept." in facts.moves[0]["said"]
    request = world.values["request 1 1"]
    assert (request["findings"], request["accepted"]) == (world.found, [])
    assert CORDONED["text"] in world.lines and SHORT["text"] not in world.lines, (
        "the message of the move has the errors"
    )
    assert world.is_clean


def test_next_controller_checks_kubernetes_before_the_move() -> None:
    for world, _facts in histories(lambda deaths: Kubernetes(deaths, workers=["w1"]), Kubernetes.to_the_end):
        assert (world.moves_before, world.outcome) == (0, "")


def test_does_not_check_mpirun_jobs_on_kubernetes() -> None:
    world = World()
    world.carry_out()
    assert "mpijob_info" not in world.log


@pytest.mark.parametrize(
    ("job", "reported", "why"),
    [
        ("running", {}, ""),
        ("finished", {}, ""),
        ("died", {"why": "pod b was evicted from node-1 (Evicted)"}, "pod b was evicted from node-1 (Evicted)"),
        ("absent", {}, "it is absent"),
    ],
)
def test_verdict_gets_the_cause_of_death(job: str, reported: dict[str, str], why: str) -> None:
    world = Kubernetes(workers=["w1"])
    facts = world.carry_out()
    facts.job_now = {**(facts.job_now or {}), "state": job, **reported}
    case = verdict_input(facts)
    assert case["facts"]["died"] == why
    died = [one["detail"] for one in verdict.verdict([], [], {}, ended=case["ended"], facts=case["facts"])["breaches"]]
    assert died == ([] if not why else [f"the job died: {why}"])
