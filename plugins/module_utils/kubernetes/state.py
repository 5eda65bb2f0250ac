"""The state of a job on Kubernetes in the form that the mpirun backend returns, and the identity of its pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Mapping, Sequence, TypedDict

from ..core.names import short_name
from ..training.ending.job_state import JobState, LauncherIdentity, PodState
from ..watch.mpi_output import lines_of
from .causes import (
    blocked_at,
    is_of_machine,
    silences,
    why_deleted,
    why_died,
    why_impossible,
    why_setup_failed,
    why_waiting,
)
from .job_kinds import WORKER
from .last_attempt import ended_launchers
from .object_fields import conditions, is_true, part, seconds
from .seen import JobSnapshot, Pod, program_of

ABSENT, WAITING, RUNNING, FINISHED, DIED, STOPPED = "absent", "waiting", "running", "finished", "died", "stopped"
SHOWN_LINES = 10
# The event "Successfully assigned NAMESPACE/POD to NODE" of the scheduler:
# https://github.com/kubernetes/kubernetes/blob/master/pkg/scheduler/schedule_one.go.
SCHEDULED = "Scheduled"
# The fields that identify a pod besides its uid, with their words for a sentence.
IDENTITY: Mapping[Literal["node", "restarts", "started"], str]
IDENTITY = {"node": "its node", "restarts": "its restarts", "started": "the start of its container"}


class WorkerPod(TypedDict):
    """The name of a worker, and the command prefix that runs a command in its pod."""

    name: str
    reach: list[str]


class PodRanks(TypedDict):
    """The worker of a pod, and the ranks in the pod."""

    worker: str
    ranks: list[int]


def state_of(snapshot: JobSnapshot) -> JobState:
    """Return the job in the form of training_info: its state, its launcher, the reason why it waits or died."""
    if snapshot.job is None:
        why = why_impossible(snapshot)
        return {"state": ABSENT, "why": why} if why else {"state": ABSENT}
    word = _word(snapshot)
    job: JobState = {
        "state": word,
        "launcher": launcher_of(snapshot),
        "job": str(part(snapshot.job, "metadata").get("uid") or "") or None,
        "mpirun_command": snapshot.command,
        "nodes_of_ranks": snapshot.ranks,
        "started": _when(snapshot, "startTime") or snapshot.made,
        "pods": {
            pod.name: _described(snapshot, pod) for pod in (*snapshot.launchers, *snapshot.pods_with_role(WORKER))
        },
        "silences": silences(snapshot),
    }
    if word in (WAITING, STOPPED):
        job["why"] = why_waiting(snapshot)
    blocked = blocked_at(snapshot) if word == WAITING else None
    if blocked is not None:
        job["blocked"] = blocked
    if word in (FINISHED, DIED, STOPPED):
        job.update({"ended": _ended(snapshot), "exit_code": _exit_code(snapshot)})
    if word == DIED:
        last = [str(line) for line in lines_of(snapshot.log)[-SHOWN_LINES:]] if snapshot.log else []
        job.update({"why": why_died(snapshot), "last_lines": last, "machine": is_of_machine(snapshot)})
    return job


def launcher_of(snapshot: JobSnapshot) -> LauncherIdentity | None:
    """Return the pod of the launcher, its start and its boot id: these are constant while the launcher runs."""
    running = [pod for pod in snapshot.launchers if pod.started is not None]
    if not running:
        return None
    pod = max(running, key=lambda launcher: launcher.started or 0.0)
    start = f"{pod.started:.0f}, {pod.restarts} restarts"
    return {"host": pod.name, "pid": pod.uid, "start": start, "boot_id": snapshot.boot_ids.get(pod.node or "")}


def identity(pod: Pod) -> PodState:
    """Return the fields that identify a pod, and its role and index."""
    return {
        "uid": pod.uid,
        "node": pod.node,
        "restarts": pod.restarts,
        "started": pod.started,
        "role": pod.role,
        "index": pod.index,
        "is_deleted": pod.is_deleted,
        "host": pod.host,
    }


def _described(snapshot: JobSnapshot, pod: Pod) -> PodState:
    state, why = identity(pod), why_deleted(snapshot, pod.name)
    if why:
        state["why"] = why
    return state


def workers_of(snapshot: JobSnapshot, kubectl: Sequence[str], names: Mapping[str, str]) -> list[WorkerPod]:
    """Return the pods of the workers: the node (or its name in ``names``), and the words to run a command."""
    inside = ["-c", program_of(snapshot.job, WORKER) or WORKER, "--", "sh", "-c"]
    return [
        {"name": names.get(pod.node, pod.node), "reach": [*kubectl, "exec", pod.name, *inside]}
        for pod in snapshot.pods_with_role(WORKER)
        if pod.node
    ]


def first_node(snapshot: JobSnapshot, names: Mapping[str, str]) -> dict[str, str]:
    """Return the node of the first worker as ``rank_0_on``, or nothing if it is unknown.

    The operator deletes the pods of a job that has ended, but Kubernetes keeps their events for a while.
    """
    host = snapshot.host_of(0)
    events = [event for event in snapshot.events if event.reason == SCHEDULED and _is_pod(event.name, host)]
    nodes = [
        *(event.message.rpartition(" to ")[2] for event in events),
        *(pod.node for pod in snapshot.pods if _is_pod(pod.name, host) and pod.node),
    ]
    return {"rank_0_on": names.get(nodes[-1], nodes[-1])} if nodes else {}


def _is_pod(name: str, host: str) -> bool:
    """Return whether a pod has a host name; a Job appends to it for the name of the pod."""
    return name == host or name.startswith(f"{host}-")


def ranks_of_pods(
    hosts: Mapping[str, Sequence[int]], pods: Mapping[str, PodState], names: Mapping[str, str]
) -> dict[str, PodRanks]:
    """Return the ``worker`` and the ``ranks`` of each pod; ``hosts`` are the ranks by the host name that they report.

    That is the name of its pod, or of its node if the pod uses the network of the node. A rank with another host name
    is not in a pod that Kubernetes reports. ``names`` are those of the workers by node.
    """
    by_host: dict[str, list[int]] = {}
    for host, its_ranks in hosts.items():
        by_host.setdefault(short_name(host), []).extend(its_ranks)
    by_pod: dict[str, PodRanks] = {}
    for name, pod in pods.items():
        node = str(pod.get("node") or "")
        hosts_of_pod = map(short_name, (str(pod.get("host") or name), node)) if pod.get("role") == WORKER else ()
        ranks = next((by_host[host] for host in hosts_of_pod if by_host.get(host)), None)
        if ranks:
            by_pod[name] = {"worker": str(names.get(node, node)), "ranks": sorted(ranks)}
    return by_pod


def changes(before: Mapping[str, PodState], after: Mapping[str, PodState], has_finished: bool = False) -> Iterator[str]:
    """Yield a sentence for each pod that is no longer the same; any such change breaks a job.

    The operator deletes the pods of a job that has finished.
    """
    for name, old in before.items():
        new = after.get(name)
        why = f"; {new['why']}" if new and new.get("why") else ""
        if new is None:
            if not has_finished:
                yield f"pod {name} is gone"
        elif old["uid"] != new["uid"]:
            yield f"pod {name} was recreated: {_short(old['uid'])} became {_short(new['uid'])}{why}"
        else:
            different = [
                f"{words} {old.get(key)} became {new.get(key)}"
                for key, words in IDENTITY.items()
                if None not in (old.get(key), new.get(key)) and old[key] != new[key]
            ]
            if different:
                yield f"pod {name}: {', '.join(different)}"
            elif new.get("is_deleted") and not old.get("is_deleted") and (why or not has_finished):
                yield f"pod {name} is marked for deletion, which is final{why}"
    yield from (f"pod {name} is new" for name in after if name not in before)


def _short(uid: object) -> str:
    return str(uid)[:8]


def _word(snapshot: JobSnapshot) -> str:
    by_type = conditions(snapshot.job)
    if snapshot.has_succeeded:
        return FINISHED
    if is_true(by_type, "Failed") or why_setup_failed(snapshot):
        return DIED
    if snapshot.is_deleted:
        return STOPPED
    if is_true(by_type, "Suspended"):
        # A job in a queue has not started; a job that a user suspended has lost its pods.
        return WAITING if snapshot.queue else STOPPED
    # The operator sets Running late, and does not remove it when it retries the launcher.
    is_launched = any(pod.phase == "Running" and pod.started is not None for pod in snapshot.launchers)
    return RUNNING if is_launched or is_true(by_type, "Running") else WAITING


def _when(snapshot: JobSnapshot, key: str) -> float | None:
    return seconds(part(snapshot.job, "status").get(key))


def _ended(snapshot: JobSnapshot) -> float | None:
    """Return the time of the end; a TrainJob has only that of the condition."""
    by_type = conditions(snapshot.job)
    last = next((by_type[kind] for kind in ("Complete", "Failed") if is_true(by_type, kind)), {})
    return _when(snapshot, "completionTime") or seconds(last.get("lastTransitionTime"))


def _exit_code(snapshot: JobSnapshot) -> int | None:
    launchers = ended_launchers(snapshot.pods)
    if launchers:
        return launchers[-1].exit_code
    return 0 if snapshot.has_succeeded else None
