"""Objects of Kubernetes, which answer the modules of kubernetes.core that read and patch them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.fakes.kubernetes import merged

HELD = "dml.vsphere/kept-for"


def node(name: str, *, is_ready: bool = True, gpus: int = 1, **spec: Any) -> dict[str, Any]:
    """Return a node."""
    ready = {"type": "Ready", "status": "True" if is_ready else "Unknown", "message": "Kubelet stopped posting status."}
    status = {"conditions": [ready], "allocatable": {"nvidia.com/gpu": str(gpus)}}
    return {"kind": "Node", "metadata": {"name": name}, "spec": spec, "status": status}


def queue(policy: str = "None", pending: int = 0) -> list[dict[str, Any]]:
    """Return the queue ``research`` and the one behind it."""
    local = {"kind": "LocalQueue", "metadata": {"name": "research"}, "spec": {"clusterQueue": "gpus"}}
    status = {"pendingWorkloads": pending}
    return [
        local,
        {"kind": "ClusterQueue", "metadata": {"name": "gpus"}, "spec": {"stopPolicy": policy}, "status": status},
    ]


class Objects:
    """Objects by kind and name; ``writes`` has the kind and the name of each that was patched.

    ``unknown`` are kinds that the API server does not know, such as those of operators while it starts.
    """

    def __init__(self, *objects: dict[str, Any]) -> None:
        self.found = {(one["kind"], one["metadata"]["name"]): one for one in objects}
        self.writes: list[tuple[str, str]] = []
        self.unknown: set[str] = set()

    def here(self, module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a module."""
        return self.read(options) if module.endswith("_info") else self.patch(options)

    def read(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the objects of a kind, or one of them, as kubernetes.core answers."""
        if options["kind"] in self.unknown:
            why = f'Failed to find API for resource with apiVersion "{options["api_version"]}"'
            return {"resources": [], "api_found": False, "msg": why}
        named = options.get("name")
        found = [one for (kind, name), one in self.found.items() if kind == options["kind"] and named in (None, name)]
        return {"resources": found, "api_found": True}

    def patch(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Change an existing object."""
        given = options["definition"]
        key = (given["kind"], given["metadata"]["name"])
        assert options["state"] == "patched" and options["merge_type"] == ["merge"] and key in self.found
        self.found[key] = merged(self.found[key], given)
        self.writes.append(key)
        return {"changed": True}

    def spec(self, kind: str, name: str) -> dict[str, Any]:
        """Return the spec of an object."""
        return dict(self.found[kind, name]["spec"])

    @property
    def kept(self) -> list[str]:
        """Return the names of the objects that a window keeps."""
        return sorted(
            name for (_kind, name), one in self.found.items() if HELD in one["metadata"].get("annotations", {})
        )
