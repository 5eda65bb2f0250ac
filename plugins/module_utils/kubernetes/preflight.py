"""Check for conditions in a Kubernetes cluster that would end a job while vMotion moves one of its nodes; pure.

Kubernetes 1.35 reacts to a frozen node as follows: it reports the node as not ready 40 to 50 s after the last
heartbeat, and marks the pods for deletion when their toleration has expired; a mark is final. A node that resumes
earlier is ready again within 20 s, and Kubernetes cancels the deletion of its pods.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.findings import NOTE, STOP, WARN, Finding
from . import gpu_operator, seen
from .object_fields import conditions, is_true, labels, part, quantity, several
from .seen import Pod

Object = Mapping[str, Any]
# https://github.com/kubernetes/kubernetes/pull/126287: 50 s since 1.32, 40 s before.
GRACE_SECONDS, GRACE_SINCE, GRACE_BEFORE = 50.0, (1, 32), 40.0
GRACE_OPTION = "--node-monitor-grace-period"
# A node renews its lease every 10 s, so its last heartbeat may be that old when it becomes silent.
HEARTBEAT_SECONDS = 10.0
# From the end of a stun until the node is ready without taints: 15 to 24 s in tests on a slow machine.
RECOVERY_SECONDS = 30.0
DEFAULT_TOLERATION = 300
# The PCI vendor ids of NVIDIA (Mellanox) network adapters and of VMware devices, such as PVRDMA.
MELLANOX, VMWARE = "15b3", "15ad"
SYSTEM = "kube-system"
# The operators of jobs, by the names in their pods' labels.
OPERATORS = {"mpi-operator": "the MPI Operator", "trainer": "Kubeflow Trainer", "jobset": "JobSet"}
CONTROL_PLANE = {"kube-apiserver": "API server", "etcd": "etcd"}
_JOB_LABELS = ("training.kubeflow.org/", "mpi_job_name", "jobset.sigs.k8s.io/")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")


@dataclass(frozen=True)
class ClusterObjects:
    """Objects of a Kubernetes cluster: nodes, pods, their budgets, and the configurations of devices and GPUs."""

    version: str
    nodes: Sequence[Object]
    pods: Sequence[Object] = ()
    budgets: Sequence[Object] = ()
    config_maps: Sequence[Object] = ()
    gpu_policies: Sequence[Object] = ()
    gpu_policies_unread: str = ""  # the cause
    gpu_clusters: Sequence[Object] = ()


def grace(cluster: ClusterObjects) -> float:
    """Return the seconds of silence after which a node is not ready: an option of the control plane, or the default."""
    for pod in cluster.pods:
        if _is_of_system(pod):
            for container in several(part(pod, "spec"), "containers"):
                words = [*_words(container, "command"), *_words(container, "args")]
                given = _duration(_option(words, GRACE_OPTION))
                if given:
                    return given
    return GRACE_SECONDS if version_of(cluster.version) >= GRACE_SINCE else GRACE_BEFORE


def version_of(text: str) -> tuple[int, int]:
    """Return the major and minor number: (1, 35) for ``v1.35.4+vmware.1``; (0, 0) for another text."""
    numbers = re.match(r"v?(\d+)\.(\d+)", text)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


def least_toleration(stun_seconds: float, grace_seconds: float) -> int:
    """Return the seconds for which pods must tolerate a silent node to survive a stun of this length."""
    silent = stun_seconds + RECOVERY_SECONDS - (grace_seconds - HEARTBEAT_SECONDS)
    return max(0, math.ceil(silent))


def toleration(stun_seconds: float) -> int:
    """Return the toleration for the pods of a job: the default of Kubernetes, or more if the stun requires it."""
    return max(DEFAULT_TOLERATION, least_toleration(stun_seconds, GRACE_BEFORE))


def pods_of(cluster: ClusterObjects, namespace: str, job: str, owners: Collection[str]) -> list[Pod]:
    """Return the pods of a job that these UIDs own: another tenant may give a pod the same labels."""
    pods = [pod for pod in cluster.pods if part(pod, "metadata").get("namespace") == namespace]
    return seen.pods_of(job, pods, owners)


def least_tolerated(pods: Sequence[Pod]) -> float | None:
    """Return the seconds for which all of the pods stay on a silent node; None if they stay without limit."""
    return min((pod.tolerates for pod in pods if pod.tolerates is not None), default=None)


@dataclass(frozen=True)
class MovedJob:
    """A job, the nodes of its workers that vMotion moves (``moved``), and its toleration of a stun.

    ``tolerates``: its tolerationSeconds, None for pods that stay without limit. ``needs``: the quantity of each
    extended resource that one of its ``workers`` requests. ``has_pvrdma``: whether its workers have PVRDMA.
    ``at_once``: whether the nodes move at the same time, and not one after the other.
    """

    moved: Sequence[str]
    stun_seconds: float
    tolerates: float | None
    needs: Mapping[str, int] = field(default_factory=dict)
    workers: int = 0
    has_pvrdma: bool = False
    at_once: bool = False


def findings(cluster: ClusterObjects, job: MovedJob) -> list[Finding]:
    nodes = set(job.moved)
    all_findings = [
        *_stuns(cluster, job),
        *_nodes(cluster, nodes),
        *_control_plane(cluster, nodes, job.at_once),
        *_operators(cluster, nodes),
        *_resources(cluster, job.needs, job.workers),
        *_budgets(cluster),
        *_gpu_operator(cluster, nodes),
    ]
    return [*all_findings, *(_vendors(cluster) if job.has_pvrdma else [])]


def _stuns(cluster: ClusterObjects, job: MovedJob) -> Iterator[Finding]:
    seconds, stun = grace(cluster), job.stun_seconds
    names = ", ".join(sorted(job.moved)) or "the job"
    if stun > seconds - HEARTBEAT_SECONDS:
        text = (
            f"a stun may take {stun:g} s, and Kubernetes reports a node as not ready after {seconds:g} s of silence: "
            "expect such events, they do not indicate a fault"
        )
        yield Finding(NOTE, "node_grace", names, text)
    least = least_toleration(stun, seconds)
    if job.tolerates is not None and job.tolerates < least:
        text = (
            f"the job's pods tolerate a silent node for {job.tolerates:g} s (tolerationSeconds), and a stun may "
            f"take {stun:g} s: set {least} s or more, otherwise Kubernetes deletes the pods, and a deletion is final"
        )
        yield Finding(STOP, "toleration", names, text)


def _nodes(cluster: ClusterObjects, moved: set[str]) -> Iterator[Finding]:
    known = {_name(node): node for node in cluster.nodes}
    for name in sorted(moved):
        node = known.get(name)
        if node is None:
            yield Finding(STOP, "node", name, "Kubernetes has no node with this name")
        elif not is_true(conditions(node), "Ready"):
            message = conditions(node).get("Ready", {}).get("message") or "it has not reported its state"
            yield Finding(STOP, "node", name, f"the node is not ready: {message}")
        elif part(node, "spec").get("unschedulable"):
            yield Finding(WARN, "node", name, "the node is cordoned: no pod of a job will start there")


def _control_plane(cluster: ClusterObjects, moved: set[str], at_once: bool) -> Iterator[Finding]:
    for component, words in CONTROL_PLANE.items():
        members = [pod for pod in cluster.pods if _label(pod, "component") == component and _is_of_system(pod)]
        ready = [pod for pod in members if _is_ready(pod)]
        # Without a majority of its members, etcd accepts no writes; API servers replace each other.
        needed = len(members) // 2 + 1 if component == "etcd" else 1
        moving = sum(_node(pod) in moved for pod in ready)
        remain = len(ready) - (moving if at_once else 1)
        for pod in ready:
            if _node(pod) in moved:
                stops = remain < needed
                others = f"{remain} of {len(members)} remain" if len(members) > 1 else "there is no other one"
                why = f"the API does not answer while this node does not, because {others}" if stops else others
                text = f"the {words} of this Kubernetes runs there: {why}"
                yield Finding(STOP if stops else WARN, "control_plane", _node(pod), text)


def _is_of_system(pod: Object) -> bool:
    """Return whether a pod is in the control plane's namespace: other tenants can give their pods the same labels."""
    return str(part(pod, "metadata").get("namespace", SYSTEM)) == SYSTEM


def _is_ready(pod: Object) -> bool:
    """Return whether a pod is ready; a pod that reports no condition counts as ready."""
    ready = conditions(pod).get("Ready", {}).get("status", "True")
    return str(ready) == "True" and str(part(pod, "status").get("phase", "Running")) == "Running"


def _operators(cluster: ClusterObjects, moved: set[str]) -> Iterator[Finding]:
    for pod in cluster.pods:
        name = OPERATORS.get(_label(pod, "app.kubernetes.io/name") or _label(pod, "app"))
        if name and _node(pod) in moved:
            text = f"{name} ({_name(pod)}) runs there: a long stun restarts it, and a running job continues"
            yield Finding(NOTE, "operator", _node(pod), text)


def _resources(cluster: ClusterObjects, needs: Mapping[str, int], workers: int) -> Iterator[Finding]:
    for resource, count in sorted(needs.items()):
        allocatable = {_name(node): part(part(node, "status"), "allocatable") for node in cluster.nodes}
        offers = {name: quantity(quantities.get(resource)) or 0 for name, quantities in allocatable.items()}
        fitting = [name for name, offered in offers.items() if offered >= count]
        if len(fitting) < workers:
            there = ", ".join(f"{name} {offered}" for name, offered in sorted(offers.items()) if offered) or "none"
            text = (
                f"{workers} workers need {count} of it each, and {len(fitting)} nodes have that number ({there}): "
                "check that its device plugin runs there"
            )
            yield Finding(STOP, "resource", resource, text)


def _budgets(cluster: ClusterObjects) -> Iterator[Finding]:
    for budget in cluster.budgets:
        selected = part(part(part(budget, "spec"), "selector"), "matchLabels")
        if any(str(key).startswith(_JOB_LABELS) for key in selected):
            text = "this PodDisruptionBudget blocks drains, but not the deletion of pods on a node that is silent"
            yield Finding(NOTE, "disruption_budget", _name(budget), text)


def _gpu_operator(cluster: ClusterObjects, moved: set[str]) -> Iterator[Finding]:
    if cluster.gpu_policies_unread:
        yield gpu_operator.unread(cluster.gpu_policies_unread)
    yield from gpu_operator.cluster_findings(cluster.gpu_clusters)
    yield from gpu_operator.findings(cluster.gpu_policies, [node for node in cluster.nodes if _name(node) in moved])


def _vendors(cluster: ClusterObjects) -> Iterator[Finding]:
    """Yield the RDMA device plugins that select only adapters of another vendor, if no resource selects PVRDMA."""
    selected = [
        (config, [vendor.lower() for vendor in _words(selector, "vendors")])
        for config in cluster.config_maps
        for text in part(config, "data").values()
        for selector in _selected(text)
    ]
    if any(VMWARE in vendors for _config, vendors in selected):
        return
    for config, vendors in selected:
        if MELLANOX in vendors:
            text = (
                f"it selects RDMA devices of vendor {', '.join(vendors)}, and PVRDMA's is {VMWARE}: add it to "
                "the selector's vendors, otherwise no node offers its PVRDMA device"
            )
            yield Finding(STOP, "rdma_vendor", _name(config), text)


def _selected(text: object) -> Iterator[Object]:
    """Yield the selectors in the configuration of an RDMA or SR-IOV device plugin."""
    try:
        configuration = json.loads(str(text))
    except (ValueError, RecursionError):
        return
    for entry in (*several(configuration, "configList"), *several(configuration, "resourceList")):
        selector = part(entry, "selectors")
        yield from [selector] if selector else several(entry, "selectors")


def _option(words: Sequence[str], option: str) -> str:
    """Return the value of a command-line option, given as one word or as two; empty if the option is missing."""
    for word, following in zip(words, [*words[1:], ""]):
        if word == option:
            return following
        if word.startswith(f"{option}="):
            return word[len(option) + 1 :]
    return ""


def _duration(text: str) -> float:
    """Return the seconds of a duration in Go's format: 90 for ``1m30s``; 0 if the text is not a duration."""
    if not re.fullmatch(f"(?:{_DURATION.pattern})+", text):
        return 0.0
    return sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(text))


def _name(thing: Object) -> str:
    return str(part(thing, "metadata").get("name") or "")


def _node(pod: Object) -> str:
    return str(part(pod, "spec").get("nodeName") or "")


def _label(pod: Object, key: str) -> str:
    return str(labels(pod).get(key) or "")


def _words(thing: Object, key: str) -> list[str]:
    words = thing.get(key)
    return [str(word) for word in words] if isinstance(words, list) else []
