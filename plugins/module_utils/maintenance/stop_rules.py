"""The rules that stop a rolling change before the next hosts leave service, and how many may be out of service."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.findings import STOP, Finding, FindingRecord, as_dicts, listed
from .cluster_facts import ClusterState, ProfileSlots

CONNECTED = "connected"
# A leaving host that another user has taken out of service.
TAKEN_OUT = "taken_out"


@dataclass(frozen=True)
class LeavingHosts:
    """The hosts that leave service next, and the number that may be out of service at once."""

    hosts: tuple[str, ...] = ()
    most: int = 1


def stops(cluster: ClusterState, leaving: LeavingHosts) -> list[FindingRecord]:
    """Return the stop rules that apply, each with ``rule``, ``object`` and ``text``."""
    rules = (_alarms, _resync, _strangers, _silent, _too_many, _ha, _slots, _tasks, _remediations)
    return as_dicts(finding for rule in rules for finding in rule(cluster, leaving))


def _ours(cluster: ClusterState, leaving: LeavingHosts) -> set[str]:
    """Return the hosts that this collection took or will take out of service, which causes their alarms."""
    return {host["host"] for host in cluster["out_of_service"] if host["ours"]} | set(leaving.hosts)


def _alarms(cluster: ClusterState, leaving: LeavingHosts) -> Iterator[Finding]:
    for alarm in cluster["alarms"]:
        if alarm["status"] == "red" and not alarm["acknowledged"] and alarm["object"] not in _ours(cluster, leaving):
            text = f"the alarm {alarm['alarm']!r} is red since {alarm['since']}; remove its cause or acknowledge it"
            yield Finding(STOP, "red_alarm", alarm["object"], text)


def _resync(cluster: ClusterState, _leaving: LeavingHosts) -> Iterator[Finding]:
    left = cluster["vsan"]["resync_bytes"]
    if left:
        text = f"vSAN is resyncing, {left / 2**30:.1f} GiB are left; wait until that ends"
        yield Finding(STOP, "vsan_resync", cluster["name"], text)


def _strangers(cluster: ClusterState, leaving: LeavingHosts) -> Iterator[Finding]:
    """Yield the hosts that other users took out of service; a change would interfere with their work."""
    lost = {finding.object for finding in _silent(cluster, leaving)}
    for host in cluster["out_of_service"]:
        if host["ours"] or host["host"] in lost:
            continue
        by = f" through {host['by']}" if host["by"] else ""
        text = f"it is out of service ({host['why']}){by}, and not by a rollout; return it to service first"
        rule = TAKEN_OUT if host["host"] in leaving.hosts else "out_of_service"
        yield Finding(STOP, rule, host["host"], text)


def _silent(cluster: ClusterState, leaving: LeavingHosts) -> Iterator[Finding]:
    """Yield the hosts that do not respond, such as after a reboot: their machines may have failed, or may restart.

    Accepting hosts that other users took out of service does not accept these.
    """
    for host in cluster["hosts"]:
        if host["host"] not in leaving.hosts and host["connection"] != CONNECTED:
            text = f"it does not respond ({host['connection']}); check its console"
            yield Finding(STOP, "not_responding", host["host"], text)


def _out(cluster: ClusterState, leaving: LeavingHosts) -> list[str]:
    return sorted({host["host"] for host in cluster["out_of_service"]} | set(leaving.hosts))


def _too_many(cluster: ClusterState, leaving: LeavingHosts) -> Iterator[Finding]:
    out = _out(cluster, leaving)
    if leaving.hosts and len(out) > leaving.most:
        text = f"{len(out)} hosts would be out of service ({listed(out)}), but only {leaving.most} may be"
        yield Finding(STOP, "max_out_of_service", cluster["name"], text)


def _ha(cluster: ClusterState, leaving: LeavingHosts) -> Iterator[Finding]:
    bound, out = by_ha(cluster), _out(cluster, leaving)
    if leaving.hosts and bound and len(out) > bound[0]:
        text = f"{bound[1]} and {len(out)} would be out of service ({listed(out)}); return hosts to service first"
        yield Finding(STOP, "ha_capacity", cluster["name"], text)


def _slots(cluster: ClusterState, leaving: LeavingHosts) -> Iterator[Finding]:
    for profile in lacking_slots(cluster, leaving.hosts):
        text = f"the other hosts in service have too few free places for the {profile} of {listed(leaving.hosts)}"
        yield Finding(STOP, "gpu_slots", cluster["name"], f"{text}; power workers off or add a host")


def _tasks(cluster: ClusterState, leaving: LeavingHosts) -> Iterator[Finding]:
    for task in cluster["tasks"]:
        if task["object"] in leaving.hosts and not task["ours"]:
            text = f"the task {task['task']} of {task['user']} runs on it; wait until it ends"
            yield Finding(STOP, "running_task", task["object"], text)


def _remediations(cluster: ClusterState, _leaving: LeavingHosts) -> Iterator[Finding]:
    """Yield the remediations by vLCM of hosts that this collection did not empty: they empty and boot hosts too."""
    for remediation in cluster["remediations"]:
        hosts = remediation["hosts"]
        if remediation["error"]:
            yield Finding(
                STOP, "remediation", cluster["name"], f"its remediations are not known: {remediation['error']}"
            )
        elif not hosts or set(hosts) - {host["host"] for host in cluster["out_of_service"] if host["ours"]}:
            by = f" by {remediation['user']}" if remediation["user"] else ""
            of = f" of {listed(sorted(hosts))}" if hosts else ""
            text = f"vLCM applies its image, in a remediation{of}{by}; wait until that ends"
            yield Finding(STOP, "remediation", cluster["name"], text)


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
