"""A worker as a node of Kubernetes: its labels from the proofs of other roles, and faults that block training."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.json_values import mapping

PREFIX, LONGEST = "dml.vsphere/", 63
UNLIMITED = "unlimited"
# The soft and the hard limit in the kernel's format.
MEMLOCK = re.compile(r"^Max locked memory +(\S+) +(\S+)", re.MULTILINE)
_ODD = re.compile(r"[^A-Za-z0-9_.-]+")

Values = Mapping[str, Any]


def facts(found: Values, desired: Values) -> dict[str, Any]:
    """Return whether the node exists, its desired labels, and the active memory limit."""
    node, memlock = _part(found["node"], "metadata"), _memlock(found["limits"])
    node_info = _part(_part(found["node"], "status"), "nodeInfo")
    return {
        "is_missing": not node,
        "is_stale": bool(memlock) and memlock != _desired_limit(desired),
        "gpus": len(_gpus(found["local"])),
        "labels": labels(found["local"]),
        "memlock": memlock,
        "version": str(node_info.get("kubeletVersion") or ""),
        "runtime": str(node_info.get("containerRuntimeVersion") or ""),
    }


def labels(local: Values) -> dict[str, str]:
    """Return the labels from the proofs of the roles for GPUs and RDMA; without a proof there is no label."""
    gpus, rdma = _gpus(local), _proof(local, "rdma")
    values: dict[str, Any] = {}
    if gpus:
        values.update({"gpu": gpus[0].get("name"), "gpus": len(gpus)})
    if rdma:
        devices = rdma["devices"]
        mtu = min(device["mtu"] for device in devices)
        values.update({"rdma-device": devices[0]["device"], "rdma-devices": len(devices), "rdma-mtu": mtu})
    every = {f"{PREFIX}{name}": _value(value) for name, value in values.items() if value is not None}
    return {name: value for name, value in every.items() if value}


def misfits(found: Values, desired: Values) -> list[str]:
    if not _part(found["node"], "metadata"):
        return [f"Kubernetes has no node {desired['name']}: let the worker join, or set kubernetes_node_name."]
    return [*_of_runtime(found, desired), *_of_devices(found), *_of_node(found, desired)]


def _of_runtime(found: Values, desired: Values) -> Iterator[str]:
    there, limit = _memlock(found["limits"]), _desired_limit(desired)
    if not there:
        yield f"The service {desired['runtime']} does not run."
    elif there != limit:
        yield f"Containers may lock {there} bytes of memory, not {limit}."


def _of_devices(found: Values) -> Iterator[str]:
    rdma = _proof(found["local"], "rdma")
    if rdma and not found["devices"]:
        yield f"The RDMA device {rdma['devices'][0]['device']} has no /dev/infiniband/uverbs*, which pods need."


def _of_node(found: Values, requested: Values) -> Iterator[str]:
    status = _part(found["node"], "status")
    conditions = status.get("conditions") or []
    ready: Values = next((condition for condition in conditions if condition.get("type") == "Ready"), {})
    if ready.get("status") != "True":
        yield f"The node is not ready: {ready.get('message') or 'its kubelet has not reported'}."
    there = _part(_part(found["node"], "metadata"), "labels")
    own, desired = {name: value for name, value in there.items() if name.startswith(PREFIX)}, labels(found["local"])
    for name in sorted({*own, *desired}):
        if own.get(name) != desired.get(name):
            yield f"Its label {name} is {own.get(name, 'missing')}, not {desired.get(name, 'missing')}."
    offered = _part(status, "allocatable")
    missing = [name for name in requested["resources"] if str(offered.get(name) or "0") == "0"]
    if missing:
        yield f"The node offers no {' and no '.join(missing)}: check that the device plugin runs there."


def _memlock(text: str) -> str:
    """Return the active hard limit; empty if no process reported one."""
    limits = MEMLOCK.search(text)
    return limits[2] if limits else ""


def _desired_limit(desired: Values) -> str:
    return str(desired["memlock"])


def _gpus(local: Values) -> Sequence[Values]:
    return [gpu for gpu in _proof(local, "gpu_driver").get("gpus") or [] if isinstance(gpu, Mapping)]


def _proof(local: Values, role: str) -> Values:
    proof = _part(local, f"dml_{role}")
    return proof if proof.get("proven") else {}


def _value(value: object) -> str:
    """Return a value with only the characters that Kubernetes allows in a label."""
    return _ODD.sub("-", str(value))[:LONGEST].strip("-_.")


def _part(thing: Values, key: str) -> Values:
    return mapping(thing.get(key))
