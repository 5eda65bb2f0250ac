"""The image of a cluster as a part of a change of its hosts: its plan beside that of their profiles; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..durable.calls import Calls, Result, required
from ..maintenance.rolling_change import HostPlan

Options = Mapping[str, Any]


def plan_image(calls: Calls, cluster: str, image: Options, hosts: Sequence[str]) -> Result:
    """Return the plan of the image and of each host that is to run it; an empty one without an image."""
    if not image:
        return {"hosts": [], "changed": False}
    return required(calls.planned("esxi_image", {"cluster": cluster, **image, "hosts": list(hosts)}))


def compare_image(calls: Calls, cluster: str, image: Options) -> None:
    """Have vLCM compare the hosts with the image that the cluster has, which a killed run may have set."""
    if image:
        required(calls.here("esxi_image", {"cluster": cluster}))


def commit_image(calls: Calls, cluster: str, image: Options) -> bool:
    """Set the image of a cluster, which changes no host, and return whether it was another one."""
    return bool(required(calls.here("esxi_image", {"cluster": cluster, **image}))["changed"])


def reboots_of(calls: Calls, cluster: str, image: Options, hosts: Sequence[str]) -> dict[str, int]:
    """Return how often vLCM will boot each host when it applies the image."""
    planned = plan_image(calls, cluster, image, hosts)["hosts"]
    return {host["host"]: int(host["reboots"]) for host in planned}


def apply_image(calls: Calls, cluster: str, image: Options, hosts: Sequence[str]) -> None:
    required(calls.here("esxi_image", {"cluster": cluster, **image, "hosts": list(hosts)}))


def with_image(hosts: Sequence[HostPlan], image: Result) -> list[Any]:
    """Return the plans of hosts with what the image adds: needs, reboots and reasons."""
    by_host = {entry["host"]: entry for entry in image["hosts"]}
    return [_joined(host, by_host[host["host"]]) if host["host"] in by_host else host.copy() for host in hosts]


def lines(cluster: str, image: Result) -> list[str]:
    """Return the change of the image in words; none if it stays as it is."""
    changes = [part for part in image.get("diff") or [] if part["after_header"] == f"{cluster}: image"]
    return [
        f"the image of cluster {cluster} changes, {key}: {_text(part['before'].get(key))} -> {_text(value)}"
        for part in changes
        for key, value in part["after"].items()
    ]


def _joined(host: HostPlan, image: HostPlan) -> HostPlan:
    if not image["changed"]:
        return host.copy()
    return {
        **host,
        "changed": True,
        "needs": sorted({*host.get("needs", []), *image["needs"]}),
        "reboots": host.get("reboots", 0) + image["reboots"],
        "why": [*image["why"], *host.get("why", [])],
    }


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {version}" for name, version in value.items()) or "none"
    return str(value or "none")
