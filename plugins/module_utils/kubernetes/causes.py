# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Why a job does not run, or has ended, in one sentence, from what pods, events and conditions say.

The MPIJob itself says only ``Created`` while a pod cannot be scheduled or its image cannot be pulled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Optional

from ..training.job_end import cause_of
from .containers import STARTING
from .parts import conditions, is_true
from .seen import LAUNCHER, WORKER, Event, Pod, Seen

# The words of the kubelet for an image that it does not get.
_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ErrImagePullBackOff")
# An operator takes a job up within a second; one that is missing never does.
TAKEN_UP_SECONDS = 20.0
SILENT = "NodeNotReady"
EVICTION, MARKED = "TaintManagerEviction", "Marking for deletion"
_FORBIDDEN = re.compile(r"is forbidden: (.*)", re.DOTALL)
Look = Callable[[Seen], Optional[str]]


def why_impossible(seen: Seen) -> str:
    """Why a job cannot even be given to Kubernetes, and what to do; empty where it can."""
    if not seen.is_known:
        return (
            "this Kubernetes does not know MPIJobs of that version: install the MPI Operator, by the role "
            "dml.vsphere.mpi_operator or by hand"
        )
    return "" if seen.has_namespace else f"there is no namespace {seen.namespace}: make it, or name another one"


def why_waiting(seen: Seen) -> str:
    """What a job that does not run yet waits for."""
    return _first(seen, _WAITING) or "its pods are started"


def why_died(seen: Seen) -> str:
    """Why a job has failed."""
    return _first(seen, _DIED) or _by_condition(seen) or "Kubernetes does not say why"


def silences(seen: Seen) -> list[str]:
    """Which nodes of its pods were called not ready while it ran; that alone costs no pod."""
    nodes = {pod.name: pod.node for pod in seen.pods}
    silent = {nodes.get(event.name): event for event in seen.events if event.reason == SILENT}
    return [f"Kubernetes called node {node} not ready, last {_clock(event)}" for node, event in silent.items() if node]


def _clock(event: Event) -> str:
    if event.at is None:
        return "at an unknown time"
    return datetime.fromtimestamp(event.at, timezone.utc).strftime("at %Y-%m-%d %H:%M:%S UTC")


def _first(seen: Seen, looks: Sequence[Look]) -> str | None:
    return next((said for said in (look(seen) for look in looks) if said), None)


def _by_operator(seen: Seen) -> str | None:
    if conditions(seen.job):
        return None
    refused = _event(seen, "ValidationError")
    if refused:
        return f"the operator refused it: {refused.message}"
    made = seen.age
    has_spoken = any(event.kind == "MPIJob" for event in seen.events)
    if made is None or made < TAKEN_UP_SECONDS or has_spoken:
        return None
    return (
        f"no operator has taken it up for {made:.0f} s: look whether the MPI Operator runs, and whether it watches the "
        f"namespace {seen.namespace}"
    )


def _by_suspension(seen: Seen) -> str | None:
    if not is_true(conditions(seen.job), "Suspended"):
        return None
    queue = seen.queue
    return f"it waits in the queue {queue}" if queue else "it is suspended"


def _by_refusal(seen: Seen) -> str | None:
    """A pod that could not even be made: quota, admission, limits. Once all pods are there, that is history."""
    if seen.of(LAUNCHER) and len(seen.of(WORKER)) >= len(set(seen.ranks)):
        return None
    for event in reversed(seen.events):
        if event.reason == "SuccessfulCreate":
            return None
        if event.is_warning and event.reason in ("MPIJobFailed", "FailedCreate"):
            return f"a pod cannot be made: {_refusal(event.message)}"
    return None


def _refusal(message: str) -> str:
    found = _FORBIDDEN.search(message)
    return (found[1] if found else message).strip()


def _by_scheduler(seen: Seen) -> str | None:
    for pod in seen.pods:
        if pod.phase == "Pending" and pod.unscheduled and not pod.node:
            return f"pod {pod.name} fits on no node: {pod.unscheduled.partition(' preemption:')[0].rstrip('. ')}"
    return None


def _by_image(seen: Seen) -> str | None:
    for pod in seen.pods:
        if pod.waiting in _IMAGE:
            pulled = _event(seen, "Failed", pod.name)
            said = pod.waiting_message or (pulled.message if pulled else "")
            image = (
                f"the image of container {pod.waits} of pod {pod.name}" if pod.waits else f"the image of pod {pod.name}"
            )
            return f"{image} cannot be pulled on {pod.node} ({pod.waiting}): {said}".rstrip(": ")
    return None


def _by_container(seen: Seen) -> str | None:
    """A container that is not started for another reason, such as a Secret that is not there."""
    for pod in seen.pods:
        if pod.waiting not in (*STARTING, *_IMAGE):
            part = f"container {pod.waits} of pod {pod.name}" if pod.waits else f"pod {pod.name}"
            return f"{part} does not start on {pod.node} ({pod.waiting}): {pod.waiting_message}".rstrip(": ")
    return None


def _by_mount(seen: Seen) -> str | None:
    for pod in seen.pods:
        failed = _event(seen, "FailedMount", pod.name) or _event(seen, "FailedCreatePodSandBox", pod.name)
        if failed and pod.phase == "Pending":
            return f"pod {pod.name} does not start on {pod.node}: {failed.message}"
    return None


def _by_start(seen: Seen) -> str | None:
    starting = [pod.name for pod in seen.pods if pod.phase == "Pending" and pod.node]
    return f"{', '.join(starting)} {'is' if len(starting) == 1 else 'are'} being started" if starting else None


def why_deleted(seen: Seen, name: str) -> str:
    """Why a pod was deleted, where its node was silent for longer than it tolerates; that is not taken back."""
    marks = [
        one for one in seen.events if one.reason == EVICTION and one.message.startswith(MARKED) and one.name == name
    ]
    if not marks:
        return ""
    pod = next((pod for pod in seen.pods if pod.name == name), None)
    where = f"its node{f' {pod.node}' if pod and pod.node else ''}"
    bound = f" ({pod.tolerates:g} s)" if pod and pod.tolerates is not None else ""
    after = _after(_event(seen, SILENT, name), marks[0])
    return f"{where} was silent for longer than the pod tolerates{bound}{after}: raise tolerationSeconds"


def _by_toleration(seen: Seen) -> str | None:
    named = ((event.name, why_deleted(seen, event.name)) for event in seen.events if event.reason == EVICTION)
    return next((f"pod {name} was deleted because {why}" for name, why in named if why), None)


def _after(silent: Event | None, deleted: Event) -> str:
    if silent is None or silent.at is None or deleted.at is None or deleted.at < silent.at:
        return ""
    return f", {deleted.at - silent.at:.0f} s after it was called not ready"


def _by_eviction(seen: Seen) -> str | None:
    for pod in seen.pods:
        if pod.reason in ("Evicted", "Preempting", "Preempted", "NodeLost", "NodeShutdown", "Terminated"):
            return f"pod {pod.name} was evicted from {pod.node} ({pod.reason}): {pod.message}".rstrip(": ")
    for reason in ("Evicted", "Preempted"):
        event = _event(seen, reason)
        if event:
            return f"pod {event.name} was evicted: {event.message}"
    evicted = conditions(seen.job).get("Failed", {})
    return str(evicted.get("message")) if evicted.get("reason") == "MPIJobEvicted" else None


def _by_kill(seen: Seen) -> str | None:
    """A container that the kernel killed, which mpirun can only see as a connection that broke."""
    for pod in (*seen.of(WORKER), *seen.of(LAUNCHER)):
        if pod.is_out_of_memory:
            part = f"container {pod.killed} of pod {pod.name}" if pod.killed else f"pod {pod.name}"
            return f"{part} on {pod.node} used more memory than its limit allows (OOMKilled)"
    return None


def _by_deadline(seen: Seen) -> str | None:
    failed = conditions(seen.job).get("Failed", {})
    return "it ran longer than activeDeadlineSeconds" if "DeadlineExceeded" in str(failed.get("reason")) else None


def _by_launcher(seen: Seen) -> str | None:
    """The launcher's output, or how its container ended."""
    launchers = ended_launchers(seen)
    if seen.log:
        code = launchers[-1].exit_code if launchers else None
        return cause_of(seen.log, code, seen.ranks).sentence
    for pod in reversed(launchers):
        if pod.exit_code:
            return f"the launcher {pod.name} ended with exit code {pod.exit_code} ({pod.ended_reason or 'Error'})"
    return None


def ended_launchers(seen: Seen) -> list[Pod]:
    """Return the launchers that have ended, the latest at the end: the operator starts another one after a failure."""
    ended = [pod for pod in seen.of(LAUNCHER) if pod.exit_code is not None]
    return sorted(ended, key=lambda pod: pod.ended or pod.started or 0.0)


def _by_condition(seen: Seen) -> str | None:
    failed = conditions(seen.job).get("Failed", {})
    message, reason = (str(failed.get(key) or "") for key in ("message", "reason"))
    return f"{message.rstrip(': ')} ({reason.rstrip('/')})" if message else reason.rstrip("/") or None


def _event(seen: Seen, reason: str, name: str = "") -> Event | None:
    """The newest event of a reason, of one object where it is named."""
    mine = [event for event in seen.events if event.reason == reason and (not name or event.name == name)]
    return mine[-1] if mine else None


_WAITING: tuple[Look, ...] = (
    _by_operator,
    _by_suspension,
    _by_image,
    _by_scheduler,
    _by_container,
    _by_mount,
    _by_refusal,
    _by_start,
)
# What took a pod away comes before what its neighbours saw of that.
_DIED: tuple[Look, ...] = (_by_toleration, _by_eviction, _by_kill, _by_deadline, _by_launcher, _by_image, _by_refusal)
