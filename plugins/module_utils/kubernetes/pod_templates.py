"""The pod templates of a training job: the programs of the launcher and of a worker, with their devices and volumes."""

from __future__ import annotations

from typing import Mapping, Sequence, TypedDict

from .job_spec import PLUGIN, PRIVILEGED, TORCHRUN, JobSpec, Volume

INFINIBAND = "/dev/infiniband"
# A worker's sshd changes its root and writes to the audit log. CRI-O grants neither capability by default:
# https://github.com/cri-o/cri-o/blob/main/internal/config/capabilities/capabilities.go
SSHD_RIGHTS = ("AUDIT_WRITE", "SYS_CHROOT")
# Memory that an RDMA adapter reads must be locked: https://github.com/Mellanox/k8s-rdma-shared-dev-plugin.
RDMA_RIGHT = "IPC_LOCK"
SETUP = "setup"
# torchrun marks the lines of ranks as mpirun does with --tag-output: the same reader finds the errors of each rank.
# It does not know which stream a line comes from: https://docs.pytorch.org/docs/stable/elastic/run.html
LINE_PREFIX, RANK_TAG = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "[1,${rank}]<stderr>:"
TOPOLOGY = "kubernetes.io/hostname"
TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class Container(TypedDict, total=False):
    """A container of a pod, in the fields of Kubernetes."""

    name: str
    image: str
    imagePullPolicy: str
    command: Sequence[str]
    env: Sequence[Mapping[str, str]]
    envFrom: Sequence[Mapping[str, Mapping[str, str]]]
    workingDir: str
    securityContext: Mapping[str, object]
    resources: Mapping[str, object]
    volumeMounts: Sequence[Mapping[str, object]]
    readinessProbe: Mapping[str, object]
    terminationMessagePolicy: str


class PodSpec(TypedDict, total=False):
    """The programs of a pod, and where it runs."""

    containers: Sequence[Container]
    initContainers: Sequence[Container]
    restartPolicy: str
    volumes: Sequence[Mapping[str, object]]
    resourceClaims: Sequence[Mapping[str, str]]
    tolerations: Sequence[Mapping[str, object]]
    imagePullSecrets: Sequence[Mapping[str, str]]
    schedulerName: str
    affinity: Mapping[str, object]
    nodeSelector: Mapping[str, str]
    hostNetwork: bool
    dnsPolicy: str


class PodTemplate(TypedDict):
    """The pods that a controller of Kubernetes creates."""

    spec: PodSpec


def launcher(job: JobSpec) -> PodTemplate:
    """Return the pod template of the launcher, which runs mpirun and no rank."""
    container: Container = {**_container(job, "launcher"), "command": mpirun_command(job), **_environment(job)}
    return {"spec": {**_common_spec(job), "containers": [container]}}


def mpirun_command(job: JobSpec) -> list[str]:
    """Return the command of the launcher; the operator passes the hosts, their slots and the access to them to mpirun.

    mpirun reads the values of the environment from its environment, so that neither the manifest nor a list of
    processes shows secrets.
    """
    words = [job.mpirun, "--allow-run-as-root", "-np", str(job.ranks), "--map-by", "slot", "--tag-output"]
    for name in (*job.forward, *job.environment, *job.secrets):
        words += ["-x", name]
    return [*words, *job.mpirun_arguments, *job.command]


def torchrun_command(job: JobSpec) -> list[str]:
    """Return the command of a node, which starts its ranks and copies their output, each line with its rank."""
    return [*job.torchrun, "--tee", "3", "--no-python", *job.command]


def torchrun_environment(job: JobSpec) -> Container:
    """Return the environment of torchrun and of its ranks, and their working directory."""
    environment = _environment(job)
    environment["env"] = [*environment.get("env", []), {"name": LINE_PREFIX, "value": RANK_TAG}]
    if job.folder:
        environment["workingDir"] = job.folder
    return environment


def worker(job: JobSpec) -> PodTemplate:
    """Return the pod template of a worker, in which the operator starts sshd; torchrun needs no rights of sshd."""
    container: Container = {**_container(job, "worker"), "securityContext": _security(job)}
    resources = _resources(job)
    if resources:
        container["resources"] = resources
    volumes, mounts = _volumes(job)
    if mounts:
        container["volumeMounts"] = mounts
    spec: PodSpec = {**_common_spec(job), **_setup(job), "containers": [container]}
    if volumes:
        spec["volumes"] = volumes
    if job.claims:
        claims = [{"name": name, "resourceClaimTemplateName": template} for name, template in job.claims.items()]
        spec["resourceClaims"] = claims
    affinity = {**({"podAntiAffinity": _one_per_node(job)} if job.is_spread else {}), **_node_affinity(job)}
    if affinity:
        spec["affinity"] = affinity
    if job.node_selector:
        spec["nodeSelector"] = dict(job.node_selector)
    if job.host_network:
        spec["hostNetwork"], spec["dnsPolicy"] = True, "ClusterFirstWithHostNet"
    return {"spec": spec}


def _container(job: JobSpec, name: str) -> Container:
    return {"name": name, "image": job.image, "imagePullPolicy": job.pull}


def _environment(job: JobSpec) -> Container:
    """Return the environment of a container; the ranks of a worker get theirs from mpirun."""
    environment: Container = {}
    if job.environment:
        environment["env"] = [{"name": name, "value": str(value)} for name, value in job.environment.items()]
    if job.secrets:
        environment["envFrom"] = [{"secretRef": {"name": job.secret}}]
    return environment


def _setup(job: JobSpec) -> PodSpec:
    """Return the container that runs before the worker; the kubelet reports the end of its output as its message."""
    if not job.setup:
        return {}
    container: Container = {**_container(job, SETUP), "command": list(job.setup), **_environment(job)}
    container["terminationMessagePolicy"] = "FallbackToLogsOnError"
    _all, mounts = _volumes(job, in_setup=True)
    if mounts:
        container["volumeMounts"] = mounts
    return {"initContainers": [container]}


def _common_spec(job: JobSpec) -> PodSpec:
    """Return the part of the pod spec that launcher and workers have in common."""
    seconds = job.toleration_seconds
    spec: PodSpec = {
        "tolerations": [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds} for key in TAINTS
        ]
    }
    if job.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in job.pull_secrets]
    if job.scheduler:
        spec["schedulerName"] = job.scheduler
    return spec


def _one_per_node(job: JobSpec) -> dict[str, object]:
    """Return the affinity for one worker per node: a node is a virtual machine, and vMotion moves each one alone."""
    term = {"topologyKey": TOPOLOGY, "labelSelector": {"matchLabels": job.kind.worker_labels(job.name)}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _node_affinity(job: JobSpec) -> dict[str, object]:
    """Return the nodes that workers may run on: each term names one node, and one of the terms must match."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in job.nodes]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": required} if terms else {}


def _security(job: JobSpec) -> dict[str, object]:
    if job.devices == PRIVILEGED:
        return {"privileged": True}
    rights = [*(SSHD_RIGHTS if job.launcher != TORCHRUN else ()), *([RDMA_RIGHT] if job.devices == PLUGIN else [])]
    return {"capabilities": {"add": sorted(rights)}} if rights else {}


def _resources(job: JobSpec) -> dict[str, object]:
    """Return the resources of a worker; for an extended resource, Kubernetes sets the request to the limit."""
    limits: dict[str, int] = {job.gpu_resource: job.gpus} if job.gpus else {}
    if job.devices == PLUGIN:
        limits[job.rdma_resource] = 1
    resources: dict[str, object] = {"limits": limits} if limits else {}
    if job.requests:
        resources["requests"] = dict(job.requests)
    if job.claims:
        resources["claims"] = [{"name": name} for name in job.claims]
    return resources


def _volumes(job: JobSpec, in_setup: bool = False) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Return the volumes of a worker, and their mounts in its container or in that of the setup."""
    each: list[tuple[str, str, Mapping[str, object], bool]] = []
    if job.devices == PRIVILEGED:
        each.append(("infiniband", INFINIBAND, {"hostPath": {"path": INFINIBAND}}, False))
    if job.shared_memory:
        # NCCL's ranks on one node communicate through shared memory; by default a container has 64 MB of it.
        memory = {"emptyDir": {"medium": "Memory", "sizeLimit": job.shared_memory}}
        each.append(("shared-memory", "/dev/shm", memory, False))  # noqa: S108 - a path of the kernel # nosec B108
    if job.records:
        on_node = {"hostPath": {"path": job.records, "type": "DirectoryOrCreate"}}
        each.append(("records", job.records, on_node if job.records_on_node else {"emptyDir": {}}, False))
    if job.files:
        each.append(("library", job.library, {"configMap": {"name": job.config_map}}, True))
    each += [
        (volume["name"], volume["path"], volume["source"], _is_read_only(volume, in_setup)) for volume in job.volumes
    ]
    volumes: list[dict[str, object]] = [{"name": name, **source} for name, _path, source, _read_only in each]
    mounts: list[dict[str, object]] = [
        {"name": name, "mountPath": path, **({"readOnly": True} if read_only else {})}
        for name, path, _source, read_only in each
    ]
    return volumes, mounts


def _is_read_only(volume: Volume, in_setup: bool) -> bool:
    return bool(volume.get("read_only") or (volume.get("only_setup_writes") and not in_setup))
