"""Causes that need the nodes, failures of a machine, and objects of an earlier job or another tenant."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.kubernetes.causes import why_waiting
from plugins.module_utils.kubernetes.seen import events_of, owners_of, pods_of
from plugins.module_utils.kubernetes.state import state_of

from .objects import BEGAN, CREATED, LAUNCHER, LAUNCHER_JOB, NAME, UID, WORKERS, event, job, pod, snapshot, stamp

FAILED = ("Failed", "True", "BackoffLimitExceeded/")
NO_FOLDER = 'MountVolume.SetUp failed for volume "work" : hostPath type check failed: /runs/one/work is not a directory'
LOST = "ORTE has lost communication with a remote daemon.\n\n  Remote daemon: [[1,0],1] on node t2-worker-0\n"
EVICTED = event("Pod", "t2-worker-0", "Evicted", "The node was low on resource: memory.")
KILLED = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}


WAITS = pod("worker", 0, phase="Pending", state={"waiting": {"reason": "ContainerCreating"}})


def test_explains_a_missing_folder_with_its_remedy() -> None:
    failed = event("Pod", "t2-worker-0", "FailedMount", NO_FOLDER, after=7)
    # Another pod is not a cause: it waits for a node.
    others = [pod("worker", 1, phase="Pending", state={"waiting": {"reason": "ImagePullBackOff"}})]
    result = state_of(snapshot(job(CREATED), [*others, WAITS], [failed]))
    assert result["why"] == (
        "pod t2-worker-0 does not start, because node k3 has no folder /runs/one/work: Ansible must reach the node "
        "itself, by ssh, to copy the folder there"
    )
    assert result["blocked"] == result["started"] + 7


@pytest.mark.parametrize(
    ("message", "waits"),
    [
        ('MountVolume.SetUp failed for volume "library" : configmap "t2-library" not found', WAITS),
        (NO_FOLDER, pod("worker", 0)),
    ],
    ids=["another volume", "it runs by now"],
)
def test_a_pod_that_may_still_start_is_waiting(message: str, waits: dict[str, Any]) -> None:
    result = state_of(snapshot(job(CREATED), [waits], [event("Pod", "t2-worker-0", "FailedMount", message)]))
    assert (result["state"], "blocked" in result) == ("waiting", False)


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
def test_a_lost_node_is_a_machine_failure(given: dict[str, Any], is_of_machine: bool) -> None:
    job_state = state_of(snapshot(job(CREATED, FAILED), **given))
    assert (job_state["state"], job_state["machine"]) == ("died", is_of_machine)


VALUE_ERROR = "[1,1]<stderr>:ValueError: odd\n" + ("  Process name: [[28342,1],1]\n  Exit code:    1\n")
SIGNAL_9 = "mpirun noticed that process rank 1 with PID 16 on node t2-worker-1 exited on signal 9 (Killed).\n"
ENDED_BY_VALUE_ERROR = "rank 1 on t2-worker-1 ended: ValueError: odd"
ENDED_BY_SIGNAL_9 = "rank 1 on t2-worker-1 (process 16) was ended by signal 9 (Killed)"


def terminated(begin: float, end: float, code: int = 1, reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, "startedAt": stamp(begin), "finishedAt": stamp(end)}}


def launcher(name: str, made: float, state: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    """Return a launcher that has ended: the operator keeps those of earlier attempts."""
    ended = pod("launcher", node="k1", phase="Failed", state=state, status=status, restarts=status.pop("restarts", 0))
    ended["metadata"].update(name=f"t2-launcher-{name}", uid=name, creationTimestamp=stamp(made))
    return ended


def restarted(thing: dict[str, Any], last: dict[str, Any]) -> dict[str, Any]:
    """Return a pod whose program was restarted in place."""
    thing["status"]["containerStatuses"][0].update(restartCount=1, lastState=last)
    return thing


EVICTION = {"reason": "Evicted", "message": "The node was low on resource: memory."}
MARK = "Marking for deletion Pod default/"
SECOND = launcher("bbbbb", 100, terminated(102, 300))
# The first failure with the objects that remain from it; the second attempt began 100 s after the job.
EARLIER: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "launcher evicted": ([launcher("aaaaa", 1, terminated(4, 50, 137), **EVICTION), SECOND], []),
    "launcher evicted without a state of its container": ([launcher("zzzzz", 1, **EVICTION), SECOND], []),
    "launcher evicted and removed": ([SECOND], [event("Pod", "t2-launcher-aaaaa", "Evicted", "low on memory", 50)]),
    "launcher deleted by a taint": (
        [SECOND],
        [
            event("Pod", "t2-launcher-aaaaa", "NodeNotReady", "Node is not ready", 40),
            event("Pod", "t2-launcher-aaaaa", "TaintManagerEviction", f"{MARK}t2-launcher-aaaaa", 50, "Normal"),
        ],
    ),
    "launcher beyond its memory": ([launcher("aaaaa", 1, terminated(4, 50, 137, "OOMKilled")), SECOND], []),
    "launcher beyond its memory, then restarted in place": (
        [restarted(launcher("aaaaa", 1, terminated(52, 300)), terminated(4, 50, 137, "OOMKilled"))],
        [],
    ),
    "worker evicted and made again": ([SECOND], [event("Pod", "t2-worker-0", "Evicted", "low on memory", 50)]),
    "worker deleted by a taint, then another deletion cancelled": (
        [SECOND],
        [
            event("Pod", "t2-worker-0", "TaintManagerEviction", f"{MARK}t2-worker-0", 50, "Normal"),
            event(
                "Pod", "t2-worker-0", "TaintManagerEviction", "Cancelling deletion of Pod t2-worker-0", 150, "Normal"
            ),
        ],
    ),
    "worker beyond its memory, then restarted in place": (
        [SECOND, restarted(pod("worker", 0), terminated(4, 50, 137, "OOMKilled"))],
        [],
    ),
}


@pytest.mark.parametrize(("pods", "events"), EARLIER.values(), ids=EARLIER)
@pytest.mark.parametrize(
    ("log", "why", "is_of_machine"),
    [(VALUE_ERROR, ENDED_BY_VALUE_ERROR, False), (SIGNAL_9, ENDED_BY_SIGNAL_9, True)],
    ids=["exception", "signal 9"],
)
def test_the_last_launcher_determines_the_cause(
    pods: list[dict[str, Any]], events: list[dict[str, Any]], log: str, why: str, is_of_machine: bool
) -> None:
    job_state = state_of(snapshot(job(CREATED, FAILED), pods, events, log, after=310))

    assert (job_state["why"], job_state["machine"], job_state["exit_code"]) == (why, is_of_machine, 1)


LATER: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], str, int | None]] = {
    "launcher evicted": (
        [launcher("bbbbb", 1, terminated(4, 50)), launcher("aaaaa", 100, **EVICTION)],
        [],
        "pod t2-launcher-aaaaa was evicted from k1 (Evicted): The node was low on resource: memory.",
        None,
    ),
    "launcher deleted by a taint": (
        [launcher("bbbbb", 1, terminated(4, 50))],
        [event("Pod", "t2-launcher-aaaaa", "TaintManagerEviction", f"{MARK}t2-launcher-aaaaa", 150, "Normal")],
        (
            "pod t2-launcher-aaaaa was deleted because its node was silent for longer than the pod tolerates: raise "
            "tolerationSeconds"
        ),
        1,
    ),
    "worker evicted": (
        [launcher("aaaaa", 1, terminated(4, 50)), SECOND],
        [event("Pod", "t2-worker-0", "Evicted", "low on memory", 290)],
        "pod t2-worker-0 was evicted: low on memory",
        1,
    ),
}


@pytest.mark.parametrize(("pods", "events", "why", "code"), LATER.values(), ids=LATER)
def test_a_machine_failure_in_the_last_attempt_decides(
    pods: list[dict[str, Any]], events: list[dict[str, Any]], why: str, code: int | None
) -> None:
    job_state = state_of(snapshot(job(CREATED, FAILED), pods, events, VALUE_ERROR, after=310))

    assert (job_state["why"], job_state["machine"], job_state["exit_code"]) == (why, True, code)


# The launcher ended 50 s after the job was created.
ENDED = launcher("aaaaa", 1, terminated(4, 50))
SOFT = {"conditions": [{"type": "DisruptionTarget", "status": "True", "lastTransitionTime": stamp(48)}]}
AFTER_THE_END: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], bool]] = {
    "evicted": ([], [event("Pod", "t2-worker-0", "Evicted", "low on memory", 60)], False),
    "status of an evicted pod": (
        [pod("worker", 0, phase="Failed", state=terminated(2, 60, 137), status=EVICTION)],
        [],
        False,
    ),
    "beyond its memory": ([pod("worker", 0, phase="Failed", state=terminated(2, 60, 137, "OOMKilled"))], [], False),
    "deleted by a taint": ([], [event("Pod", "t2-worker-0", "TaintManagerEviction", f"{MARK}t2-worker-0", 60)], False),
    "evicted before the end": ([], [event("Pod", "t2-worker-0", "Evicted", "low on memory", 49)], True),
    "evicted before the end and given time to end": (
        [pod("worker", 0, phase="Failed", state=terminated(2, 78, 137), status={**EVICTION, **SOFT})],
        [],
        True,
    ),
}


@pytest.mark.parametrize(("pods", "events", "is_cause"), AFTER_THE_END.values(), ids=AFTER_THE_END)
def test_ignores_failures_after_the_end_of_the_job(
    pods: list[dict[str, Any]], events: list[dict[str, Any]], is_cause: bool
) -> None:
    job_state = state_of(snapshot(job(CREATED, FAILED), [ENDED, *pods], events, VALUE_ERROR, after=310))

    assert (job_state["why"] != ENDED_BY_VALUE_ERROR, job_state["machine"]) == (is_cause, is_cause)


QUOTA = 'pods "t2-worker-2" is forbidden: exceeded quota: gpus'
REFUSED = event("MPIJob", "t2", "MPIJobFailed", f"worker pod created failed: {QUOTA}", 9)
REFUSED_LAUNCHER = event("Job", "t2-launcher", "FailedCreate", f"Error creating: {QUOTA}", 9)


def starting(index: int, made: float) -> dict[str, Any]:
    pending = pod("worker", index, phase="Pending", state={"waiting": {"reason": "ContainerCreating"}})
    pending["metadata"]["creationTimestamp"] = stamp(made)
    return pending


@pytest.mark.parametrize(
    ("pods", "events", "is_reported"),
    [
        ([starting(0, 1), starting(1, 1)], [REFUSED], True),
        ([starting(0, 1), starting(1, 1), starting(2, 30)], [REFUSED], False),
        ([starting(0, 1), starting(1, 30)], [REFUSED], False),
        ([starting(0, 1), starting(1, 1), starting(2, 1)], [REFUSED_LAUNCHER], True),
    ],
    ids=["a_worker", "all_exist", "one_was_created_later", "the_launcher"],
)
def test_reports_a_quota_while_it_refuses_pods(
    pods: list[dict[str, Any]], events: list[dict[str, Any]], is_reported: bool
) -> None:
    job_state = state_of(snapshot(job(CREATED), pods, events))

    assert ("exceeded quota: gpus" in job_state["why"]) is is_reported


def test_ignores_a_quota_from_before_the_job_ran() -> None:
    given = job(CREATED, ("Running", "False", "MPIJobFailed"), FAILED)
    given["status"]["conditions"][1]["lastTransitionTime"] = stamp(40)

    assert "quota" not in state_of(snapshot(given, [], [REFUSED]))["why"]


def test_exceeded_memory_in_the_last_attempt_decides() -> None:
    pods = [
        launcher("aaaaa", 1, terminated(4, 50)),
        SECOND,
        restarted(pod("worker", 0), terminated(102, 290, 137, "OOMKilled")),
    ]

    job_state = state_of(snapshot(job(CREATED, FAILED), pods, [], SIGNAL_9, after=310))

    assert job_state["why"] == "pod t2-worker-0 on k3 used more memory than its limit allows (OOMKilled)"


@pytest.mark.parametrize(("code", "is_of_machine"), [(137, True), (1, False), (139, False)])
def test_an_unexplained_signal_9_is_a_machine_failure(code: int, is_of_machine: bool) -> None:
    job_state = state_of(snapshot(job(CREATED, FAILED), [launcher("aaaaa", 1, terminated(4, 50, code))], [], after=60))

    assert job_state["why"] == f"the launcher t2-launcher-aaaaa ended with exit code {code} (Error)"
    assert job_state["machine"] is is_of_machine


PODS_QUOTA = 'pods "t2-worker-2" is forbidden: exceeded quota: team'
UIDS = {UID, "c5b1", *(worker["metadata"]["uid"] for worker in WORKERS)}


def about(uid: str | None, *given: Any, **more: Any) -> dict[str, Any]:
    made = event(*given, **more)
    if uid is not None:
        made["involvedObject"]["uid"] = uid
    return made


def test_the_launchers_job_belongs_to_the_mpijob() -> None:
    assert owners_of(job(), [LAUNCHER_JOB]) == {UID, "c5b1"}
    of_another = {"metadata": {"name": "t2-launcher", "uid": "f00", "ownerReferences": [{"uid": "other"}]}}
    assert owners_of(job(), [of_another]) == {UID}
    assert owners_of(None, [LAUNCHER_JOB]) == frozenset()


def test_a_pod_belongs_only_to_its_owner() -> None:
    strange = pod("launcher", node="k4")
    strange["metadata"].update(name="evil", ownerReferences=[{"kind": "MPIJob", "uid": "other"}])
    without = pod("worker", 3)
    del without["metadata"]["ownerReferences"]
    owners = owners_of(job(), [LAUNCHER_JOB])
    assert pods_of(NAME, [strange, LAUNCHER, without, *WORKERS], owners) == pods_of(NAME, [LAUNCHER, *WORKERS])
    assert pods_of(NAME, [LAUNCHER, *WORKERS], owners_of(None, ())) == []


def test_ignores_events_of_an_earlier_namesake_job() -> None:
    earlier = [
        about("old", "MPIJob", NAME, "ValidationError", "no", after=-90),
        about("old", "Pod", "t2-worker-0", "TaintManagerEviction", "Marking for deletion Pod", after=-80),
        about(None, "Pod", "t2-worker-0", "TaintManagerEviction", "Marking for deletion Pod", after=-80),
        about("other", "MPIJob", NAME, "MPIJobFailed", "by another tenant", after=5),
    ]
    mine = [
        about(UID, "MPIJob", NAME, "MPIJobCreated", "MPIJob is created", after=0),
        about("gone", "Pod", "t2-worker-1", "NodeNotReady", "Node is not ready", after=30),
    ]
    assert events_of(NAME, [*earlier, *mine], UIDS, BEGAN) == events_of(NAME, mine)


def test_ignores_a_quota_once_all_pods_exist() -> None:
    refused = [event("MPIJob", NAME, "MPIJobFailed", f"worker pod created failed: {PODS_QUOTA}", after=1)]
    creating = {"waiting": {"reason": "ContainerCreating"}}
    starting = [pod("worker", index, phase="Pending", state=creating) for index in (0, 1)]
    assert "exceeded quota: team" in why_waiting(snapshot(job(CREATED), starting, refused))
    third, waits = pod("worker", 2, phase="Pending", state=creating), pod("launcher", phase="Pending", state=creating)
    assert "quota" not in why_waiting(snapshot(job(CREATED), [*starting, third, waits], refused))
    made = event("Job", "t2-launcher", "SuccessfulCreate", "Created pod: t2-launcher-j5h2j", after=9, kind_of="Normal")
    assert "quota" not in why_waiting(snapshot(job(CREATED), starting, [*refused, made]))
