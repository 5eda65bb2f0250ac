"""The Kubernetes objects of a training job: an MPIJob, and the Secret and ConfigMap that it uses."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import pod_templates, trainjob
from .job_kinds import KINDS, TRAINJOB
from .job_spec import CONFIG_MAP, GANG, SECRET, JobSpec
from .object_fields import Object, part

QUEUE = "kueue.x-k8s.io/queue-name"
OURS = {"app.kubernetes.io/managed-by": "dml.vsphere"}


def manifests(job: JobSpec) -> list[dict[str, Any]]:
    """Return the objects that are not secret, in the order in which they are applied; the job comes last."""
    return [*([_config_map(job)] if job.files else []), *(_trainjob(job) if job.api == TRAINJOB else [mpijob(job)])]


def secret(job: JobSpec) -> dict[str, Any] | None:
    """Return the Secret with the secret part of the environment; None if there are no secrets."""
    if not job.secrets:
        return None
    data = {name: base64.b64encode(str(value).encode()).decode() for name, value in job.secrets.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(job, job.secret),
        "type": "Opaque",
        "data": data,
    }


def mpijob(job: JobSpec) -> dict[str, Any]:
    """Return the MPIJob."""
    return {"apiVersion": job.kind.api_version, "kind": job.kind.kind, "metadata": _in_queue(job), "spec": _spec(job)}


def _trainjob(job: JobSpec) -> list[dict[str, Any]]:
    """Return the runtime of a job for Trainer, and its TrainJob."""
    runtime = {**trainjob.runtime(job), "metadata": _metadata(job, job.name)}
    metadata = {**_in_queue(job), "annotations": {trainjob.RUNTIME_HASH: trainjob.hash_of(runtime)}}
    return [runtime, {**trainjob.trainjob(job, runtime), "metadata": metadata}]


def _in_queue(job: JobSpec) -> dict[str, Any]:
    """Return the metadata of a job, with the label that Kueue reads."""
    metadata = _metadata(job, job.name)
    if job.queue:
        metadata["labels"][QUEUE] = job.queue
    return metadata


def owned(name: str, api: str) -> list[dict[str, Any]]:
    """Return the names and kinds of all objects that a job with this name may have, in the order of their deletion."""
    kind = KINDS[api]
    runtime = [(kind.api_version, trainjob.RUNTIME, name)] if api == TRAINJOB else []
    rest = (*runtime, ("v1", "ConfigMap", f"{name}-{CONFIG_MAP}"), ("v1", "Secret", f"{name}-{SECRET}"))
    return [
        {"apiVersion": version, "kind": kind, "metadata": {"name": own}}
        for version, kind, own in ((kind.api_version, kind.kind, name), *rest)
    ]


def deletion(name: str, api: str) -> dict[str, Any]:
    """Return the options of kubernetes.core.k8s that delete all objects of a job, and its operator's."""
    options = {"state": "absent", "delete_options": {"propagationPolicy": KINDS[api].propagation}, "wait": True}
    return {"resource_definition": owned(name, api), **options}


def changed_fields(desired: Object, found: Object) -> Iterator[str]:
    """Yield the fields in which a job differs from a desired one; the pods of a TrainJob are those of its runtime."""
    yield from differences(desired.get("spec"), found.get("spec"))
    desired_hash, own_hash = (
        part(part(each, "metadata"), "annotations").get(trainjob.RUNTIME_HASH) for each in (desired, found)
    )
    if desired_hash and desired_hash != own_hash:
        yield "the pod templates of its runtime"


def differences(desired: Any, found: Any, path: str = "") -> Iterator[str]:
    """Yield the path of each desired field with another value; fields of the server or other clients are ignored."""
    if isinstance(desired, Mapping) and isinstance(found, Mapping):
        for key, value in desired.items():
            yield from differences(value, found.get(key), f"{path}.{key}" if path else str(key))
    elif _is_list(desired) and _is_list(found) and len(desired) == len(found):
        for index, (value, other) in enumerate(zip(desired, found)):
            yield from differences(value, other, f"{path}[{index}]")
    elif desired != found and not _is_same_number(desired, found):
        yield path


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _is_same_number(desired: object, found: object) -> bool:
    """Return whether two values are equal: a quantity may be a number or a text, and an empty object may be missing."""
    if desired in ({}, []) and found is None:
        return True
    scalars = (str, int, float)
    return isinstance(desired, scalars) and isinstance(found, scalars) and str(desired) == str(found)


def _metadata(job: JobSpec, name: str) -> dict[str, Any]:
    return {"name": name, "namespace": job.namespace, "labels": dict(OURS)}


def _config_map(job: JobSpec) -> dict[str, Any]:
    metadata = _metadata(job, job.config_map)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(job.files)}


def _spec(job: JobSpec) -> dict[str, Any]:
    policy: dict[str, Any] = {"cleanPodPolicy": job.clean_pods, "backoffLimit": job.backoff_limit}
    if job.suspend:
        policy["suspend"] = True
    if job.gang:
        policy["schedulingPolicy"] = {GANG[key]: value for key, value in job.gang.items()}
    return {
        "slotsPerWorker": job.slots,
        # A launcher that starts with its workers fails at first, because DNS does not resolve them yet.
        "launcherCreationPolicy": "WaitForWorkersReady",
        "runPolicy": policy,
        "mpiReplicaSpecs": _replicas(job),
    }


def _replicas(job: JobSpec) -> dict[str, Any]:
    """Return the replicas; a failed pod is not restarted in place, so that its output remains as evidence."""
    return {
        "Launcher": {"replicas": 1, "restartPolicy": "Never", "template": pod_templates.launcher(job)},
        "Worker": {"replicas": job.workers, "restartPolicy": "Never", "template": pod_templates.worker(job)},
    }
