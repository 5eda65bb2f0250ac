# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The workers and hosts of a cluster as the planner of waves needs them: room, links, expected stuns and rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.versions import numbers
from ...hosts import network
from ...maintenance import placements
from ...vsphere import properties
from ...vsphere.inventory import Host
from ...workers import candidate_hosts
from ...workers.capacity import machines
from ...workers.machine import Machine
from ...workers.worker_cluster import WorkerCluster
from ..checks import stun_estimate
from ..plan.fleet import Fleet, HostRoom, MovingWorker, most_moves
from . import move_facts
from .rolling_moves import ClusterWorkers

HOST = (*network.PATHS, "config.product.apiVersion", "summary.hardware.numCpuCores")
RULES = "configurationEx"
VMOTION = "vmotion"
# vMotion starts the switchover of a virtual machine without a vGPU when it expects less than a second.
SECONDS_WITHOUT_VGPU = 1.0


@dataclass(frozen=True)
class Rules:
    """The stun that the job tolerates in sum, and whether each host may have at most one worker."""

    budget_s: float
    one_per_host: bool


@dataclass(frozen=True)
class _Target:
    """The properties of a host on which the stun of a worker that moves there depends."""

    megabits: int
    version: tuple[int, ...]
    estimates: Mapping[str, list[dict[str, int]]]


def read_fleet(cluster: WorkerCluster, workers: ClusterWorkers, rules: Rules) -> Fleet:
    """Return the fleet; all its workers count as those of one job."""
    hosts = _hosts(cluster)
    links = {name: vmotion_megabits(host) for name, host in hosts.items()}
    targets = dict(_targets(cluster, workers, hosts, links))
    names = {cluster.machines[name].ref._moId: name for name in workers.at}
    config = properties.read_many(cluster.session, [cluster.ref], (RULES,))[cluster.ref._moId].get(RULES)
    allowed = workers.allowed()
    for rule in placements.must_run(config, {key: str(values["name"]) for key, values in cluster.hosts.items()}):
        allowed.update({names[key]: allowed[names[key]] & rule.hosts for key in rule.vms if key in names})
    stuns: dict[Any, dict[str, float | None]] = {}
    return Fleet(
        {name: _worker(cluster.machines[name], workers, allowed[name], (targets, stuns)) for name in workers.at},
        dict(_rooms(cluster, workers, hosts, links)),
        rules.budget_s,
        tuple(frozenset(names[key] for key in rule.vms if key in names) for rule in placements.apart(config)),
        rules.one_per_host,
    )


def vmotion_megabits(host: Host) -> int | None:
    """Return the speed of the slowest connected uplink that carries vMotion; None if it is not known."""
    uplinks, switches = network.uplinks(host, {}), network.switches(host)
    carrying = {adapter["switch"] for adapter in network.vmkernel(host).values() if VMOTION in adapter["services"]}
    names = {name for switch in carrying if switch in switches for name in switches[switch]["uplinks"]}
    speeds = [uplinks[name]["speed_mbps"] for name in names if name in uplinks and uplinks[name]["link"]]
    return min(speeds, default=None)


def _hosts(cluster: WorkerCluster) -> dict[str, Host]:
    refs = [ref for ref in cluster.values.get("host") or [] if ref._moId in cluster.hosts]
    values = properties.read_many(cluster.session, refs, HOST)
    hosts = {}
    for ref in refs:
        host = Host(cluster.session, ref, str(cluster.hosts[ref._moId]["name"]))
        host.properties = values[ref._moId]
        hosts[host.name] = host
    return hosts


def _targets(
    cluster: WorkerCluster, workers: ClusterWorkers, hosts: Mapping[str, Host], links: Mapping[str, int | None]
) -> Iterator[tuple[str, _Target]]:
    """Yield the hosts; those out of service are not asked for their estimates, because no worker moves there."""
    for name, host in hosts.items():
        is_requested = bool(workers.profile) and name in workers.targets
        estimates = move_facts.stun_estimates(cluster.session, host.ref, name) if is_requested else {}
        megabits = min(links[name] or stun_estimate.TABLE_MEGABITS, stun_estimate.TABLE_MEGABITS)
        yield name, _Target(megabits, numbers(host["config.product.apiVersion"]), estimates)


def _rooms(
    cluster: WorkerCluster, workers: ClusterWorkers, hosts: Mapping[str, Host], links: Mapping[str, int | None]
) -> Iterator[tuple[str, HostRoom]]:
    """Yield the room of each host for the workers that can move, those on it included."""
    for key, values in cluster.hosts.items():
        name = str(values["name"])
        others = cluster.others(key, workers.at)
        memory = candidate_hosts.host_for_planner(values, others).free_mb
        cores = int(hosts[name]["summary.hardware.numCpuCores"] or 0)
        cpu = move_facts.free_mhz(values, cores, others.running)
        yield name, HostRoom((workers.slots[name], memory, cpu), most_moves(links[name]))


def _worker(
    machine: Machine,
    workers: ClusterWorkers,
    allowed: frozenset[str],
    known: tuple[Mapping[str, _Target], dict[Any, dict[str, float | None]]],
) -> MovingWorker:
    """Return a worker; ``known`` has the hosts, and the stuns of workers of each kind so far."""
    targets, stuns = known
    profiles, memory_mb = machines.vgpus(machine.values), int(machine["config.hardware.memoryMB"] or 0)
    kind = (tuple(profiles), memory_mb)
    if kind not in stuns:
        stuns[kind] = {name: _stun(profiles, memory_mb, target) for name, target in targets.items()}
    return MovingWorker(
        (workers.demand[machine.name], machines.reserved_mb(machine.values), move_facts.reserved_mhz(machine)),
        allowed,
        stuns[kind],
        alone=bool(profiles),
    )


def _stun(profiles: tuple[str, ...], memory_mb: int, target: _Target) -> float | None:
    if not profiles:
        return SECONDS_WITHOUT_VGPU
    vgpus = [stun_estimate.Vgpu(move_facts.gigabytes(one), target.estimates.get(one, ())) for one in profiles]
    return stun_estimate.estimate(vgpus, memory_mb / 1024, megabits=target.megabits, version=target.version).seconds
