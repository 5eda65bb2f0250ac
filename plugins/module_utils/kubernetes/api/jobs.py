"""Read one job from the Kubernetes API: the MPIJob or TrainJob, its pods, their events, and the launcher's log."""

from __future__ import annotations

import base64
import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import List, Tuple

from ...errors import Failed
from ...training.guest import job_output
from ..causes import culprit
from ..job_kinds import KINDS, LAUNCHER, NODE, TRAINJOB, JobKind
from ..job_spec import SECRET
from ..last_attempt import ended_launchers
from ..object_fields import Object, part, seconds, several
from ..seen import JobSnapshot, Pod, boot_ids, events_of, failed_together, has_launcher, owners_of, pods_of, with_leader
from .connection import Api, Unserved, segment

# The size of the end of a log that is kept, and of the part that is read at most: a line may have any length.
JOBSET = "jobset.x-k8s.io/v1alpha2"
LOG_BYTES, LOG_LIMIT = 1 << 16, 1 << 24


def read(api: Api, namespace: str, name: str, version: str) -> JobSnapshot:
    """Return a job with its pods and events; the log is read if its launcher has ended."""
    kind = KINDS[version]
    inside = f"/api/v1/namespaces/{segment(namespace)}"
    job = _job(api, namespace, name, kind)
    is_known = job is not None or _knows_jobs(api, kind)
    created = _made(api, namespace, name, kind) if job else []
    owners = owners_of(job, created)
    pods = pods_of(name, api.items(f"{inside}/pods"), owners, job)
    ranks = JobSnapshot(name, namespace, job, api=version).ranks
    leads = _with_launcher if has_launcher(created) else _with_culprit
    pods, log, beside = leads(api, namespace, name, pods, ranks)
    made = seconds(part(job, "metadata").get("creationTimestamp"))
    uids = {*owners, *(pod.uid for pod in pods)}
    return JobSnapshot(
        name,
        namespace,
        job,
        pods,
        events_of(name, api.items(f"{inside}/events"), uids, made) if job else (),
        is_known=is_known,
        has_namespace=job is not None or _has(api, inside),
        boot_ids=boot_ids(api.items("/api/v1/nodes")) if pods else {},
        log=log,
        logs_beside=beside,
        now=time.time(),
        api=version,
    )


def owners(api: Api, namespace: str, name: str, version: str) -> frozenset[str]:
    """Return the UIDs of a job and its launcher, which own its pods; empty without such a job.

    Only kinds of the same operator are read: an account may have no right to those of another one.
    """
    for kind in (kind for kind in KINDS.values() if kind.group == KINDS[version].group):
        job = _job(api, namespace, name, kind)
        if job is not None:
            return owners_of(job, _made(api, namespace, name, kind))
    return frozenset()


def _job(api: Api, namespace: str, name: str, kind: JobKind) -> Object | None:
    job: Object | None = api.get(
        f"/apis/{kind.api_version}/namespaces/{segment(namespace)}/{kind.plural}/{segment(name)}"
    )
    return job if job is None else {"kind": kind.kind, **job}


def launcher_log(api: Api, namespace: str, pod: str, last: int = LOG_BYTES, container: str = "") -> str:
    """Return the end of a pod's log; empty if its node has deleted the log, is off, or never started the container.

    The server refuses a request without the name of the container if a sidecar was added to the pod.
    """
    path = f"/api/v1/namespaces/{segment(namespace)}/pods/{segment(pod)}/log"
    which = {"container": container} if container else {}
    try:
        return (api.text(path, tailLines=5000, limitBytes=LOG_LIMIT, **which) or "")[-last:]
    except Unserved:
        return ""


def shown_log(api: Api, namespace: str, name: str, pod: str, container: str = "") -> str:
    """Return the end of the log of one pod of a job, as ``shown_logs``."""
    return shown_logs(api, namespace, name, {pod: container})[pod]


def shown_logs(api: Api, namespace: str, name: str, pods: Mapping[str, str]) -> dict[str, str]:
    """Return the ends of logs without the values of the job's Secret: a rank may print its environment.

    ``pods`` are the containers by pod. The first line is left out if it is incomplete, because it may begin within a
    value.
    """
    logs = {pod: launcher_log(api, namespace, pod, container=container) for pod, container in pods.items()}
    secrets = _secret_values(api, namespace, name) if any(logs.values()) else []
    if secrets:
        logs = {pod: log.partition("\n")[2] if len(log) >= LOG_BYTES else log for pod, log in logs.items()}
    return {pod: job_output.without(log, secrets) for pod, log in logs.items()}


# The pods with the one that stands for the launcher, the log of the launcher, and those of other pods.
Led = Tuple[List[Pod], str, str]


def _with_launcher(api: Api, namespace: str, name: str, pods: list[Pod], _ranks: Sequence[str]) -> Led:
    ended = ended_launchers(pods)
    log = shown_log(api, namespace, name, ended[-1].name, ended[-1].program) if ended else ""
    return pods, log, ""


def _with_culprit(api: Api, namespace: str, name: str, pods: list[Pod], ranks: Sequence[str]) -> Led:
    """Let the pod with the cause stand for the launcher, among those that failed together."""
    failed = failed_together(pods)
    logs = shown_logs(api, namespace, name, {pod.name: pod.program for pod in failed})
    led, log, _none = _with_launcher(api, namespace, name, with_leader(pods, culprit(failed, logs, ranks)), ())
    return led, log, "".join(f"{each}\n" for each in logs.values() if each != log)


def _secret_values(api: Api, namespace: str, name: str) -> list[str]:
    """Return the values to hide; none if the job has no Secret, or if this account cannot read it."""
    path = f"/api/v1/namespaces/{segment(namespace)}/secrets/{segment(f'{name}-{SECRET}')}"
    try:
        data = part(api.get(path), "data")
    except Failed:
        return []
    values: dict[str, str] = {}
    for key, value in data.items():
        with contextlib.suppress(ValueError, TypeError):
            values[key] = base64.b64decode(value, validate=True).decode("utf-8", "replace")
    return job_output.values(values)


def _made(api: Api, namespace: str, name: str, kind: JobKind) -> list[Object]:
    """Return the objects that own the job's pods, each after its own owner.

    The operator of an MPIJob makes a Job for the launcher. Trainer makes a JobSet, which has a Job for the launcher and
    one for the nodes.
    """
    place, jobs = f"namespaces/{segment(namespace)}", "/apis/batch/v1"
    paths = [f"{jobs}/{place}/jobs/{segment(name)}-launcher"]
    if kind is KINDS[TRAINJOB]:
        paths = [f"/apis/{JOBSET}/{place}/jobsets/{segment(name)}"]
        paths += [f"{jobs}/{place}/jobs/{segment(name)}-{role}-0" for role in (LAUNCHER, NODE)]
    return [found for found in map(api.get, paths) if found]


def _has(api: Api, path: str) -> bool:
    """Return whether a path exists; true if this account cannot read it, because its use then reports the error."""
    try:
        return api.get(path) is not None
    except Failed:
        return True


def _knows_jobs(api: Api, kind: JobKind) -> bool:
    resources = several(api.get(f"/apis/{kind.api_version}"), "resources")
    return any(resource.get("name") == kind.plural for resource in resources)
