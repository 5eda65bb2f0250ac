# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""What the API of Kubernetes answered, read into plain facts in our own names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from .pods import TAINTS

Object = Mapping[str, Any]
LAUNCHER, WORKER = "launcher", "worker"
# The labels by which the operators of v2beta1 and of v1alpha2 mark their pods.
_JOB = ("training.kubeflow.org/job-name", "mpi_job_name")
_ROLE = ("training.kubeflow.org/job-role", "mpi_role_type")
_INDEX = "training.kubeflow.org/replica-index"
MOST_RANKS = 100_000
_WHOLE = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True)
class Event:
    """One event: whom it is about, its word, what it says, and when it was last so."""

    kind: str
    name: str
    reason: str
    message: str
    is_warning: bool
    at: float | None


@dataclass(frozen=True)
class Pod:
    """One pod of a job; ``waiting`` is why its container does not run yet, ``exit_code`` how it ended."""

    name: str
    uid: str
    role: str
    index: int | None
    node: str | None
    phase: str
    reason: str
    message: str
    is_deleted: bool
    unscheduled: str
    waiting: str
    waiting_message: str
    exit_code: int | None
    ended_reason: str
    started: float | None
    restarts: int
    tolerates: float | None
    address: str | None = None


@dataclass(frozen=True)
class Seen:
    """All that was read of one job; ``job`` is None where there is none.

    ``is_known`` tells whether MPIJobs are, and ``has_namespace`` whether there is the namespace.
    """

    name: str
    namespace: str
    job: Object | None
    pods: Sequence[Pod] = ()
    events: Sequence[Event] = ()
    is_known: bool = True
    has_namespace: bool = True
    boot_ids: Mapping[str, str] = field(default_factory=dict)
    log: str = ""
    now: float = 0.0

    @property
    def made(self) -> float | None:
        """The time at which the job was made."""
        return seconds(part(self.job, "metadata").get("creationTimestamp"))

    @property
    def age(self) -> float | None:
        """The seconds since the job was made."""
        return None if self.made is None else self.now - self.made

    @property
    def queue(self) -> str:
        """The queue of Kueue that the job was given to; empty for none."""
        return str(labels(self.job).get("kueue.x-k8s.io/queue-name") or "")

    @property
    def ranks(self) -> list[str]:
        """The pod of each rank, as the operator's list of hosts gives them out; none for more than can be."""
        spec = part(self.job, "spec")
        workers = whole(part(part(spec, "mpiReplicaSpecs"), "Worker").get("replicas")) or 0
        slots = whole(spec.get("slotsPerWorker")) or 1
        if not 0 <= workers * slots <= MOST_RANKS:
            return []
        return [f"{self.name}-worker-{index}" for index in range(workers) for _slot in range(slots)]

    @property
    def command(self) -> list[str]:
        """The command of the launcher."""
        template = part(part(part(part(self.job, "spec"), "mpiReplicaSpecs"), "Launcher"), "template")
        containers = several(part(template, "spec"), "containers")
        words = containers[0].get("command") if containers else None
        return [str(word) for word in words] if isinstance(words, list) else []

    def of(self, role: str) -> list[Pod]:
        """The pods of launcher or workers, in their order."""
        return sorted((pod for pod in self.pods if pod.role == role), key=lambda pod: (pod.index or 0, pod.name))


def part(thing: object, key: str) -> Object:
    """An object within an object; empty where there is none."""
    found = thing.get(key) if isinstance(thing, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def several(thing: object, key: str) -> list[Object]:
    """A list of objects within an object; empty where there is none."""
    found = thing.get(key) if isinstance(thing, Mapping) else None
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def labels(thing: Object | None) -> Object:
    """The labels of an object."""
    return part(part(thing, "metadata"), "labels")


def whole(told: object) -> int | None:
    """A number of things, which a label tells as text; None for what is no such number."""
    text = str(told)
    return int(text) if isinstance(told, (int, str)) and _WHOLE.fullmatch(text) else None


def seconds(text: object) -> float | None:
    """A time of the API, such as 2026-07-03T14:59:17Z, as seconds since 1970."""
    whole, _dot, part = str(text or "").rstrip("Z").partition(".")
    try:
        at = datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    return at.timestamp() + (float(f"0.{part}") if part.isdigit() else 0.0)


def conditions(thing: Object | None) -> dict[str, Object]:
    """The conditions in a status, by type."""
    return {str(one.get("type")): one for one in several(part(thing, "status"), "conditions")}


def is_true(found: Mapping[str, Object], kind: str) -> bool:
    """Whether a condition holds."""
    return str(found.get(kind, {}).get("status")) == "True"


def pods_of(name: str, found: Iterable[Object]) -> list[Pod]:
    """The pods of a job among those of its namespace."""
    pods = []
    for one in found:
        marked = labels(one)
        if any(marked.get(key) == name for key in _JOB):
            pods.append(_pod(one, marked))
    return pods


def events_of(name: str, found: Iterable[Object]) -> list[Event]:
    """The events about a job, its launcher's Job and its pods, the oldest first."""
    own = re.compile(rf"{re.escape(name)}(-launcher(-[a-z0-9]+)?|-worker-[0-9]+)?")
    mine = [event for event in map(_event, found) if own.fullmatch(event.name)]
    return sorted(mine, key=lambda event: event.at or 0.0)


def boot_ids(nodes: Iterable[Object]) -> dict[str, str]:
    """By node the id of its running system."""
    found = {}
    for node in nodes:
        told = part(part(node, "status"), "nodeInfo").get("bootID")
        if told:
            found[str(part(node, "metadata").get("name"))] = str(told)
    return found


def _event(one: Object) -> Event:
    about = part(one, "involvedObject")
    times = (one.get("lastTimestamp"), part(one, "series").get("lastObservedTime"), one.get("eventTime"))
    return Event(
        str(about.get("kind") or ""),
        str(about.get("name") or ""),
        str(one.get("reason") or ""),
        str(one.get("message") or "").strip(),
        one.get("type") == "Warning",
        next((at for at in map(seconds, times) if at is not None), None),
    )


def _pod(one: Object, marked: Object) -> Pod:
    metadata, status, spec = (part(one, key) for key in ("metadata", "status", "spec"))
    container = next(iter(several(status, "containerStatuses")), {})
    state = part(container, "state")
    waiting, ended = part(state, "waiting"), part(state, "terminated")
    scheduled = conditions(one).get("PodScheduled", {})
    return Pod(
        name=str(metadata.get("name") or ""),
        uid=str(metadata.get("uid") or ""),
        role=next((str(marked[key]) for key in _ROLE if key in marked), ""),
        index=_index(marked, str(metadata.get("name") or "")),
        node=_word(spec, "nodeName"),
        phase=str(status.get("phase") or ""),
        reason=str(status.get("reason") or ""),
        message=str(status.get("message") or ""),
        is_deleted=bool(metadata.get("deletionTimestamp")),
        unscheduled=str(scheduled.get("message") or "") if scheduled.get("status") == "False" else "",
        waiting=str(waiting.get("reason") or ""),
        waiting_message=str(waiting.get("message") or ""),
        exit_code=whole(ended.get("exitCode")),
        ended_reason=str(ended.get("reason") or ""),
        started=seconds(part(state, "running").get("startedAt") or ended.get("startedAt")),
        restarts=whole(container.get("restartCount")) or 0,
        tolerates=_tolerates(several(spec, "tolerations")),
        address=_word(status, "podIP"),
    )


def _index(marked: Object, name: str) -> int | None:
    return whole(marked.get(_INDEX) or name.rpartition("-")[2])


def _tolerates(tolerations: Iterable[Object]) -> float | None:
    """The seconds for which a pod stays on a node that is silent; None where it stays for ever."""
    mine = [
        one for one in tolerations if one.get("key") in (*TAINTS, None) and one.get("effect") in ("NoExecute", None)
    ]
    if not mine:
        return 0.0
    given = list(_given(mine))
    return min(given) if given else None


def _given(tolerations: Iterable[Object]) -> Iterator[float]:
    for one in tolerations:
        bound = whole(one.get("tolerationSeconds"))
        if bound is not None:
            yield float(bound)


def _word(thing: Object, key: str) -> str | None:
    found = thing.get(key)
    return found if isinstance(found, str) else None
