"""The Kubernetes objects of a training job: an MPIJob or a TrainJob, and what it uses.

Trainer makes a JobSet of a TrainJob and its TrainingRuntime. Its MPI plug-in mounts the keys of ssh into the containers
with the name ``node``, and writes the host file of mpirun; the launcher starts when sshd answers on each node. Its
plug-in for PyTorch sets the variables of torchrun (``PET_*``) in these containers, and the job has no launcher.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from typing import Mapping, Sequence, TypedDict

from . import pod_templates
from .job_kinds import KINDS, LAUNCHER, NODE, TRAINJOB
from .job_spec import CONFIG_MAP, GANG, SECRET, TORCHRUN, JobSpec
from .object_fields import Object, part

QUEUE = "kueue.x-k8s.io/queue-name"
OURS = {"app.kubernetes.io/managed-by": "dml.vsphere"}
KIND = KINDS[TRAINJOB]
RUNTIME = "TrainingRuntime"
# The annotation of a TrainJob with the SHA-256 of its runtime, which Kubernetes does not compare with the job.
RUNTIME_HASH = "dml.vsphere/runtime-sha256"
ANCESTOR = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
SSH, PORT = "/root/.ssh", 22
LISTS = (list, tuple)
# Kueue appends those of the flavor to an admitted job.
GROWS = "tolerations"
OWN_KEY = "/root/.dml-key"
# Trainer mounts the private key with the mode 0640, and ssh refuses a key that others than its owner can read. Ranks
# keep their umask: the training user reads their checkpoints.
_WITH_KEY = f'(umask 077 && cp {SSH}/id_rsa {OWN_KEY}) && exec "$@"'
# Trainer sets these arguments, without a key, in a variable; those of the command line have precedence.
SSH_ARGUMENTS = ("--mca", "plm_rsh_args", f"-o ConnectionAttempts=10 -i {OWN_KEY}")


class Metadata(TypedDict, total=False):
    """The name of an object and its marks."""

    name: str
    namespace: str
    labels: dict[str, str]
    annotations: Mapping[str, str]


class Manifest(TypedDict, total=False):
    """An object of Kubernetes; ``data`` and ``type`` are those of a ConfigMap or a Secret."""

    apiVersion: str
    kind: str
    metadata: Metadata
    spec: Mapping[str, object]
    type: str
    data: Mapping[str, str]


def manifests(job: JobSpec) -> list[Manifest]:
    """Return the objects that are not secret, in the order in which they are applied; the job comes last."""
    return [*([_config_map(job)] if job.files else []), *(_trainjob(job) if job.api == TRAINJOB else [mpijob(job)])]


def secret(job: JobSpec) -> Manifest | None:
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


def mpijob(job: JobSpec) -> Manifest:
    return {"apiVersion": job.kind.api_version, "kind": job.kind.kind, "metadata": _in_queue(job), "spec": _spec(job)}


def _trainjob(job: JobSpec) -> list[Manifest]:
    """Return the runtime of a job for Trainer, and its TrainJob."""
    made: Manifest = {**runtime(job), "metadata": _metadata(job, job.name)}
    metadata: Metadata = {**_in_queue(job), "annotations": {RUNTIME_HASH: hash_of(made)}}
    return [made, {**trainjob(job, made), "metadata": metadata}]


def _in_queue(job: JobSpec) -> Metadata:
    """Return the metadata of a job, with the label that Kueue reads."""
    metadata = _metadata(job, job.name)
    if job.queue:
        metadata["labels"][QUEUE] = job.queue
    return metadata


def owned(name: str, api: str) -> list[Manifest]:
    """Return the names and kinds of all objects that a job with this name may have, in the order of their deletion."""
    kind = KINDS[api]
    runtime = [(kind.api_version, RUNTIME, name)] if api == TRAINJOB else []
    rest = (*runtime, ("v1", "ConfigMap", f"{name}-{CONFIG_MAP}"), ("v1", "Secret", f"{name}-{SECRET}"))
    return [
        {"apiVersion": version, "kind": kind, "metadata": {"name": own}}
        for version, kind, own in ((kind.api_version, kind.kind, name), *rest)
    ]


def deletion(name: str, api: str) -> dict[str, object]:
    """Return the options of kubernetes.core.k8s that delete all objects of a job, and its operator's."""
    options = {"state": "absent", "delete_options": {"propagationPolicy": KINDS[api].propagation}, "wait": True}
    return {"resource_definition": owned(name, api), **options}


def changed_fields(desired: Object, found: Object) -> Iterator[str]:
    """Yield the fields in which a job differs from a desired one; the pods of a TrainJob are those of its runtime."""
    yield from differences(desired.get("spec"), found.get("spec"))
    desired_hash, own_hash = (
        part(part(each, "metadata"), "annotations").get(RUNTIME_HASH) for each in (desired, found)
    )
    if desired_hash and desired_hash != own_hash:
        yield "the pod templates of its runtime"


def differences(desired: object, found: object, path: str = "") -> Iterator[str]:
    """Yield the path of each desired field with another value; fields of the server or other clients are ignored."""
    if isinstance(desired, Mapping) and isinstance(found, Mapping):
        for key, value in desired.items():
            yield from differences(value, found.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(desired, LISTS) and isinstance(found, LISTS) and _is_as_long(desired, found, path):
        for index, (value, other) in enumerate(zip(desired, found)):
            yield from differences(value, other, f"{path}[{index}]")
    elif desired != found and not _is_same_number(desired, found):
        yield path


def _is_as_long(desired: Sequence[object], found: Sequence[object], path: str) -> bool:
    """Return whether two lists have the same length, or another client may have appended to the second one."""
    return len(desired) == len(found) or (path.endswith(f".{GROWS}") and len(desired) < len(found))


def _is_same_number(desired: object, found: object) -> bool:
    """Return whether two values are equal: a quantity may be a number or a text, and an empty object may be missing."""
    if desired in ({}, []) and found is None:
        return True
    scalars = (str, int, float)
    return isinstance(desired, scalars) and isinstance(found, scalars) and str(desired) == str(found)


def _metadata(job: JobSpec, name: str) -> Metadata:
    return {"name": name, "namespace": job.namespace, "labels": dict(OURS)}


def _config_map(job: JobSpec) -> Manifest:
    metadata = _metadata(job, job.config_map)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(job.files)}


def _spec(job: JobSpec) -> dict[str, object]:
    policy: dict[str, object] = {"cleanPodPolicy": job.clean_pods, "backoffLimit": job.backoff_limit}
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


def _replicas(job: JobSpec) -> dict[str, object]:
    """Return the replicas; a failed pod is not restarted in place, so that its output remains as evidence."""
    return {
        "Launcher": {"replicas": 1, "restartPolicy": "Never", "template": pod_templates.launcher(job)},
        "Worker": {"replicas": job.workers, "restartPolicy": "Never", "template": pod_templates.worker(job)},
    }


def runtime(job: JobSpec) -> Manifest:
    """Return the runtime, without its metadata: the pod templates of the nodes, and of a launcher with mpirun."""
    has_launcher = job.launcher != TORCHRUN
    jobs = [{"name": NODE, "template": {"spec": _node_job(job)}}, _launcher(job)] if has_launcher else [_agents(job)]
    spec = {
        "network": {"publishNotReadyAddresses": True},
        "successPolicy": {"operator": "All", "targetReplicatedJobs": [LAUNCHER if has_launcher else NODE]},
        "replicatedJobs": jobs,
    }
    mpi = {"numProcPerNode": job.slots, "mpiImplementation": "OpenMPI", "sshAuthMountPath": SSH}
    plugin = {"mpi": {**mpi, "runLauncherAsNode": False}} if has_launcher else {"torch": {}}
    # Trainer runs as many launchers as the runtime has nodes. The TrainJob has the number of nodes.
    policy = {"numNodes": 1, **plugin}
    return {"apiVersion": KIND.api_version, "kind": RUNTIME, "spec": {"mlPolicy": policy, "template": {"spec": spec}}}


def trainjob(job: JobSpec, made: Manifest) -> Manifest:
    """Return the TrainJob without its metadata; ``made`` is its runtime."""
    command = _words(_command(job)) if job.launcher != TORCHRUN else pod_templates.torchrun_command(job)
    trainer = {"numNodes": job.workers, "numProcPerNode": job.slots, "command": command}
    reference = {"apiGroup": KIND.group, "kind": RUNTIME, "name": made["metadata"]["name"]}
    spec = {"runtimeRef": reference, "trainer": trainer, **({"suspend": True} if job.suspend else {})}
    return {"apiVersion": KIND.api_version, "kind": KIND.kind, "spec": spec}


def hash_of(made: Manifest) -> str:
    """Return the SHA-256 of a runtime's spec."""
    return hashlib.sha256(json.dumps(made["spec"], sort_keys=True).encode()).hexdigest()


def _node_job(job: JobSpec) -> dict[str, object]:
    probe = {"tcpSocket": {"port": PORT}, "initialDelaySeconds": 1, "periodSeconds": 2}
    command = _words(["/usr/sbin/sshd", "-De"])
    return {"template": _of_node(pod_templates.worker(job), {"command": command, "readinessProbe": probe})}


def _launcher(job: JobSpec) -> dict[str, object]:
    template = _of_node(pod_templates.launcher(job), {"command": _words(_command(job))})
    return {
        "name": LAUNCHER,
        "dependsOn": [{"name": NODE, "status": "Ready"}],
        "template": {
            "metadata": {"labels": dict(ANCESTOR)},
            "spec": {"backoffLimit": job.backoff_limit, "template": template},
        },
    }


def _agents(job: JobSpec) -> dict[str, object]:
    """Return the job of the nodes with torchrun; its agents do not admit a pod that replaces a failed one."""
    program: pod_templates.Container = {"command": pod_templates.torchrun_command(job)}
    template = _of_node(pod_templates.worker(job), {**program, **pod_templates.torchrun_environment(job)})
    spec = {"backoffLimit": 0, "template": template}
    return {"name": NODE, "template": {"metadata": {"labels": dict(ANCESTOR)}, "spec": spec}}


def _of_node(template: pod_templates.PodTemplate, own: pod_templates.Container) -> pod_templates.PodTemplate:
    """Return a pod template for Trainer, whose containers do not restart in place: their output remains as evidence."""
    container: pod_templates.Container = {**template["spec"]["containers"][0], "name": NODE, **own}
    return {"spec": {**template["spec"], "containers": [container], "restartPolicy": "Never"}}


def _command(job: JobSpec) -> list[str]:
    program, *words = pod_templates.mpirun_command(job)
    return [program, *SSH_ARGUMENTS, *words]


def _words(command: Sequence[str]) -> list[str]:
    return ["sh", "-c", _WITH_KEY, "sh", *command]
