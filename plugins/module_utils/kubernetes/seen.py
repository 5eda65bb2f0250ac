"""A job, its pods and its events, read from the answers of the Kubernetes API."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .containers import containers_of
from .job_kinds import KINDS, LAUNCHER, NODE, TRAINJOB, V2BETA1, WORKER, kind_of, trainer_of
from .object_fields import Object, conditions, is_deleted, is_true, labels, part, seconds, several, whole
from .pod_templates import TAINTS

# The labels with which the operators mark their pods.
_JOB = tuple(dict.fromkeys(kind.job_label for kind in KINDS.values()))
_ROLE = tuple(dict.fromkeys(kind.role_label for kind in KINDS.values()))
_INDEX = tuple(dict.fromkeys(kind.index_label for kind in KINDS.values()))
MOST_RANKS = 100_000
# A torchrun gives its ranks 30 s to end:
# https://github.com/pytorch/pytorch/blob/main/torch/distributed/elastic/multiprocessing/api.py (close).
TOGETHER_SECONDS, MOST_LOGS = 40.0, 64


@dataclass(frozen=True)
class Event:
    """One event: the kind and the name of its object, its reason and message, and the time of its last report."""

    kind: str
    name: str
    reason: str
    message: str
    is_warning: bool
    at: float | None


@dataclass(frozen=True)
class Pod:
    """One pod of a job; ``waiting`` is the reason why its container does not run yet, ``exit_code`` its exit code.

    ``waits`` and ``killed`` name the container that waits or was killed, if it is not the one with the program.
    ``setup_error`` is how an init container failed, ``made`` when the pod was created.
    ``program`` is the name of the container with the program.
    ``disrupted`` is when Kubernetes decided to end the pod, or else when its program ended.
    ``tolerates`` is the number of seconds that the pod stays on a silent node; None without limit. ``host`` is its host
    name, without the end that Trainer's Jobs append to the name of the pod. ``leads`` states whether a worker stands
    for the launcher of a job that has none.
    """

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
    ended: float | None = None
    waits: str = ""
    is_out_of_memory: bool = False
    killed: str = ""
    killed_at: float | None = None
    setup_error: str = ""
    program: str = ""
    made: float | None = None
    disrupted: float | None = None
    host: str = ""
    leads: bool = False

    @property
    def is_launcher(self) -> bool:
        """Return whether the pod is the launcher, or stands for it."""
        return self.leads or self.role == LAUNCHER


@dataclass(frozen=True)
class JobSnapshot:
    """A job as the API reports it at one time, with its pods and events; ``job`` is None if it does not exist.

    ``log`` is the output of the launcher, ``logs_beside`` that of other pods with ranks that failed at that time.
    ``is_known`` states whether the API serves jobs of this kind, ``has_namespace`` whether the namespace exists.
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
    logs_beside: str = ""
    now: float = 0.0
    api: str = V2BETA1

    @property
    def made(self) -> float | None:
        """Return the time at which the job was created."""
        return seconds(part(self.job, "metadata").get("creationTimestamp"))

    @property
    def age(self) -> float | None:
        """Return the seconds since the job was created."""
        return None if self.made is None else self.now - self.made

    @property
    def is_deleted(self) -> bool:
        """Return whether the job was deleted, and waits for the end of its pods."""
        return is_deleted(self.job or {})

    @property
    def queue(self) -> str:
        """Return the Kueue queue of the job; empty if it has no queue."""
        return str(labels(self.job).get("kueue.x-k8s.io/queue-name") or "")

    @property
    def ranks(self) -> list[str]:
        """Return the pod of each rank in the order of the operator's host file; empty if there are too many ranks."""
        workers, slots = _workers_and_slots(self.job)
        if not 0 <= workers * slots <= MOST_RANKS:
            return []
        return [self.host_of(index) for index in range(workers) for _slot in range(slots)]

    def host_of(self, index: int) -> str:
        """Return the host name of a worker's pod."""
        return kind_of(self.job).host_of(self.name, index)

    @property
    def command(self) -> list[str]:
        own = trainer_of(self.job).get("command")
        if isinstance(own, list):
            return [str(word) for word in own]
        template = part(part(part(part(self.job, "spec"), "mpiReplicaSpecs"), "Launcher"), "template")
        containers = several(part(template, "spec"), "containers")
        words = containers[0].get("command") if containers else None
        return [str(word) for word in words] if isinstance(words, list) else []

    @property
    def has_succeeded(self) -> bool:
        """Return whether the job has finished without an error."""
        by_type = conditions(self.job)
        return is_true(by_type, "Succeeded") or is_true(by_type, "Complete")

    @property
    def launchers(self) -> list[Pod]:
        """Return the pods of the launcher, or the one that stands for it."""
        return sorted((pod for pod in self.pods if pod.is_launcher), key=lambda pod: pod.name)

    def pods_with_role(self, role: str) -> list[Pod]:
        """Return the pods of the launcher or of the workers, in the order of their index."""
        return sorted((pod for pod in self.pods if pod.role == role), key=lambda pod: (pod.index or 0, pod.name))


def _workers_and_slots(job: Object | None) -> tuple[int, int]:
    """Return the number of workers of a job, and the number of ranks of a worker."""
    spec, trainer = part(job, "spec"), trainer_of(job)
    workers = part(part(spec, "mpiReplicaSpecs"), "Worker").get("replicas") or trainer.get("numNodes")
    slots = spec.get("slotsPerWorker") or trainer.get("numProcPerNode")
    return whole(workers) or 0, whole(slots) or 1


def has_launcher(made: Iterable[Object]) -> bool:
    """Return whether a job has a launcher; torchrun of each node starts the ranks of a job without one.

    ``made`` are the objects that the operator created, such as a JobSet with the names of its Jobs.
    """
    names = [each.get("name") for thing in made for each in several(part(thing, "spec"), "replicatedJobs")]
    return not names or LAUNCHER in names


def failed_together(pods: Sequence[Pod]) -> list[Pod]:
    """Return the first pods that failed, the first one first: that of the cause may end later than others.

    The times of the API are in full seconds, and a torchrun waits for its other ranks before it ends.
    """
    failed = sorted(
        (pod for pod in pods if pod.exit_code or pod.phase == "Failed"), key=lambda pod: (pod.ended or 0.0, pod.name)
    )
    return [pod for pod in failed if (pod.ended or 0.0) <= (failed[0].ended or 0.0) + TOGETHER_SECONDS][:MOST_LOGS]


def with_leader(pods: Sequence[Pod], leader: Pod | None) -> list[Pod]:
    """Return the pods of a job without a launcher: this one stands for it, or else that of rank 0."""
    leader = leader or next((pod for pod in pods if pod.index == 0), None)
    return [replace(pod, leads=pod is leader) for pod in pods]


def owners_of(job: Object | None, made: Iterable[Object]) -> frozenset[str]:
    """Return the UIDs that own the pods of a job: its UID, and those of the objects that its operator made.

    ``made`` are a JobSet and Jobs, each after its owner.
    """
    owners = {str(part(job, "metadata").get("uid") or "")} - {""}
    for each in made:
        if not owners.isdisjoint(_owners(each)):
            owners.add(str(part(each, "metadata").get("uid") or ""))
    return frozenset(owners - {""})


def pods_of(
    name: str, objects: Iterable[Object], owners: Collection[str] | None = None, job: Object | None = None
) -> list[Pod]:
    """Return the pods of a job among those of its namespace.

    Any user who can create pods can give them the labels of a job. If ``owners`` is given, only pods with one of these
    owners count.
    """
    pods = []
    for each in objects:
        marked = labels(each)
        is_owned = owners is None or not _owners(each).isdisjoint(owners)
        if is_owned and any(marked.get(key) == name for key in _JOB):
            pods.append(_pod(each, marked, job))
    return pods


def events_of(
    name: str, objects: Iterable[Object], uids: Collection[str] | None = None, since: float | None = None
) -> list[Event]:
    """Return the events about a job, its launcher's Job and its pods, the oldest first.

    ``uids`` are those of the existing objects: with them, events about another object are left out. A pod may have been
    deleted, so its events count if they are not older than the job, which was created at ``since``.
    """
    of_mpijob, of_trainjob = "-launcher(-[a-z0-9]+)?|-worker-[0-9]+", "-(launcher|node)-0(-[0-9]+-[a-z0-9]+)?"
    own = re.compile(rf"{re.escape(name)}({of_mpijob}|{of_trainjob})?")
    mine = []
    for each in objects:
        event, uid = _event(each), str(part(each, "involvedObject").get("uid") or "")
        is_old = since is not None and event.at is not None and event.at < int(since)
        is_of_another = uids is not None and uid not in (*uids, "") and event.kind != "Pod"
        if own.fullmatch(event.name) and not is_of_another and (not is_old or (uids is not None and uid in uids)):
            mine.append(event)
    return sorted(mine, key=lambda event: event.at or 0.0)


def _owners(thing: Object) -> set[str]:
    return {str(each.get("uid") or "") for each in several(part(thing, "metadata"), "ownerReferences")}


def boot_ids(nodes: Iterable[Object]) -> dict[str, str]:
    """Return the boot id of each node by its name."""
    ids = {}
    for node in nodes:
        boot_id = part(part(node, "status"), "nodeInfo").get("bootID")
        if boot_id:
            ids[str(part(node, "metadata").get("name"))] = str(boot_id)
    return ids


def _event(event: Object) -> Event:
    about = part(event, "involvedObject")
    times = (event.get("lastTimestamp"), part(event, "series").get("lastObservedTime"), event.get("eventTime"))
    return Event(
        str(about.get("kind") or ""),
        str(about.get("name") or ""),
        str(event.get("reason") or ""),
        str(event.get("message") or "").strip(),
        event.get("type") == "Warning",
        next((at for at in map(seconds, times) if at is not None), None),
    )


def _pod(thing: Object, marked: Object, job: Object | None) -> Pod:
    metadata, status, spec = (part(thing, key) for key in ("metadata", "status", "spec"))
    role = next((str(marked[key]) for key in _ROLE if key in marked), "")
    role = WORKER if role == KINDS[TRAINJOB].worker_role else role
    containers = containers_of(thing, program_of(job, role))
    by_type = conditions(thing)
    scheduled = by_type.get("PodScheduled", {})
    return Pod(
        name=str(metadata.get("name") or ""),
        uid=str(metadata.get("uid") or ""),
        role=role,
        index=_index(marked, str(metadata.get("name") or "")),
        node=_word(spec, "nodeName"),
        phase=str(status.get("phase") or ""),
        reason=str(status.get("reason") or ""),
        message=str(status.get("message") or ""),
        is_deleted=is_deleted(thing),
        unscheduled=str(scheduled.get("message") or "") if scheduled.get("status") == "False" else "",
        tolerates=tolerated_seconds(several(spec, "tolerations")),
        address=_word(status, "podIP"),
        made=seconds(metadata.get("creationTimestamp")),
        disrupted=seconds(by_type.get("DisruptionTarget", {}).get("lastTransitionTime")) or containers.ended,
        host=_word(spec, "hostname") or str(metadata.get("name") or ""),
        **vars(containers),
    )


def program_of(job: Object | None, role: str) -> str:
    """Return the name of the first container in the job's template for a role, or the role."""
    if kind_of(job) is KINDS[TRAINJOB]:
        return NODE
    replicas = part(part(part(job, "spec"), "mpiReplicaSpecs"), role.capitalize())
    containers = several(part(part(replicas, "template"), "spec"), "containers")
    return str(containers[0].get("name") or "") if containers else role


def _index(marked: Object, name: str) -> int | None:
    given = next((marked[key] for key in _INDEX if marked.get(key)), None)
    return whole(given or name.rpartition("-")[2])


def _word(thing: Object, key: str) -> str | None:
    word = thing.get(key)
    return word if isinstance(word, str) else None


def tolerated_seconds(tolerations: Iterable[Object]) -> float | None:
    """Return the seconds that a pod stays on a node that is silent; None if it stays without limit.

    Kubernetes marks such a node with one of two taints, not-ready and unreachable, without a value. A pod stays as long
    as the shortest of the tolerations that match a taint, and is deleted at once if none does.
    """
    given = list(tolerations)
    limits = [_limit(taint, given) for taint in TAINTS]
    return min((limit for limit in limits if limit is not None), default=None)


def _limit(taint: str, tolerations: Iterable[Object]) -> float | None:
    matching = [each for each in tolerations if _matches(taint, each)]
    if not matching:
        return 0.0
    limits = [float(bound) for each in matching if (bound := whole(each.get("tolerationSeconds"))) is not None]
    return max(0.0, min(limits)) if limits else None


def _matches(taint: str, toleration: Object) -> bool:
    """Return whether a toleration covers a taint, which has the effect NoExecute and no value."""
    if toleration.get("effect") not in ("NoExecute", None, ""):
        return False
    exists = toleration.get("operator") == "Exists"
    if not toleration.get("key"):
        return exists
    return toleration.get("key") == taint and (exists or not toleration.get("value"))
