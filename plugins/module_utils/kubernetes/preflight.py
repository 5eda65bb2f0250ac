# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""What in a Kubernetes would end a job while the virtual machine of one of its nodes is moved; pure.

Seen on Kubernetes 1.35 with nodes that were frozen: a node is called not ready 40 to 50 s after its last word, its pods
are marked for deletion when they have tolerated that for long enough, and a mark is not taken back. A node that goes on
is ready again within 20 s, and then the deletion of its pods is cancelled.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.findings import NOTE, STOP, WARN, Finding
from . import seen
from .parts import conditions, is_true, labels, part, several, whole
from .seen import Pod

Object = Mapping[str, Any]
# https://github.com/kubernetes/kubernetes/pull/126287: 50 s since 1.32, 40 s before.
GRACE_SECONDS, GRACE_SINCE, GRACE_BEFORE = 50.0, (1, 32), 40.0
GRACE_OPTION = "--node-monitor-grace-period"
# A node renews its lease every 10 s, so that its last word may be that old when it falls silent.
HEARTBEAT_SECONDS = 10.0
# From the end of a stun until the node is ready and its taints are gone: 15 to 24 s were seen, on a slow machine.
RECOVERY_SECONDS = 30.0
DEFAULT_TOLERATION = 300
# The PCI vendors of NVIDIA's (Mellanox') cards and of VMware's devices, PVRDMA among them.
MELLANOX, VMWARE = "15b3", "15ad"
SYSTEM = "kube-system"
CONTROL_PLANE = {"kube-apiserver": "API server", "etcd": "etcd"}
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")


@dataclass(frozen=True)
class Site:
    """What was read of a Kubernetes: its version, its nodes, all its pods, and what may hold devices or pods back."""

    version: str
    nodes: Sequence[Object]
    pods: Sequence[Object] = ()
    budgets: Sequence[Object] = ()
    config_maps: Sequence[Object] = ()


def grace(site: Site) -> float:
    """Return the seconds of silence after which a node is not ready: the control plane's option, or its default."""
    for pod in site.pods:
        if _is_of_system(pod):
            for container in several(part(pod, "spec"), "containers"):
                words = [*_words(container, "command"), *_words(container, "args")]
                given = _duration(_option(words, GRACE_OPTION))
                if given:
                    return given
    return GRACE_SECONDS if version_of(site.version) >= GRACE_SINCE else GRACE_BEFORE


def version_of(text: str) -> tuple[int, int]:
    """``v1.35.4+vmware.1`` -> (1, 35)."""
    found = re.match(r"v?(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def least_toleration(stun_seconds: float, grace_seconds: float) -> int:
    """The seconds that pods must tolerate a silent node for, so that a stun of this length costs none of them."""
    silent = stun_seconds + RECOVERY_SECONDS - (grace_seconds - HEARTBEAT_SECONDS)
    return max(0, math.ceil(silent))


def toleration(stun_seconds: float) -> int:
    """The seconds that a job's pods are given: Kubernetes' own, or more where the stun needs it."""
    return max(DEFAULT_TOLERATION, least_toleration(stun_seconds, GRACE_BEFORE))


def pods_of(site: Site, namespace: str, job: str) -> list[Pod]:
    """The pods of a job."""
    return seen.pods_of(job, [pod for pod in site.pods if part(pod, "metadata").get("namespace") == namespace])


def least_tolerated(pods: Sequence[Pod]) -> float | None:
    """The seconds for which every one of the pods stays on a node that is silent; None where all stay for ever."""
    return min((pod.tolerates for pod in pods if pod.tolerates is not None), default=None)


@dataclass(frozen=True)
class Desired:
    """A job whose workers' nodes are ``moved``, and how it stands a stun.

    ``tolerates``: its tolerationSeconds, None for pods that stay for ever. ``needs``: what one of its ``workers`` takes
    of each extended resource. ``has_pvrdma``: whether its workers have PVRDMA.
    """

    moved: Sequence[str]
    stun_seconds: float
    tolerates: float | None
    needs: Mapping[str, int] = field(default_factory=dict)
    workers: int = 0
    has_pvrdma: bool = False


def findings(site: Site, desired: Desired) -> list[Finding]:
    """All findings for a job."""
    nodes = set(desired.moved)
    found = [
        *_stuns(site, desired),
        *_nodes(site, nodes),
        *_control_plane(site, nodes),
        *_operators(site, nodes),
        *_resources(site, desired.needs, desired.workers),
        *_budgets(site),
    ]
    return [*found, *(_vendors(site) if desired.has_pvrdma else [])]


def _stuns(site: Site, desired: Desired) -> Iterator[Finding]:
    seconds, stun = grace(site), desired.stun_seconds
    names = ", ".join(sorted(desired.moved)) or "the job"
    if stun > seconds - HEARTBEAT_SECONDS:
        text = (
            f"a stun may take {stun:g} s, and Kubernetes calls a node not ready after {seconds:g} s of silence: its "
            "events will say so, which is no fault"
        )
        yield Finding(NOTE, "node_grace", names, text)
    least = least_toleration(stun, seconds)
    if desired.tolerates is not None and desired.tolerates < least:
        text = (
            f"the job's pods tolerate a silent node for {desired.tolerates:g} s (tolerationSeconds), and a stun may "
            f"take {stun:g} s: give {least} s or more, else Kubernetes deletes them, which it does not take back"
        )
        yield Finding(STOP, "toleration", names, text)


def _nodes(site: Site, moved: set[str]) -> Iterator[Finding]:
    known = {_name(node): node for node in site.nodes}
    for name in sorted(moved):
        node = known.get(name)
        if node is None:
            yield Finding(STOP, "node", name, "Kubernetes has no node of this name")
        elif not is_true(conditions(node), "Ready"):
            said = conditions(node).get("Ready", {}).get("message") or "it has not told of itself"
            yield Finding(STOP, "node", name, f"the node is not ready: {said}")
        elif part(node, "spec").get("unschedulable"):
            yield Finding(WARN, "node", name, "the node is cordoned: no pod of a job will start there")


def _control_plane(site: Site, moved: set[str]) -> Iterator[Finding]:
    for component, words in CONTROL_PLANE.items():
        members = [pod for pod in site.pods if _label(pod, "component") == component and _is_of_system(pod)]
        ready = [pod for pod in members if _is_ready(pod)]
        # Without a majority of its members etcd takes no writes; the other servers stand in for each other.
        needed = len(members) // 2 + 1 if component == "etcd" else 1
        for pod in ready:
            if _node(pod) in moved:
                stops = len(ready) - 1 < needed
                others = f"{len(ready) - 1} of {len(members)} go on" if len(members) > 1 else "there is no other one"
                why = f"while it is stunned the API does not answer, because {others}" if stops else others
                text = f"the {words} of this Kubernetes runs there, and the node is to be moved: {why}"
                yield Finding(STOP if stops else WARN, "control_plane", _node(pod), text)


def _is_of_system(pod: Object) -> bool:
    """Return whether a pod is of the control plane's namespace: any other tenant can give its pods the same labels."""
    return str(part(pod, "metadata").get("namespace", SYSTEM)) == SYSTEM


def _is_ready(pod: Object) -> bool:
    """Return whether a pod serves; a pod that reports no condition counts."""
    ready = conditions(pod).get("Ready", {}).get("status", "True")
    return str(ready) == "True" and str(part(pod, "status").get("phase", "Running")) == "Running"


def _operators(site: Site, moved: set[str]) -> Iterator[Finding]:
    for pod in site.pods:
        is_operator = "mpi-operator" in (_label(pod, "app"), _label(pod, "app.kubernetes.io/name"))
        if is_operator and _node(pod) in moved:
            text = f"the MPI Operator ({_name(pod)}) runs there: a long stun makes it start anew, which a job outlives"
            yield Finding(NOTE, "operator", _node(pod), text)


def _resources(site: Site, needs: Mapping[str, int], workers: int) -> Iterator[Finding]:
    for resource, count in sorted(needs.items()):
        offers = {_name(node): _quantity(node, resource) for node in site.nodes}
        fitting = [name for name, offered in offers.items() if offered >= count]
        if len(fitting) < workers:
            there = ", ".join(f"{name} {offered}" for name, offered in sorted(offers.items()) if offered) or "none"
            text = (
                f"{workers} workers need {count} of it each, and {len(fitting)} nodes have so many ({there}): look "
                "whether its device plugin runs there"
            )
            yield Finding(STOP, "resource", resource, text)


def _budgets(site: Site) -> Iterator[Finding]:
    for budget in site.budgets:
        selected = part(part(part(budget, "spec"), "selector"), "matchLabels")
        if any(str(key).startswith("training.kubeflow.org/") or key == "mpi_job_name" for key in selected):
            text = "this PodDisruptionBudget holds drains back, and not the deletion of pods of a node that is silent"
            yield Finding(NOTE, "disruption_budget", _name(budget), text)


def _vendors(site: Site) -> Iterator[Finding]:
    """Yield the RDMA device plugins that take only cards of another vendor, if no resource takes PVRDMA's devices."""
    selected = [
        (config, [vendor.lower() for vendor in _words(selector, "vendors")])
        for config in site.config_maps
        for text in part(config, "data").values()
        for selector in _selected(text)
    ]
    if any(VMWARE in vendors for _config, vendors in selected):
        return
    for config, vendors in selected:
        if MELLANOX in vendors:
            text = (
                f"it selects RDMA devices of vendor {', '.join(vendors)}, and PVRDMA's is {VMWARE}: add it to "
                "the selector's vendors, else no node offers its PVRDMA device"
            )
            yield Finding(STOP, "rdma_vendor", _name(config), text)


def _selected(text: object) -> Iterator[Object]:
    """The selectors in the configuration of an RDMA or SR-IOV device plugin."""
    try:
        told = json.loads(str(text))
    except (ValueError, RecursionError):
        return
    for entry in (*several(told, "configList"), *several(told, "resourceList")):
        one = part(entry, "selectors")
        yield from [one] if one else several(entry, "selectors")


def _option(words: Sequence[str], option: str) -> str:
    """Return the value of an option of a command line, given as one word or as two; empty if it is not there."""
    for word, following in zip(words, [*words[1:], ""]):
        if word == option:
            return following
        if word.startswith(f"{option}="):
            return word[len(option) + 1 :]
    return ""


def _duration(text: str) -> float:
    """A duration as Go writes it: ``1m30s`` is 90; 0 for what is none."""
    if not re.fullmatch(f"(?:{_DURATION.pattern})+", text):
        return 0.0
    return sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(text))


def _quantity(node: Object, resource: str) -> int:
    return whole(part(part(node, "status"), "allocatable").get(resource)) or 0


def _name(thing: Object) -> str:
    return str(part(thing, "metadata").get("name") or "")


def _node(pod: Object) -> str:
    return str(part(pod, "spec").get("nodeName") or "")


def _label(pod: Object, key: str) -> str:
    return str(labels(pod).get(key) or "")


def _words(thing: Object, key: str) -> list[str]:
    found = thing.get(key)
    return [str(one) for one in found] if isinstance(found, list) else []
