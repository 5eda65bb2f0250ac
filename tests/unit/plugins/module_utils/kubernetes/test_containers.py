"""Pods with more containers than the program's: init containers, and sidecars that sort before it."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.kubernetes.seen import pods_of
from plugins.module_utils.kubernetes.state import changes, identity, state_of

from .objects import CREATED, LAUNCHER, NAME, RUNNING, WORKERS, job, pod, snapshot, stamp

PROXY = {"name": "istio-proxy", "restartCount": 0, "state": {"running": {"startedAt": stamp(1)}}}
KILLED = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": stamp(50)}}
PULLING = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "setup:1"'}}
FAILED = ("Failed", "True", "BackoffLimitExceeded")


def with_proxy(thing: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a pod with a sidecar, whose status comes first, because the kubelet sorts by name."""
    status = {**thing["status"], "containerStatuses": [{**PROXY, **changes}, *thing["status"]["containerStatuses"]]}
    return {**thing, "status": status}


def test_a_sidecar_does_not_hide_a_killed_program() -> None:
    killed = with_proxy(pod("worker", 1, "k2", phase="Failed", state=KILLED))
    job_state = state_of(snapshot(job(CREATED, FAILED), [LAUNCHER, killed]))
    assert job_state["why"] == "pod t2-worker-1 on k2 used more memory than its limit allows (OOMKilled)"


def test_a_sidecar_that_was_killed_is_named() -> None:
    killed = with_proxy(pod("worker", 1, "k2"), state=KILLED)
    job_state = state_of(snapshot(job(CREATED, FAILED), [LAUNCHER, killed]))
    assert job_state["why"].startswith("container istio-proxy of pod t2-worker-1 on k2 used more memory")


def test_finds_why_a_restarted_program_was_killed() -> None:
    again = pod("worker", 1, "k2", restarts=1)
    again["status"]["containerStatuses"][0]["lastState"] = KILLED
    job_state = state_of(snapshot(job(CREATED, FAILED), [LAUNCHER, again]))
    assert job_state["why"].startswith("pod t2-worker-1 on k2 used more memory")


def test_a_launcher_that_was_killed_is_named() -> None:
    launcher = pod("launcher", node="k1", phase="Failed", state=KILLED)
    job_state = state_of(snapshot(job(CREATED, FAILED), [launcher, *WORKERS], log="step 1\n"))
    assert job_state["why"] == "pod t2-launcher-j5h2j on k1 used more memory than its limit allows (OOMKilled)"


def test_a_restarted_sidecar_does_not_change_the_pod() -> None:
    before, after = (
        {one.name: identity(one) for one in pods_of(NAME, [with_proxy(WORKERS[0], restartCount=restarts)])}
        for restarts in (0, 3)
    )
    assert list(changes(before, after)) == []
    restarted = pods_of(NAME, [with_proxy(pod("worker", 0, "k3", uid="afc6e497", restarts=1))])
    assert [line for line in changes(before, {one.name: identity(one) for one in restarted}) if "restarts" in line]


def test_an_unavailable_init_image_is_the_cause() -> None:
    waits = pod("worker", 0, phase="Pending", state={"waiting": {"reason": "PodInitializing"}})
    waits["status"]["initContainerStatuses"] = [{"name": "setup", "state": PULLING}]
    job_state = state_of(snapshot(job(CREATED), [waits]))
    assert job_state["why"].startswith("the image of container setup of pod t2-worker-0 cannot be pulled on k3")
    assert "Back-off pulling image" in job_state["why"]


def test_sidecar_ends_no_job_when_it_is_killed() -> None:
    """The kubelet ends an init container that runs beside the program after the program; its exit code says nothing."""
    failed = pod("worker", 0, phase="Failed", state={"terminated": {"exitCode": 1, "reason": "Error"}})
    killed = {"terminated": {"exitCode": 137, "reason": "Error"}}
    failed["spec"]["initContainers"] = [{"name": "istio-proxy", "restartPolicy": "Always"}]
    failed["status"]["initContainerStatuses"] = [{"name": "istio-proxy", "state": killed}]

    assert state_of(snapshot(job(CREATED, RUNNING), [LAUNCHER, failed, *WORKERS[1:]]))["state"] == "running"
    over = state_of(snapshot(job(CREATED, FAILED), [failed]))
    assert "istio-proxy" not in over["why"]


def test_a_failed_init_container_ends_the_job() -> None:
    failed = pod("worker", 1, "k2", phase="Failed", state={"waiting": {"reason": "PodInitializing"}})
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "message": "could not install\nthe requirements\n"}}
    done = {"name": "first", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
    failed["status"]["initContainerStatuses"] = [done, {"name": "setup", "state": ended}]
    job_state = state_of(snapshot(job(CREATED), [WORKERS[0], failed]))
    cause = "container setup ended with exit code 1: could not install the requirements"
    assert (job_state["state"], job_state["why"]) == ("died", f"pod t2-worker-1 does not start on k2: {cause}")
    # Such a pod may be created again, as one of a Deployment is.
    failed["status"]["phase"] = "Pending"
    assert state_of(snapshot(job(CREATED), [failed]))["state"] == "waiting"


def test_the_jobs_template_identifies_the_program_container() -> None:
    made = job(CREATED)
    made["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["name"] = "train"
    worker = with_proxy(pod("worker", 0, restarts=2))
    worker["status"]["containerStatuses"][1]["name"] = "train"
    assert [one.restarts for one in pods_of(NAME, [worker], job=made)] == [2]


@pytest.mark.parametrize("ended", [(10, 50), (50, 10)])
def test_the_last_launcher_determines_the_exit_code(ended: tuple[int, int]) -> None:
    launchers = []
    for name, code, at in zip(("t2-launcher-aaaaa", "t2-launcher-zzzzz"), (1, 2), ended):
        state = {"terminated": {"exitCode": code, "reason": "Error", "startedAt": stamp(1), "finishedAt": stamp(at)}}
        launcher = pod("launcher", node="k1", phase="Failed", state=state)
        launcher["metadata"].update(name=name, uid=name)
        launchers.append(launcher)
    job_state = state_of(snapshot(job(CREATED, FAILED), launchers))
    assert job_state["exit_code"] == (2 if ended[1] > ended[0] else 1)
    assert f"ended with exit code {job_state['exit_code']}" in job_state["why"]
