"""Check how NVIDIA's GPU Operator gives GPUs to the containers of a job; pure.

From 25.10 on, the operator enables the Container Device Interface (CDI) by default. Broadcom reports that pods then
fail on containerd in guests of ESX (KB 437128). From 26.7 on, a GPUCluster in the place of a ClusterPolicy offers GPUs
through Dynamic Resource Allocation (DRA) only.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ..core.findings import NOTE, WARN, Finding
from .object_fields import labels, part

Object = Mapping[str, Any]
POLICIES = "/apis/nvidia.com/v1/clusterpolicies"
# https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpucluster-reference.html
CLUSTERS = "/apis/nvidia.com/v1alpha1/gpuclusters"
RULE = "gpu_operator"
VENDOR = "nvidia.com/"
CDI_SINCE = (25, 10)
CONTAINERD = "containerd"
# The operator applies one policy or cluster, and gives this state to the others.
IGNORED, DISABLED = "ignored", "disabled"
_PATCH = """kubectl patch clusterpolicies.nvidia.com %s --type merge -p '{"spec": {"cdi": {"enabled": false}}}'"""


def is_needed(needs: Collection[str]) -> bool:
    """Return whether a job requests devices that the operator provides, from the names of its resources."""
    return any(name.startswith(VENDOR) for name in needs)


def findings(policies: Sequence[Object], nodes: Sequence[Object]) -> Iterator[Finding]:
    """Yield a finding for the policy in force if it uses CDI, and if these nodes have containerd."""
    runtimes = {_name(node): _runtime(node) for node in nodes}
    found = ", ".join(
        f"{name} {runtime}" for name, runtime in sorted(runtimes.items()) if runtime.startswith(CONTAINERD)
    )
    for policy in policies:
        if found and part(policy, "status").get("state") != IGNORED and uses_cdi(policy):
            text = (
                "the GPU Operator gives GPUs to pods through CDI, and on containerd in guests of ESX pods can fail "
                f"with 'unresolvable CDI devices' ({found}; Broadcom KB 437128): disable CDI with "
                f"{_PATCH % shlex.quote(_name(policy))}"
            )
            yield Finding(WARN, RULE, _name(policy), text)


def cluster_findings(clusters: Sequence[Object]) -> Iterator[Finding]:
    """Yield a finding for the GPUCluster in force: jobs request resources, which it does not offer."""
    for cluster in clusters:
        if part(cluster, "status").get("state") not in (IGNORED, DISABLED):
            text = (
                "the GPU Operator offers the GPUs of this cluster through DRA and not as nvidia.com/gpu, which pods "
                "request: use a ClusterPolicy, with NVIDIA's device plugin, in its place"
            )
            yield Finding(WARN, RULE, _name(cluster), text)


def unread(cause: str) -> Finding:
    """Return the finding for policies that this account cannot read."""
    text = (
        f"CDI was not checked, because this account cannot read the policies of the GPU Operator ({cause}): give it "
        "list on clusterpolicies and gpuclusters of nvidia.com"
    )
    return Finding(NOTE, RULE, "ClusterPolicy", text)


def uses_cdi(policy: Object) -> bool:
    """Return whether containers get their GPUs through CDI under a policy.

    Before 25.10, CDI was only the default of all containers with ``default`` too, and both were disabled unless set.
    """
    cdi = part(part(policy, "spec"), "cdi")
    if (0, 0) < _version(policy) < CDI_SINCE:
        return cdi.get("enabled") is True and cdi.get("default") is True
    return cdi.get("enabled") is not False


def _version(policy: Object) -> tuple[int, int]:
    """Return the operator's version from the label of its Helm chart; (0, 0) without one."""
    numbers = re.match(r"v?(\d+)\.(\d+)", str(labels(policy).get("app.kubernetes.io/version") or ""))
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


def _runtime(node: Object) -> str:
    return str(part(part(node, "status"), "nodeInfo").get("containerRuntimeVersion") or "").replace("://", " ")


def _name(thing: Object) -> str:
    return str(part(thing, "metadata").get("name") or "")
