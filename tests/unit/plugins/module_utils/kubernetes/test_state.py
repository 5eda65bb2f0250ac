"""The state of a job, its causes and its identity, from answers of the API."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from plugins.module_utils.kubernetes.state import state_of

from .objects import BEGAN, CREATED, LAUNCHER, NAME, RUNNING, WORKERS, event, job, pod, snapshot, stamp, unscheduled

QUEUE = {"queue": "team-a"}
# The message of the scheduler, with its sentence about preemption.
NO_GPU = (
    "0/4 nodes are available: 4 Insufficient nvidia.com/gpu. preemption: 0/4 nodes are available: "
    "4 Preemption is not helpful for scheduling."
)
QUOTA = (
    'pods "t2-worker-0" is forbidden: exceeded quota: team, requested: requests.nvidia.com/gpu=1, used: 4, limited: 4'
)
NOT_FOUND = (
    'rpc error: code = NotFound desc = failed to pull and unpack image "example.com/train:2": failed to resolve '
    'reference "example.com/train:2": example.com/train:2: not found'
)
FAILED = ("Failed", "True", "BackoffLimitExceeded/")
LOG = (
    "--------------------------------------------------------------------------\n"
    "ORTE has lost communication with a remote daemon.\n\n"
    "  HNP daemon   : [[1,0],0] on node t2-launcher\n  Remote daemon: [[1,0],1] on node t2-worker-0\n\n"
    "This is usually due to either a failure of the TCP network connection\nto the node, or possibly an internal\n"
)


def waiting(reason: str, message: str = "", index: int = 0) -> dict[str, Any]:
    return pod("worker", index, phase="Pending", state={"waiting": {"reason": reason, "message": message}})


def state(
    *conditions: tuple[str, str, str], pods: Any = (), events: Any = (), log: str = "", **changes: Any
) -> dict[str, Any]:
    after = changes.pop("after", 60)
    message = changes.pop("message", "")
    return state_of(snapshot(job(*conditions, message=message, **changes), pods, events, log, after))


def test_a_missing_job_or_kind_is_absent() -> None:
    assert state_of(snapshot(None)) == {"state": "absent"}
    unknown = replace(snapshot(None), is_known=False)
    assert "does not support MPIJobs of that version: install the MPI Operator" in state_of(unknown)["why"]
    nowhere = replace(snapshot(None), has_namespace=False)
    assert state_of(nowhere) == {
        "state": "absent",
        "why": "there is no namespace default: create it, or specify another one",
    }


def test_deleted_job_is_stopped_while_its_pods_end() -> None:
    """A pod on a node that does not answer ends late, and the object of the job stays until then."""
    deleted = job(CREATED, RUNNING)
    deleted["metadata"]["deletionTimestamp"] = stamp(165)
    found = state_of(snapshot(deleted, [LAUNCHER, *WORKERS]))
    assert (found["state"], found["why"]) == ("stopped", "deleted, and waits for the end of its pods")
    deleted["status"]["conditions"].append({"type": "Succeeded", "status": "True"})
    assert state_of(snapshot(deleted))["state"] == "finished"


def test_a_running_job_has_launcher_ranks_and_pods() -> None:
    job_state = state(CREATED, RUNNING, pods=[LAUNCHER, *WORKERS])
    assert job_state["state"] == "running" and "why" not in job_state
    assert job_state["launcher"] == {
        "host": "t2-launcher-j5h2j",
        "pid": "d1dd3d2a",
        "start": f"{BEGAN + 4:.0f}, 0 restarts",
        "boot_id": "boot-1",
    }
    assert job_state["nodes_of_ranks"] == ["t2-worker-0", "t2-worker-1", "t2-worker-2"]
    assert list(job_state["pods"]) == ["t2-launcher-j5h2j", "t2-worker-0", "t2-worker-1", "t2-worker-2"]
    assert job_state["pods"]["t2-worker-0"]["node"] == "k3" and job_state["started"] == BEGAN


def test_a_job_without_start_time_starts_at_creation() -> None:
    job_state = job(CREATED)
    del job_state["status"]["startTime"]
    job_state["metadata"]["creationTimestamp"] = stamp(7)
    assert state_of(snapshot(job_state))["started"] == BEGAN + 7


def test_two_ranks_of_a_worker_are_two_entries() -> None:
    assert state(CREATED, slots=2)["nodes_of_ranks"][:3] == ["t2-worker-0", "t2-worker-0", "t2-worker-1"]


def test_a_running_launcher_means_a_running_job() -> None:
    assert state(CREATED, pods=[LAUNCHER, *WORKERS])["state"] == "running"
    assert state(CREATED, pods=WORKERS)["state"] == "waiting"


def test_a_job_that_succeeded_has_finished() -> None:
    job_state = state(CREATED, ("Running", "False", "MPIJobRunning"), ("Succeeded", "True", "MPIJobSucceeded"))
    assert job_state["state"] == "finished" and job_state["exit_code"] == 0 and "why" not in job_state


WAITS = {
    "operator missing": (
        {"after": 45},
        "no operator has taken it up for 45 s: check that the MPI Operator runs, and that it watches the",
    ),
    "just made": ({"after": 5}, "its pods are being started"),
    "refused": (
        {"events": [event("MPIJob", NAME, "ValidationError", "Found validation errors: spec.x: Invalid")]},
        "the operator refused it: Found validation errors: spec.x: Invalid",
    ),
    "no gpu": (
        {"conditions": [CREATED], "pods": [WORKERS[0], unscheduled(1, NO_GPU)]},
        "pod t2-worker-1 fits on no node: 0/4 nodes are available: 4 Insufficient nvidia.com/gpu",
    ),
    "image": (
        {"conditions": [CREATED], "pods": [waiting("ErrImagePull", NOT_FOUND)]},
        f"the image of pod t2-worker-0 cannot be pulled on k3 (ErrImagePull): {NOT_FOUND}",
    ),
    "image, backing off": (
        {
            "conditions": [CREATED],
            "pods": [waiting("ImagePullBackOff")],
            "events": [event("Pod", "t2-worker-0", "Failed", NOT_FOUND)],
        },
        f"the image of pod t2-worker-0 cannot be pulled on k3 (ImagePullBackOff): {NOT_FOUND}",
    ),
    "secret missing": (
        {"conditions": [CREATED], "pods": [waiting("CreateContainerConfigError", 'secret "t2-environment" not found')]},
        'pod t2-worker-0 does not start on k3 (CreateContainerConfigError): secret "t2-environment" not found',
    ),
    "volume missing": (
        {
            "conditions": [CREATED],
            "pods": [waiting("ContainerCreating")],
            "events": [event("Pod", "t2-worker-0", "FailedMount", 'configmap "t2-library" not found')],
        },
        'pod t2-worker-0 does not start on k3: configmap "t2-library" not found',
    ),
    "quota": (
        {
            "conditions": [CREATED],
            "events": [event("MPIJob", NAME, "MPIJobFailed", f"worker pod created failed: {QUOTA}")],
        },
        "a pod cannot be created: exceeded quota: team, requested: requests.nvidia.com/gpu=1, used: 4, limited: 4",
    ),
    "an operator that cannot make a pod at all": (
        {"after": 45, "events": [event("MPIJob", NAME, "MPIJobFailed", f"worker pod created failed: {QUOTA}")]},
        "a pod cannot be created: exceeded quota: team",
    ),
    "starting": ({"conditions": [CREATED], "pods": [waiting("ContainerCreating")]}, "t2-worker-0 is being started"),
    "two starting": (
        {"conditions": [CREATED], "pods": [waiting("ContainerCreating", index=index) for index in (0, 1)]},
        "t2-worker-0, t2-worker-1 are being started",
    ),
    "in a queue": (
        dict(conditions=[CREATED, ("Suspended", "True", "MPIJobSuspended")], **QUEUE),
        "it waits in the queue team-a",
    ),
}


@pytest.mark.parametrize(("inputs", "cause"), WAITS.values(), ids=WAITS)
def test_a_waiting_job_names_the_reason(inputs: dict[str, Any], cause: str) -> None:
    given = {**inputs}
    job_state = state(*given.pop("conditions", ()), **given)
    assert job_state["state"] == "waiting" and job_state["why"].startswith(cause)


def test_a_suspended_job_was_stopped() -> None:
    job_state = state(CREATED, ("Running", "False", "MPIJobSuspended"), ("Suspended", "True", "MPIJobSuspended"))
    assert (job_state["state"], job_state["why"]) == ("stopped", "it is suspended")


def test_judges_a_resumed_job_by_its_pods() -> None:
    assert state(CREATED, ("Suspended", "False", "MPIJobResumed"), pods=[LAUNCHER, *WORKERS])["state"] == "running"


def test_a_stun_beyond_its_toleration_is_the_cause() -> None:
    """The recorded run: 90 s, tolerationSeconds 10; not ready at 07:14:38, marked at 07:14:48, failed at 07:15:47."""
    events = [
        event("Node", "k3", "NodeNotReady", "Node k3 status is now: NodeNotReady", 155, "Normal"),
        event("Pod", "t2-worker-0", "NodeNotReady", "Node is not ready", 155),
        event(
            "Pod", "t2-worker-0", "TaintManagerEviction", "Marking for deletion Pod default/t2-worker-0", 165, "Normal"
        ),
        event("Job", "t2-launcher", "BackoffLimitExceeded", "Job has reached the specified backoff limit", 224),
        event("MPIJob", NAME, "BackoffLimitExceeded/", "Job has reached the specified backoff limit: ", 224),
    ]
    launcher = pod("launcher", node="k1", phase="Failed", state={"terminated": {"exitCode": 1, "reason": "Error"}})
    again = pod("worker", 0, "k3", uid="5264c7a5", tolerates=10)
    job_state = state(
        CREATED,
        ("Running", "False", "MPIJobRunning"),
        FAILED,
        pods=[launcher, again, *WORKERS[1:]],
        events=events,
        log=LOG,
    )
    assert job_state["state"] == "died" and job_state["exit_code"] == 1
    assert job_state["why"] == (
        "pod t2-worker-0 was deleted because its node k3 was silent for longer than the pod tolerates (10 s), 10 s "
        "after Kubernetes reported it as not ready: raise tolerationSeconds"
    )
    assert job_state["last_lines"][-1].startswith("to the node")


def test_the_command_of_its_launcher_is_returned() -> None:
    desired = {"mpirun_arguments": ["--mca", "pml", "ob1"]}
    command = state(CREATED, **desired)["mpirun_command"]
    assert command[0] == "mpirun" and " ".join(command).endswith("--mca pml ob1 c")
    odd = job(CREATED)
    odd["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"] = [{"command": 7}]
    assert state_of(snapshot(odd))["mpirun_command"] == []


def test_reports_pod_nodes_that_were_not_ready() -> None:
    events = [
        event("Pod", "t2-worker-0", "NodeNotReady", "Node is not ready", 155),
        event("Pod", "t2-worker-0", "NodeNotReady", "Node is not ready", 355),
        event("Pod", "t2-worker-9", "NodeNotReady", "Node is not ready", 155),
    ]
    job_state = state(CREATED, RUNNING, pods=[LAUNCHER, *WORKERS], events=events)
    at = datetime.fromtimestamp(BEGAN + 355, UTC).strftime("%Y-%m-%d %H:%M:%S")
    assert job_state["silences"] == [f"Kubernetes reported node k3 as not ready, last at {at} UTC"]
    assert state(CREATED, RUNNING, pods=[LAUNCHER, *WORKERS])["silences"] == []


def test_a_cancelled_deletion_is_not_a_cause() -> None:
    events = [
        event(
            "Pod", "t2-worker-1", "TaintManagerEviction", "Cancelling deletion of Pod default/t2-worker-1", 90, "Normal"
        )
    ]
    assert "tolerates" not in state(CREATED, FAILED, events=events, log=LOG)["why"]


def killed(how: str, **status: Any) -> dict[str, Any]:
    ended = {"terminated": {"exitCode": 137, "reason": how, "startedAt": stamp(2)}}
    return pod("worker", 0, phase="Failed", state=ended, status=status)


DEATHS = {
    "the launcher's log": ({"log": LOG}, "the launcher lost the node t2-worker-0"),
    "evicted": (
        {"pods": [killed("Error", reason="Evicted", message="The node was low on resource: memory.")], "log": LOG},
        "pod t2-worker-0 was evicted from k3 (Evicted): The node was low on resource: memory.",
    ),
    "evicted, and the pod is gone": (
        {"events": [event("Pod", "t2-worker-0", "Evicted", "The node was low on resource: memory.")], "log": LOG},
        "pod t2-worker-0 was evicted: The node was low on resource: memory.",
    ),
    "memory": (
        {"pods": [killed("OOMKilled")], "log": LOG},
        "pod t2-worker-0 on k3 used more memory than its limit allows",
    ),
    "no log": (
        {"pods": [pod("launcher", phase="Failed", state={"terminated": {"exitCode": 2, "reason": "Error"}})]},
        "the launcher t2-launcher-j5h2j ended with exit code 2 (Error)",
    ),
    "nothing but the condition": (
        {"message": "Job has reached the specified backoff limit: "},
        "Job has reached the specified backoff limit (BackoffLimitExceeded)",
    ),
    "nothing at all": ({}, "BackoffLimitExceeded"),
}


@pytest.mark.parametrize(("inputs", "cause"), DEATHS.values(), ids=DEATHS)
def test_a_dead_job_names_the_cause(inputs: dict[str, Any], cause: str) -> None:
    job_state = state(CREATED, FAILED, **inputs)
    assert job_state["state"] == "died" and job_state["why"].startswith(cause)


def test_an_eviction_is_explained_by_the_operators_message() -> None:
    job_state = state(CREATED, ("Failed", "True", "MPIJobEvicted"), message="1/3 workers are evicted")
    assert job_state["why"] == "1/3 workers are evicted"


def test_a_deadline_of_the_job_is_the_cause() -> None:
    assert state(CREATED, ("Failed", "True", "DeadlineExceeded"))["why"] == "it ran longer than activeDeadlineSeconds"


def test_incomplete_answers_raise_no_error() -> None:
    labels = {"training.kubeflow.org/job-name": NAME, "training.kubeflow.org/job-role": "worker"}
    bare = {"metadata": {"name": "t2-worker-0", "labels": labels}}
    odd = {"spec": {}, "status": {"conditions": [None], "containerStatuses": [None]}, **bare}
    job_state = state_of(snapshot(job(CREATED), [bare, odd], [{}]))
    assert job_state["state"] == "waiting" and job_state["pods"]["t2-worker-0"]["uid"] == ""
