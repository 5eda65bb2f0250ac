"""The identity of the pods of a job, and the values of API objects."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.kubernetes.seen import events_of, pods_of, seconds
from plugins.module_utils.kubernetes.state import changes, state_of

from .objects import BEGAN, CREATED, LAUNCHER, NAME, RUNNING, WORKERS, event, job, pod, snapshot, stamp


def identities(*pods: dict[str, Any]) -> dict[str, Any]:
    by_name: dict[str, Any] = state_of(snapshot(job(CREATED, RUNNING), [LAUNCHER, *pods]))["pods"]
    return by_name


BEFORE = identities(*WORKERS)
BROKEN = {
    "recreated": (
        identities(pod("worker", 0, "k3", uid="5264c7a5"), *WORKERS[1:]),
        ["pod t2-worker-0 was recreated: afc6e497 became 5264c7a5"],
    ),
    "restarted": (
        identities(
            pod("worker", 0, "k3", uid="afc6e497", restarts=1, state={"running": {"startedAt": stamp(100)}}),
            *WORKERS[1:],
        ),
        [f"pod t2-worker-0: its restarts 0 became 1, the start of its container {BEGAN + 2} became {BEGAN + 100}"],
    ),
    "gone": (identities(*WORKERS[1:]), ["pod t2-worker-0 is gone"]),
    "marked for deletion": (
        identities(pod("worker", 0, "k3", uid="afc6e497", deleted=True), *WORKERS[1:]),
        ["pod t2-worker-0 is marked for deletion, which is final"],
    ),
    "one more": (identities(*WORKERS, pod("worker", 3, "k1", uid="new")), ["pod t2-worker-3 is new"]),
    "the same": (identities(*WORKERS), []),
}


@pytest.mark.parametrize(("after", "sentences"), BROKEN.values(), ids=BROKEN)
def test_reports_a_replaced_pod(after: dict[str, Any], sentences: list[str]) -> None:
    assert list(changes(BEFORE, after)) == sentences


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"uid": "afc6e497", "deleted": True}, "is marked for deletion, which is final"),
        ({"uid": "5264c7a5"}, "was recreated: afc6e497 became 5264c7a5"),
    ],
    ids=["marked for deletion", "recreated"],
)
def test_reports_a_pod_whose_toleration_was_too_short(how: dict[str, Any], sentence: str) -> None:
    after = [pod("worker", 0, "k3", tolerates=10, **how), *WORKERS[1:]]
    events = [
        event("Pod", "t2-worker-0", "NodeNotReady", "Node is not ready", 155),
        event("Pod", "t2-worker-0", "TaintManagerEviction", "Marking for deletion Pod default/t2-worker-0", 165),
    ]
    pods = state_of(snapshot(job(CREATED, RUNNING), [LAUNCHER, *after], events))["pods"]
    after_silence = "10 s after Kubernetes reported it as not ready"
    why = f"its node k3 was silent for longer than the pod tolerates (10 s), {after_silence}"
    assert list(changes(BEFORE, pods)) == [f"pod t2-worker-0 {sentence}; {why}: raise tolerationSeconds"]


def test_ignores_pods_and_events_of_other_jobs() -> None:
    other = pod("worker", 0)
    other["metadata"]["labels"]["training.kubeflow.org/job-name"] = "t2-worker"
    assert pods_of(NAME, [other, *WORKERS]) == pods_of(NAME, WORKERS)
    names = [NAME, "t2-launcher", "t2-launcher-j5h2j", "t2-worker-11", "t2-worker-0-x", "t21", "t2-big-worker-0", "k3"]
    selected = events_of(NAME, [event("Pod", name, "Any", "") for name in names])
    assert [one.name for one in selected] == names[:4]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-11-22T07:12:03Z", BEGAN),
        ("2026-11-22T07:12:03.250000Z", BEGAN + 0.25),
        ("", None),
        (None, None),
        ("x", None),
    ],
)
def test_times_of_the_api_are_seconds(text: object, at: float | None) -> None:
    assert seconds(text) == at


def tolerated(taint: str, seconds: int | None) -> dict[str, Any]:
    """Return a toleration of a silent node; without seconds it has no limit."""
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute", **limit}


@pytest.mark.parametrize(
    ("tolerations", "tolerates"),
    [
        ([], 0.0),
        ([{"operator": "Exists"}], None),
        (
            [
                {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "tolerationSeconds": 10},
                {"operator": "Exists"},
            ],
            10.0,
        ),
        ([{"key": "nvidia.com/gpu", "effect": "NoSchedule"}], 0.0),
        ([{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 900}], 0.0),
        ([tolerated("not-ready", 300), tolerated("unreachable", 900)], 300.0),
        ([tolerated("not-ready", 300), tolerated("unreachable", None)], 300.0),
        ([tolerated("not-ready", None), tolerated("unreachable", None)], None),
        ([tolerated("not-ready", 300), {**tolerated("unreachable", 900), "operator": "Equal", "value": "true"}], 0.0),
        ([tolerated("not-ready", 300), tolerated("unreachable", -5)], 0.0),
        ([{"operator": "Exists", "effect": "NoSchedule"}], 0.0),
    ],
)
def test_computes_how_long_a_pod_tolerates_silence(tolerations: list[dict[str, Any]], tolerates: float | None) -> None:
    given = pod("worker", 0)
    given["spec"]["tolerations"] = tolerations
    assert pods_of(NAME, [given])[0].tolerates == tolerates
