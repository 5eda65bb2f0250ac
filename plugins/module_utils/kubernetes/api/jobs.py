# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Read one job from the Kubernetes API: the MPIJob, its pods, their events, and the launcher's log."""

from __future__ import annotations

import time

from ...errors import Failed
from ..job_spec import APIS
from ..last_attempt import ended_launchers
from ..manifests import GROUP
from ..object_fields import Object, part, seconds, several
from ..seen import JobSnapshot, boot_ids, events_of, owners_of, pods_of
from .connection import Api, segment

# The end of a log that is kept, and the part that is read at most: a line may have any length.
LOG_BYTES, LOG_LIMIT = 1 << 16, 1 << 24


def read(api: Api, namespace: str, name: str, version: str) -> JobSnapshot:
    """Return a job with its pods and events; the log is read if its launcher has ended."""
    kind = f"/apis/{GROUP}/{version}"
    inside = f"/api/v1/namespaces/{segment(namespace)}"
    job = api.get(f"{kind}/namespaces/{segment(namespace)}/mpijobs/{segment(name)}")
    is_known = job is not None or _knows_jobs(api, kind)
    owners = owners_of(job, _launcher_jobs(api, namespace, name) if job else ())
    pods = pods_of(name, api.items(f"{inside}/pods"), owners, job)
    ended = ended_launchers(pods)
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
        log=launcher_log(api, namespace, ended[-1].name) if ended else "",
        now=time.time(),
    )


def owners(api: Api, namespace: str, name: str) -> frozenset[str]:
    """Return the UIDs of a job and its launcher, which own its pods; empty without such a job."""
    for version in APIS:
        job = api.get(f"/apis/{GROUP}/{version}/namespaces/{segment(namespace)}/mpijobs/{segment(name)}")
        if job is not None:
            return owners_of(job, _launcher_jobs(api, namespace, name))
    return frozenset()


def launcher_log(api: Api, namespace: str, pod: str, last: int = LOG_BYTES) -> str:
    """Return the end of a pod's log; empty if its node has deleted the log."""
    path = f"/api/v1/namespaces/{segment(namespace)}/pods/{segment(pod)}/log"
    return (api.text(path, tailLines=5000, limitBytes=LOG_LIMIT) or "")[-last:]


def _launcher_jobs(api: Api, namespace: str, name: str) -> list[Object]:
    """Return the Job that the operator created for the launcher: it owns the launcher's pods instead of the MPIJob."""
    job = api.get(f"/apis/batch/v1/namespaces/{segment(namespace)}/jobs/{segment(name)}-launcher")
    return [job] if job else []


def _has(api: Api, path: str) -> bool:
    """Return whether a path exists; true without the permission to read it, because its use then reports the error."""
    try:
        return api.get(path) is not None
    except Failed:
        return True


def _knows_jobs(api: Api, kind: str) -> bool:
    return any(resource.get("name") == "mpijobs" for resource in several(api.get(kind), "resources"))
