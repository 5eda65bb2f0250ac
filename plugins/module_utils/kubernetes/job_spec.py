"""The options of a job on Kubernetes, and the reasons why they are invalid."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Mapping, Sequence, TypedDict

from .job_kinds import APIS, KINDS, TRAINJOB, V2BETA1, JobKind

# The ends of the names of the objects of a job.
SECRET, CONFIG_MAP = "environment", "library"
# How a pod gets the RDMA devices of its node: not at all, with all devices of the node, or through a device plugin.
WITHOUT, PRIVILEGED, PLUGIN = "none", "privileged", "plugin"
DEVICES = (WITHOUT, PRIVILEGED, PLUGIN)
# The program that starts the ranks: one mpirun in a pod without ranks, or torchrun in the pod of each node.
MPIRUN, TORCHRUN = "mpirun", "torchrun"
LAUNCHERS = (MPIRUN, TORCHRUN)
POLICIES = ("None", "Running", "All")
# The options of gang scheduling, and their fields in v2beta1.
GANG = {
    "least": "minAvailable",
    "queue": "queue",
    "priority_class": "priorityClass",
    "timeout": "scheduleTimeoutSeconds",
    "resources": "minResources",
}
PULLS = ("IfNotPresent", "Always", "Never")
LONGEST_LABEL = 63
# The variables that every rank gets from the image of the launcher.
FORWARD = ("PATH", "LD_LIBRARY_PATH")
# A label of RFC 1035: Kubernetes uses it as the name of a pod and as its host name.
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESOURCE = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


class JobError(ValueError):
    """The options of a job are invalid."""


class Volume(TypedDict, total=False):
    """A folder in the pods of workers; its source is in the form of Kubernetes."""

    name: str
    path: str
    source: Mapping[str, object]
    read_only: bool
    only_setup_writes: bool


@dataclass(frozen=True)
class JobSpec:
    """One training job.

    ``command`` is the program of each rank. Every rank gets ``environment``, the values of ``forward`` from the image
    of the launcher, and ``secrets``, which are stored in a Secret. ``slots`` is the number of ranks of a worker, and
    ``gpus`` the number of units of ``gpu_resource`` that it requests; ``claims`` are ResourceClaimTemplates for devices
    of DRA, by the name of the claim. With ``nodes``, workers run only on these nodes.
    ``records`` is the folder of the step records in a worker; with ``records_on_node`` it is also a folder of the node.
    ``files`` are texts for the folder ``library``, by file name. ``setup`` is a command that runs in the pod of each
    worker before the worker, in the same image and with the same volumes. ``torchrun`` is the command of torchrun, and
    ``folder`` the working directory of its ranks.
    """

    name: str
    image: str
    command: Sequence[str]
    workers: int
    namespace: str = "default"
    api: str = V2BETA1
    slots: int = 1
    gpus: int = 0
    gpu_resource: str = "nvidia.com/gpu"
    transport: str = "tcp"
    devices: str = WITHOUT
    rdma_resource: str = "rdma/hca"
    claims: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    forward: Sequence[str] = FORWARD
    launcher: str = MPIRUN
    mpirun: str = "mpirun"
    mpirun_arguments: Sequence[str] = ()
    torchrun: Sequence[str] = ("torchrun",)
    folder: str = ""
    clean_pods: str = "Running"
    is_spread: bool = True
    toleration_seconds: int = 300
    backoff_limit: int = 1
    suspend: bool = False
    gang: Mapping[str, object] = field(default_factory=dict)
    scheduler: str = ""
    queue: str = ""
    nodes: Sequence[str] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    requests: Mapping[str, str] = field(default_factory=dict)
    pull: str = "IfNotPresent"
    pull_secrets: Sequence[str] = ()
    shared_memory: str = "8Gi"
    host_network: bool = False
    records: str = ""
    records_on_node: bool = False
    library: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    volumes: Sequence[Volume] = ()
    setup: Sequence[str] = ()

    @property
    def ranks(self) -> int:
        return self.workers * self.slots

    @property
    def secret(self) -> str:
        return f"{self.name}-{SECRET}"

    @property
    def config_map(self) -> str:
        """Return the name of the job's ConfigMap; the operator creates another one, NAME-config."""
        return f"{self.name}-{CONFIG_MAP}"

    @property
    def kind(self) -> JobKind:
        """Return the kind of the job; an unknown API is refused with the other options."""
        return KINDS.get(self.api, KINDS[V2BETA1])


_KEYS = tuple(option.name for option in fields(JobSpec))
# Annotations are texts here.
_NUMBERS = tuple(option.name for option in fields(JobSpec) if option.type == "int")
_SWITCHES = tuple(option.name for option in fields(JobSpec) if option.type == "bool")
_TRUTH = {"true": True, "yes": True, "false": False, "no": False}


def job_of(options: Mapping[str, object]) -> JobSpec:
    """Return the job for the options; the error lists all options that are invalid."""
    unknown = sorted(set(options) - set(_KEYS))
    if unknown:
        raise JobError(f"the job has unknown options: {', '.join(unknown)}.")
    lacking = [key for key in ("name", "image", "command", "workers") if not options.get(key)]
    if lacking:
        raise JobError(f"the job lacks {', '.join(lacking)}.")
    job = JobSpec(**{key: _converted(key, value) for key, value in options.items()})
    errors = list(_errors(job))
    if errors:
        raise JobError(f"job {job.name!r}: {'; '.join(errors)}.")
    return job


def _converted(key: str, value: object) -> Any:
    """Return a value in its type: a template of ansible-core before 2.19 turns numbers and switches into texts."""
    try:
        if key in _NUMBERS:
            return int(str(value))
        return _TRUTH[value.lower()] if key in _SWITCHES and isinstance(value, str) else value
    except (ValueError, KeyError):
        kind = "a whole number" if key in _NUMBERS else "true or false"
        raise JobError(f"{key} of the job is {value!r}: expected {kind}.") from None


def _errors(job: JobSpec) -> Iterator[str]:
    yield from _invalid_words(job)
    yield from _invalid_scheduling(job)
    yield from _invalid_numbers(job)
    yield from _invalid_devices(job)
    yield from _unsupported(job)
    names = [*job.environment, *job.secrets, *job.forward]
    odd = [name for name in names if not _VARIABLE.fullmatch(str(name))]
    if odd:
        yield f"{', '.join(map(repr, odd))} is not a name of an environment variable"
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        yield f"{', '.join(twice)} is given twice among environment, secrets and forward"


def _invalid_words(job: JobSpec) -> Iterator[str]:
    longest = job.kind.longest_pod(job.name, job.workers)
    if not _NAME.fullmatch(job.name) or len(longest) > LONGEST_LABEL:
        yield (
            "the name must consist of lower-case letters, digits and dashes, start with a letter, and be short: the "
            f"last pod is called {longest!r}, and {LONGEST_LABEL} characters are allowed"
        )
    choices = (("api", APIS), ("clean_pods", POLICIES), ("devices", DEVICES), ("pull", PULLS), ("launcher", LAUNCHERS))
    for key, allowed in choices:
        if getattr(job, key) not in allowed:
            yield f"{key} is {getattr(job, key)!r}: expected one of {', '.join(allowed)}"
    for key in ("gpu_resource", "rdma_resource"):
        if not _RESOURCE.fullmatch(getattr(job, key)):
            yield f"{key} is {getattr(job, key)!r}: expected a name such as nvidia.com/gpu"
    if job.files and not job.library:
        yield "files are given, but no folder for them: set library"


def _invalid_scheduling(job: JobSpec) -> Iterator[str]:
    if job.queue and not (_NAME.fullmatch(job.queue) and len(job.queue) <= LONGEST_LABEL):
        yield f"queue is {job.queue!r}: expected the name of a LocalQueue"
    strange = sorted(set(job.gang) - set(GANG))
    if strange:
        yield f"gang has {', '.join(strange)}: expected some of {', '.join(GANG)}"


def _invalid_numbers(job: JobSpec) -> Iterator[str]:
    least = {"workers": 1, "slots": 1, "gpus": 0, "toleration_seconds": 0, "backoff_limit": 0}
    for key, number in least.items():
        if getattr(job, key) < number:
            yield f"{key} is {getattr(job, key)}: expected {number} or more"


def _invalid_devices(job: JobSpec) -> Iterator[str]:
    if job.transport == "rdma" and job.devices == WITHOUT:
        yield "transport is 'rdma', but the pods get no RDMA device: set devices to 'plugin' or 'privileged'"
    for name in (*job.claims, *job.claims.values()):
        if not _NAME.fullmatch(str(name)):
            yield f"claims contain {name!r}: expected the names of claims with those of their ResourceClaimTemplates"
    if 0 < job.gpus < job.slots:
        yield f"{job.slots} ranks of a worker share {job.gpus} of {job.gpu_resource}: request one for each, or none"


def _unsupported(job: JobSpec) -> Iterator[str]:
    """Yield the options that the kind or the launcher of a job does not support."""
    if job.launcher == TORCHRUN and job.api != TRAINJOB:
        yield f"the launcher is torchrun, which {job.api} does not support: set api to {TRAINJOB}"
    if job.launcher == TORCHRUN and job.mpirun_arguments:
        yield f"mpirun_arguments are given, but the launcher is torchrun: remove them, or set launcher to {MPIRUN}"
    # Trainer schedules a gang in its runtime.
    unsupported = {"gang": bool(job.gang), f"clean_pods {job.clean_pods}": job.clean_pods != "Running"}
    given = [key for key, is_given in unsupported.items() if is_given]
    if job.api == TRAINJOB and given:
        yield f"{job.api} does not support {', '.join(given)}: use v2beta1"
