"""The containers of a pod: which one runs the program, which one keeps the pod from starting, which one was killed.

The kubelet lists containers by name, so a sidecar such as istio-proxy may come first. Its restart is not a restart of
the program, and its own failures are reported with its name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .object_fields import part, seconds, several, whole

Object = Mapping[str, Any]
# A pod in one of these states is still starting; any other state has its own cause.
STARTING = ("ContainerCreating", "PodInitializing", "")
OUT_OF_MEMORY = "OOMKilled"


@dataclass(frozen=True)
class Containers:
    """The state of a pod's containers; ``waiting`` and ``killed`` may be those of an init container or a sidecar.

    ``waits`` and ``killed`` name a container other than the one that runs the program; they are empty for that one.
    ``program`` is the name of that one. ``killed_at`` is the time of the kill. ``setup_error`` is how an init container
    failed; empty if none did.
    """

    waiting: str
    waiting_message: str
    waits: str
    exit_code: int | None
    ended_reason: str
    ended: float | None
    started: float | None
    restarts: int
    is_out_of_memory: bool
    killed: str
    killed_at: float | None
    setup_error: str
    program: str


def containers_of(pod: Object, main: str) -> Containers:
    """Return the state of the containers of a pod, of which ``main`` runs the program."""
    status = part(pod, "status")
    statuses = several(status, "containerStatuses")
    names = [str(container.get("name") or "") for container in several(part(pod, "spec"), "containers")]
    program = _program(statuses, main, names)
    state = part(program, "state")
    ended = part(state, "terminated")
    others = [each for each in (*several(status, "initContainerStatuses"), *statuses) if each is not program]
    sidecars = _sidecars(part(pod, "spec"))
    setups = [each for each in several(status, "initContainerStatuses") if each.get("name") not in sidecars]
    waiting, waits = _waiting(program, others)
    killed, killed_at = _latest_kill((program, *others))
    return Containers(
        waiting=str(waiting.get("reason") or ""),
        waiting_message=str(waiting.get("message") or ""),
        waits=waits,
        exit_code=whole(ended.get("exitCode")),
        ended_reason=str(ended.get("reason") or ""),
        ended=seconds(ended.get("finishedAt")),
        started=seconds(part(state, "running").get("startedAt") or ended.get("startedAt")),
        restarts=whole(program.get("restartCount")) or 0,
        is_out_of_memory=killed is not None,
        killed_at=killed_at,
        killed=str(killed.get("name") or "") if killed is not None and killed is not program else "",
        setup_error=_setup_error(setups),
        program=str(program.get("name") or ""),
    )


def _sidecars(spec: Object) -> set[object]:
    """Return the init containers that run beside the program: they end after it, with any exit code."""
    return {each.get("name") for each in several(spec, "initContainers") if each.get("restartPolicy") == "Always"}


def _setup_error(statuses: Sequence[Object]) -> str:
    """Return the name of the first init container that failed, with its exit code and its message."""
    for each in statuses:
        ended = part(part(each, "state"), "terminated")
        code = whole(ended.get("exitCode"))
        if code:
            message = " ".join(str(ended.get("message") or "").split())
            return f"container {each.get('name')} ended with exit code {code}: {message}".rstrip(": ")
    return ""


def _program(statuses: Sequence[Object], main: str, names: Sequence[str]) -> Object:
    """Return the status of the container that runs the program: by its name, else the first one in the pod's spec."""
    for name in (main, *names[:1]):
        named = next((status for status in statuses if name and status.get("name") == name), None)
        if named is not None:
            return named
    return statuses[0] if statuses else {}


def _waiting(program: Object, others: Sequence[Object]) -> tuple[Object, str]:
    """Return why the pod does not start: the reason of its program, or that of another container if it has one."""
    mine = part(part(program, "state"), "waiting")
    if str(mine.get("reason") or "") not in STARTING:
        return mine, ""
    for each in others:
        waiting = part(part(each, "state"), "waiting")
        if str(waiting.get("reason") or "") not in STARTING:
            return waiting, str(each.get("name") or "")
    return mine, ""


def _latest_kill(containers: Sequence[Object]) -> tuple[Object | None, float | None]:
    """Return the container that the kernel killed last, and when; a kill at an unknown time counts as the last."""
    kills = [
        (each, seconds(ended.get("finishedAt")))
        for each in containers
        # The kubelet keeps the end of the previous start.
        for ended in (part(part(each, key), "terminated") for key in ("state", "lastState"))
        if ended.get("reason") == OUT_OF_MEMORY
    ]
    return max(kills, key=lambda kill: math.inf if kill[1] is None else kill[1], default=(None, None))
