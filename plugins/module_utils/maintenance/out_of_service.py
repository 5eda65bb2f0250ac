"""The number of hosts of a cluster that may be out of service at once, and what limits that number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .cluster_facts import ClusterState, ProfileSlots


def allowed(cluster: ClusterState) -> tuple[int, str]:
    """Return the lowest of several limits, and the sentence that names it."""
    bounds = [by_count(cluster), by_ha(cluster), by_slots(cluster)]
    return min((bound for bound in bounds if bound is not None), key=lambda bound: bound[0])


def by_count(cluster: ClusterState) -> tuple[int, str]:
    """Return the limit that keeps one host in service."""
    count = len(cluster["hosts"])
    return max(count - 1, 0), f"the cluster has {_hosts(count)}"


def by_ha(cluster: ClusterState) -> tuple[int, str] | None:
    """Return the limit from the hosts that HA keeps free for failures; None if HA keeps no host free."""
    ha = cluster["ha"]
    if not (ha["enabled"] and ha["admission_control"]) or ha["failover_hosts"] is None:
        return None
    return ha["failover_hosts"], f"HA admission control keeps {_hosts(ha['failover_hosts'])} free for failures"


def by_slots(cluster: ClusterState) -> tuple[int, str] | None:
    """Return the limit up to which the other hosts can take the virtual GPUs, whichever hosts leave."""
    bounds = [_by_profile(slots) for slots in cluster["gpu_slots"] if slots["used"]]
    return min(bounds, key=lambda bound: bound[0]) if bounds else None


def _by_profile(slots: ProfileSlots) -> tuple[int, str]:
    """Return the limit for one profile. Leaving hosts lose their free slots too: those with most come first."""
    free, taken, count = slots["free"], 0, 0
    for places in sorted((host["used"] + host["free"] for host in slots["hosts"]), reverse=True):
        taken += places
        if taken > free:
            break
        count += 1
    return count, f"{free} places for {slots['profile']} are free"


def lacking_slots(cluster: ClusterState, leaving: Iterable[str]) -> list[str]:
    """Return the profiles for which the leaving hosts use more slots than the other hosts have free."""
    gone = set(leaving)
    return [
        slots["profile"]
        for slots in cluster["gpu_slots"]
        if sum(host["used"] for host in slots["hosts"] if host["host"] in gone)
        > sum(host["free"] for host in slots["hosts"] if host["host"] not in gone)
    ]


def failover_hosts(policy: str, hosts: int, details: Mapping[str, Any]) -> int | None:
    """Return the number of hosts that an admission control policy keeps free; None if the policy does not define it."""
    if policy == "hosts":
        return int(details["level"])
    if policy == "dedicated":
        return len(details["hosts"])
    percents: Sequence[int] = [one for one in (details.get("cpu"), details.get("memory")) if one is not None]
    return int(hosts * min(percents) / 100) if policy == "percent" and percents else None


def _hosts(count: int) -> str:
    return "1 host" if count == 1 else f"{count} hosts"
