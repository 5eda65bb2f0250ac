"""Objects of the API of Kubernetes 1.35, reduced to the fields that the collection reads.

Names, messages, times and order are those of a recorded run: an MPIJob with three workers, operator 0.8.2, on four
nodes, of which one was frozen. The recording has one line for each change instead of objects; the form of the objects
is that of the API reference, https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.35/.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from plugins.module_utils.kubernetes import manifests
from plugins.module_utils.kubernetes.job_spec import job_of
from plugins.module_utils.kubernetes.seen import JobSnapshot, boot_ids, events_of, pods_of

NAME, UID = "t2", "7a0d"
# The operator makes a Job for the launcher, and that one owns the launcher's pod.
LAUNCHER_JOB = {"metadata": {"name": "t2-launcher", "uid": "c5b1", "ownerReferences": [{"kind": "MPIJob", "uid": UID}]}}
BEGAN = 1795331523.0  # 07:12:03, when the recorded job was created


def stamp(after: float) -> str:
    """Return the time a number of seconds after BEGAN, in the format of the API."""
    return datetime.fromtimestamp(BEGAN + after, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def job(*conditions: tuple[str, str, str], message: str = "", **changes: Any) -> dict[str, Any]:
    """Return the MPIJob with conditions, given as (type, status, reason)."""
    made = manifests.mpijob(job_of({"name": NAME, "image": "i", "command": ["c"], "workers": 3, **changes}))
    made["metadata"].update(uid=UID, creationTimestamp=stamp(0))
    listed = [
        {"type": kind, "status": status, "reason": reason, "message": message} for kind, status, reason in conditions
    ]
    made["status"] = {"conditions": listed, "startTime": stamp(0)} if listed else {}
    return made


CREATED = ("Created", "True", "MPIJobCreated")
RUNNING = ("Running", "True", "MPIJobRunning")


def pod(role: str, index: int = 0, node: str | None = "k3", phase: str = "Running", **more: Any) -> dict[str, Any]:
    """Return a pod; more: ``state`` (container), ``uid``, ``restarts``, ``deleted``, ``status``, ``tolerates``."""
    name = f"{NAME}-worker-{index}" if role == "worker" else f"{NAME}-launcher-j5h2j"
    labels = {"training.kubeflow.org/job-name": NAME, "training.kubeflow.org/job-role": role}
    if role == "worker":
        labels["training.kubeflow.org/replica-index"] = str(index)
    owner = ("MPIJob", UID) if role == "worker" else ("Job", "c5b1")
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "uid": more.get("uid", f"{role}{index}"),
        "labels": labels,
        "ownerReferences": [{"kind": owner[0], "uid": owner[1], "controller": True}],
    }
    if more.get("deleted"):
        metadata["deletionTimestamp"] = stamp(165)
    state = more.get("state", {"running": {"startedAt": stamp(2)}} if phase == "Running" else None)
    status: dict[str, Any] = {"phase": phase, **more.get("status", {})}
    if state is not None:
        status["containerStatuses"] = [{"name": role, "restartCount": more.get("restarts", 0), "state": state}]
    seconds = more.get("tolerates", 300)
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    tolerations = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds} for key in keys
    ]
    spec = {"tolerations": tolerations, **({"nodeName": node} if node else {})}
    return {"metadata": metadata, "spec": spec, "status": status}


def unscheduled(index: int, message: str) -> dict[str, Any]:
    """Return a worker for which the scheduler finds no node."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return pod("worker", index, node=None, phase="Pending", status={"conditions": [condition]})


def event(
    kind: str, name: str, reason: str, message: str, after: float = 0, kind_of: str = "Warning"
) -> dict[str, Any]:
    """Return an event."""
    about = {"kind": kind, "name": name, "namespace": "default"}
    return {
        "involvedObject": about,
        "reason": reason,
        "message": message,
        "type": kind_of,
        "lastTimestamp": stamp(after),
    }


NODES = [
    {"metadata": {"name": f"k{number}"}, "status": {"nodeInfo": {"bootID": f"boot-{number}"}}} for number in range(1, 5)
]


def snapshot(
    found: dict[str, Any] | None, pods: Any = (), events: Any = (), log: str = "", after: float = 60
) -> JobSnapshot:
    """Return the snapshot of the job with these objects."""
    return JobSnapshot(
        NAME,
        "default",
        found,
        pods_of(NAME, pods),
        events_of(NAME, events),
        boot_ids=boot_ids(NODES),
        log=log,
        now=BEGAN + after,
    )


LAUNCHER = pod("launcher", node="k1", state={"running": {"startedAt": stamp(4)}}, uid="d1dd3d2a")
WORKERS = [
    pod("worker", 0, "k3", uid="afc6e497"),
    pod("worker", 1, "k2", uid="3da9bbdb"),
    pod("worker", 2, "k4", uid="215d4486"),
]
