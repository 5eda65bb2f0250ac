"""The reason why a job does not run or has ended, in one sentence, from its pods, events and conditions.

The MPIJob itself reports only ``Created`` while a pod cannot be scheduled or its image cannot be pulled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Optional

from ..training.ending.job_end import Cause, cause_of
from .containers import STARTING
from .job_kinds import KINDS, LAUNCHER, WORKER
from .job_spec import MPIRUN, TORCHRUN
from .last_attempt import ended_launchers, last_attempt
from .object_fields import conditions, is_true, part, seconds, several
from .seen import Event, JobSnapshot, Pod

# The reasons of the kubelet for an image that it cannot pull.
_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ErrImagePullBackOff")
# A running operator starts to process a job within a second.
TAKEN_UP_SECONDS = 20.0
SILENT = "NodeNotReady"
EVICTION, MARKED = "TaintManagerEviction", "Marking for deletion"
# https://github.com/kubernetes/kubernetes/blob/master/pkg/volume/hostpath/host_path.go (checkTypeInternal)
_NO_FOLDER = re.compile(r"hostPath type check failed: (\S+) is not a directory")
_FORBIDDEN = re.compile(r"is forbidden: (.*)", re.DOTALL)
# Why a job stopped whose object waits for the end of its pods.
DELETED = "deleted, and waits for the end of its pods"
CauseFinder = Callable[[JobSnapshot], Optional[str]]


def why_impossible(snapshot: JobSnapshot) -> str:
    """Return why a job cannot be created, and the remedy; empty if it can be created."""
    if not snapshot.is_known:
        kind = KINDS[snapshot.api]
        return f"this Kubernetes does not support {kind.kind}s of that version: install {kind.operator}, {kind.install}"
    if snapshot.has_namespace:
        return ""
    return f"there is no namespace {snapshot.namespace}: create it, or specify another one"


def why_waiting(snapshot: JobSnapshot) -> str:
    """Return the event that a job waits for before it runs."""
    if snapshot.is_deleted:
        return DELETED
    return _first(snapshot, _WAITING) or "its pods are being started"


def why_died(snapshot: JobSnapshot) -> str:
    """Return why a job has failed, from the launcher that ended last."""
    snapshot = last_attempt(snapshot)
    return _first(snapshot, _DIED) or _by_condition(snapshot) or "Kubernetes reports no reason"


def is_of_machine(snapshot: JobSnapshot) -> bool:
    """Return whether a job failed because of a machine, so that another attempt may succeed."""
    snapshot = last_attempt(snapshot)
    finder = next((finder for finder in _DIED if finder(snapshot)), None)
    if finder is _by_launcher:
        return _logged(snapshot).is_of_machine
    return finder in (_by_toleration, _by_eviction)


def silences(snapshot: JobSnapshot) -> list[str]:
    """Return a sentence for each node of the job that Kubernetes reported as not ready; that alone deletes no pod."""
    nodes = {pod.name: pod.node for pod in snapshot.pods}
    silent = {nodes.get(event.name): event for event in snapshot.events if event.reason == SILENT}
    return [
        f"Kubernetes reported node {node} as not ready, last {_clock(event)}" for node, event in silent.items() if node
    ]


def _clock(event: Event) -> str:
    if event.at is None:
        return "at an unknown time"
    return datetime.fromtimestamp(event.at, timezone.utc).strftime("at %Y-%m-%d %H:%M:%S UTC")


def _first(snapshot: JobSnapshot, finders: Sequence[CauseFinder]) -> str | None:
    return next((cause for cause in (finder(snapshot) for finder in finders) if cause), None)


def _by_operator(snapshot: JobSnapshot) -> str | None:
    kind = KINDS[snapshot.api]
    if conditions(snapshot.job) or snapshot.pods:
        return None
    refused = _event(snapshot, "ValidationError") or _event(snapshot, "TrainJobResourcesCreationFailed")
    if refused:
        return f"the operator refused it: {refused.message}"
    age = snapshot.age
    # Trainer reports no event when it starts to process a job, but the state of the Jobs that it created.
    has_event = any(event.kind in (kind.kind, "JobSet", "Job") for event in snapshot.events)
    is_taken_up = has_event or bool(several(part(snapshot.job, "status"), "jobsStatus"))
    if age is None or age < TAKEN_UP_SECONDS or is_taken_up:
        return None
    return (
        f"no operator has taken it up for {age:.0f} s: check that {kind.operator} runs, and that it "
        f"watches the namespace {snapshot.namespace}"
    )


def _by_suspension(snapshot: JobSnapshot) -> str | None:
    if not is_true(conditions(snapshot.job), "Suspended"):
        return None
    queue = snapshot.queue
    return f"it waits in the queue {queue}" if queue else "it is suspended"


def _by_refusal(snapshot: JobSnapshot) -> str | None:
    """Return why a pod could not be created (quota, admission, limits); None once it could."""
    for event in reversed(snapshot.events):
        if event.reason == "SuccessfulCreate":
            # The operators create the launcher after the workers.
            return None
        if event.is_warning and event.reason in ("MPIJobFailed", "FailedCreate"):
            return None if _is_over(event, snapshot) else f"a pod cannot be created: {_refusal(event.message)}"
    return None


def _is_over(refusal: Event, snapshot: JobSnapshot) -> bool:
    """Return whether the pods that were refused exist, a pod was created later, or the job has run later."""
    is_of_launcher = refusal.name in (f"{snapshot.name}-{LAUNCHER}", f"{snapshot.name}-{LAUNCHER}-0")
    made = snapshot.launchers if is_of_launcher else snapshot.pods_with_role(WORKER)
    ran = seconds(conditions(snapshot.job).get("Running", {}).get("lastTransitionTime"))
    later = [at for at in (ran, *(pod.made for pod in made)) if at is not None and at > (refusal.at or at)]
    return bool(later) or len(made) >= (1 if is_of_launcher else len(set(snapshot.ranks)) or 1)


def _refusal(message: str) -> str:
    forbidden = _FORBIDDEN.search(message)
    return (forbidden[1] if forbidden else message).strip()


def _by_scheduler(snapshot: JobSnapshot) -> str | None:
    for pod in snapshot.pods:
        if pod.phase == "Pending" and pod.unscheduled and not pod.node:
            return f"pod {pod.name} fits on no node: {pod.unscheduled.partition(' preemption:')[0].rstrip('. ')}"
    return None


def _by_image(snapshot: JobSnapshot) -> str | None:
    for pod in snapshot.pods:
        if pod.waiting in _IMAGE:
            pulled = _event(snapshot, "Failed", pod.name)
            message = pod.waiting_message or (pulled.message if pulled else "")
            image = (
                f"the image of container {pod.waits} of pod {pod.name}" if pod.waits else f"the image of pod {pod.name}"
            )
            return f"{image} cannot be pulled on {pod.node} ({pod.waiting}): {message}".rstrip(": ")
    return None


def _by_container(snapshot: JobSnapshot) -> str | None:
    """Return why a container does not start for another reason, such as a missing Secret."""
    for pod in snapshot.pods:
        if pod.waiting not in (*STARTING, *_IMAGE):
            part = f"container {pod.waits} of pod {pod.name}" if pod.waits else f"pod {pod.name}"
            return f"{part} does not start on {pod.node} ({pod.waiting}): {pod.waiting_message}".rstrip(": ")
    return None


def why_setup_failed(snapshot: JobSnapshot) -> str | None:
    """Return why a pod can no longer start: the operator does not replace a worker whose init container failed."""
    for pod in snapshot.pods_with_role(WORKER):
        if pod.phase == "Failed" and pod.setup_error:
            return f"pod {pod.name} does not start on {pod.node}: {pod.setup_error}"
    return None


def _by_folder(snapshot: JobSnapshot) -> str | None:
    return next((sentence for sentence, _at in _missing_folders(snapshot)), None)


def blocked_at(snapshot: JobSnapshot) -> float | None:
    """Return the time of the last report that a node lacks a folder; None without one. Only a user can create it.

    The kubelet repeats the report, at least every two minutes, as long as the folder is missing.
    """
    return next((at for _sentence, at in _missing_folders(snapshot)), None)


def _missing_folders(snapshot: JobSnapshot) -> Iterator[tuple[str, float]]:
    """Yield a sentence for each pod whose node lacks a folder, and the time of the report."""
    for pod in snapshot.pods:
        mount = _event(snapshot, "FailedMount", pod.name)
        missing = _NO_FOLDER.search(mount.message) if mount else None
        if mount and missing and pod.phase == "Pending":
            remedy = "Ansible must reach the node itself, by ssh, to copy the folder there"
            sentence = f"pod {pod.name} does not start, because node {pod.node} has no folder {missing[1]}: {remedy}"
            yield sentence, mount.at or 0.0


def _by_mount(snapshot: JobSnapshot) -> str | None:
    for pod in snapshot.pods:
        failed = _event(snapshot, "FailedMount", pod.name) or _event(snapshot, "FailedCreatePodSandBox", pod.name)
        if failed and pod.phase == "Pending":
            return f"pod {pod.name} does not start on {pod.node}: {failed.message}"
    return None


def _by_start(snapshot: JobSnapshot) -> str | None:
    starting = [pod.name for pod in snapshot.pods if pod.phase == "Pending" and pod.node]
    return f"{', '.join(starting)} {'is' if len(starting) == 1 else 'are'} being started" if starting else None


def why_deleted(snapshot: JobSnapshot, name: str) -> str:
    """Return why a pod was deleted, if its node was silent for longer than the pod tolerates; the deletion is final."""
    marks = [
        event
        for event in snapshot.events
        if event.reason == EVICTION and event.message.startswith(MARKED) and event.name == name
    ]
    if not marks:
        return ""
    pod = next((pod for pod in snapshot.pods if pod.name == name), None)
    where = f"its node{f' {pod.node}' if pod and pod.node else ''}"
    bound = f" ({pod.tolerates:g} s)" if pod and pod.tolerates is not None else ""
    after = _after(_event(snapshot, SILENT, name), marks[0])
    return f"{where} was silent for longer than the pod tolerates{bound}{after}: raise tolerationSeconds"


def _by_toleration(snapshot: JobSnapshot) -> str | None:
    named = ((event.name, why_deleted(snapshot, event.name)) for event in snapshot.events if event.reason == EVICTION)
    return next((f"pod {name} was deleted because {why}" for name, why in named if why), None)


def _after(silent: Event | None, deleted: Event) -> str:
    if silent is None or silent.at is None or deleted.at is None or deleted.at < silent.at:
        return ""
    return f", {deleted.at - silent.at:.0f} s after Kubernetes reported it as not ready"


def _by_eviction(snapshot: JobSnapshot) -> str | None:
    for pod in snapshot.pods:
        if pod.reason in ("Evicted", "Preempting", "Preempted", "NodeLost", "NodeShutdown", "Terminated"):
            return f"pod {pod.name} was evicted from {pod.node} ({pod.reason}): {pod.message}".rstrip(": ")
    for reason in ("Evicted", "Preempted"):
        event = _event(snapshot, reason)
        if event:
            return f"pod {event.name} was evicted: {event.message}"
    evicted = conditions(snapshot.job).get("Failed", {})
    return str(evicted.get("message")) if evicted.get("reason") == "MPIJobEvicted" else None


def _by_kill(snapshot: JobSnapshot) -> str | None:
    """Return the container that the kernel killed, for which mpirun reports only a broken connection."""
    for pod in (*snapshot.pods_with_role(WORKER), *snapshot.launchers):
        if pod.is_out_of_memory:
            part = f"container {pod.killed} of pod {pod.name}" if pod.killed else f"pod {pod.name}"
            return f"{part} on {pod.node} used more memory than its limit allows (OOMKilled)"
    return None


def _by_deadline(snapshot: JobSnapshot) -> str | None:
    failed = conditions(snapshot.job).get("Failed", {})
    return "it ran longer than activeDeadlineSeconds" if "DeadlineExceeded" in str(failed.get("reason")) else None


def _by_launcher(snapshot: JobSnapshot) -> str | None:
    """Return the cause in the launcher's output, or the exit code of its container."""
    if snapshot.log:
        return _logged(snapshot).sentence
    for pod in ended_launchers(snapshot.pods)[-1:]:
        if pod.exit_code:
            return f"the launcher {pod.name} ended with exit code {pod.exit_code} ({pod.ended_reason or 'Error'})"
    return None


def _logged(snapshot: JobSnapshot) -> Cause:
    launchers = ended_launchers(snapshot.pods)
    code = launchers[-1].exit_code if launchers else None
    by = TORCHRUN if any(pod.leads for pod in snapshot.pods) else MPIRUN
    return cause_of(snapshot.logs_beside + snapshot.log, code, snapshot.ranks, by)


def culprit(failed: Sequence[Pod], logs: Mapping[str, str], ranks: Sequence[str]) -> Pod | None:
    """Return the pod with the rank that ended the job, among those whose torchrun failed, the first one first."""
    rank = cause_of("\n".join(logs.values()), None, ranks, TORCHRUN).rank
    host = ranks[rank] if rank is not None and rank < len(ranks) else ""
    return next((pod for pod in failed if pod.host == host), failed[0] if failed else None)


def _by_condition(snapshot: JobSnapshot) -> str | None:
    failed = conditions(snapshot.job).get("Failed", {})
    message, reason = (str(failed.get(key) or "") for key in ("message", "reason"))
    return f"{message.rstrip(': ')} ({reason.rstrip('/')})" if message else reason.rstrip("/") or None


def _event(snapshot: JobSnapshot, reason: str, name: str = "") -> Event | None:
    """Return the latest event with a reason; with a name, the latest one about that object."""
    mine = [event for event in snapshot.events if event.reason == reason and (not name or event.name == name)]
    return mine[-1] if mine else None


_WAITING: tuple[CauseFinder, ...] = (
    _by_operator,
    _by_suspension,
    _by_folder,
    _by_image,
    _by_scheduler,
    _by_container,
    _by_mount,
    _by_refusal,
    _by_start,
)
# The cause of a pod's end comes before its effects on the other pods.
_DIED: tuple[CauseFinder, ...] = (
    _by_toleration,
    _by_eviction,
    _by_kill,
    why_setup_failed,
    _by_deadline,
    _by_launcher,
    _by_image,
    _by_refusal,
)
