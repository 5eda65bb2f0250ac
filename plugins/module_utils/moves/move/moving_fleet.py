"""The workers and hosts of a cluster as the planners of moves need them: room, links, expected stuns and rules."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...hosts import network
from ...maintenance import placements
from ...vsphere import properties
from ...vsphere.inventory import Host
from ...workers import candidate_hosts
from ...workers.candidate_hosts import OtherMachines
from ...workers.capacity import host_capacity, machines
from ...workers.machine import Machine
from ...workers.placement.gpu_slots import VgpuProfile
from ...workers.worker_cluster import WorkerCluster
from ..checks import stun_estimate
from ..plan.fleet import Fleet, GpuRoom, HostRoom, MovingWorker, most_moves
from . import move_facts
from .rolling_moves import ClusterWorkers

CORES = "summary.hardware.numCpuCores"
RULES = "configurationEx"
VMOTION = "vmotion"
# vMotion starts the switchover of a virtual machine without a vGPU when it expects less than a second.
SECONDS_WITHOUT_VGPU = 1.0


@dataclass(frozen=True)
class FleetLimits:
    """The total stun that the job tolerates, and whether each host may have at most one worker."""

    budget_s: float
    one_per_host: bool


@dataclass(frozen=True)
class _Target:
    """The properties of a target host that determine the stun of a worker."""

    megabits: int
    estimates: Mapping[str, list[dict[str, int]]]
    described: Sequence[VgpuProfile]


def read_room(cluster: WorkerCluster, workers: ClusterWorkers, one_per_host: bool) -> Fleet:
    """Return the needs of the workers, the room of the hosts, and the rules, without links and stuns."""
    names = {cluster.machines[name].ref._moId: name for name in workers.at}
    config = properties.read_many(cluster.session, [cluster.ref], (RULES,))[cluster.ref._moId].get(RULES)
    usable = workers.usable(one_per_host)
    for rule in placements.must_run(config, {key: str(values["name"]) for key, values in cluster.hosts.items()}):
        usable.update({names[key]: usable[names[key]] & rule.hosts for key in rule.vms if key in names})
    others = {key: workers.others(cluster, key) for key in cluster.hosts}
    for apart in placements.apart(config):
        taken = frozenset(_hosts_of(cluster, others, apart.vms))
        for name in (names[key] for key in apart.vms if key in names):
            usable[name] -= taken - {workers.at[name]}
    return Fleet(
        {name: _worker(cluster.machines[name], workers, usable[name]) for name in workers.at},
        dict(_rooms(cluster, workers, others)),
        apart=tuple(frozenset(names[key] for key in rule.vms if key in names) for rule in placements.apart(config)),
        one_per_host=one_per_host,
    )


def read_serving(cluster: WorkerCluster, workers: ClusterWorkers, one_per_host: bool) -> Fleet:
    """Return the same, with only the hosts in service as targets."""
    fleet, serving = read_room(cluster, workers, one_per_host), frozenset(workers.targets)
    moving = {name: replace(one, targets=serving & set(one.targets)) for name, one in fleet.workers.items()}
    return replace(fleet, workers=moving)


def read_fleet(cluster: WorkerCluster, workers: ClusterWorkers, rules: FleetLimits) -> Fleet:
    """Return the fleet with links and stuns; all its workers count as workers of one job."""
    fleet, hosts = read_serving(cluster, workers, rules.one_per_host), _hosts(cluster)
    links = {name: vmotion_megabits(host) for name, host in hosts.items()}
    targets = dict(_targets(cluster, workers, hosts, links))
    stuns: dict[Any, dict[str, float | None]] = {}
    moving = {
        name: _with_stuns(worker, cluster.machines[name], targets, stuns) for name, worker in fleet.workers.items()
    }
    rooms = {name: replace(room, moves=most_moves(links[name])) for name, room in fleet.hosts.items()}
    return replace(fleet, workers=moving, hosts=rooms, budget_s=rules.budget_s)


def _hosts_of(cluster: WorkerCluster, others: Mapping[str, OtherMachines], keys: Collection[str]) -> Iterator[str]:
    """Yield the hosts on which one of these machines runs and does not move."""
    for host, there in others.items():
        if any(machine.ref._moId in keys for machine in there.running):
            yield str(cluster.hosts[host]["name"])


def vmotion_megabits(host: Host) -> int | None:
    """Return the speed of the slowest connected uplink that carries vMotion; None if it is not known."""
    uplinks, switches = network.uplinks(host, {}), network.switches(host)
    carrying = {adapter["switch"] for adapter in network.vmkernel(host).values() if VMOTION in adapter["services"]}
    names = {name for switch in carrying if switch in switches for name in switches[switch]["uplinks"]}
    speeds = [uplinks[name]["speed_mbps"] for name in names if name in uplinks and uplinks[name]["link"]]
    return min(speeds, default=None)


def _hosts(cluster: WorkerCluster) -> dict[str, Host]:
    refs = [ref for ref in cluster.values.get("host") or [] if ref._moId in cluster.hosts]
    values = properties.read_many(cluster.session, refs, network.PATHS)
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
        is_requested = bool(workers.profiles) and name in workers.targets
        estimates = move_facts.stun_estimates(cluster.session, host.ref, name) if is_requested else {}
        megabits = min(links[name] or stun_estimate.TABLE_MEGABITS, stun_estimate.TABLE_MEGABITS)
        described = cluster.hosts[host.ref._moId].get(host_capacity.DESCRIBED, ())
        yield name, _Target(megabits, estimates, described)


def _rooms(
    cluster: WorkerCluster, workers: ClusterWorkers, others: Mapping[str, OtherMachines]
) -> Iterator[tuple[str, HostRoom]]:
    """Yield the room of each host for the workers that can move, including those on it."""
    refs = [ref for ref in cluster.values.get("host") or [] if ref._moId in cluster.hosts]
    alike: dict[GpuRoom, GpuRoom] = {}
    cores = properties.read_many(cluster.session, refs, (CORES,))
    for key, values in cluster.hosts.items():
        name = str(values["name"])
        memory = candidate_hosts.host_for_planner(values, others[key]).free_mb
        cpu = move_facts.free_mhz(values, int(cores[key].get(CORES) or 0), others[key].running)
        gpus = _gpus(cluster, workers, key) if len(workers.profiles) > 1 else None
        yield name, HostRoom((workers.slots[name], memory, cpu), gpus=gpus and alike.setdefault(gpus, gpus))


def _gpus(cluster: WorkerCluster, workers: ClusterWorkers, key: str) -> GpuRoom:
    """Return the GPUs of a host with the vGPUs of all machines that will not move."""
    there = workers.others(cluster, key)
    staying = [one for one in there.placed if one.name not in workers.moving]
    moving = [one for one in there.placed if one.name in workers.moving]
    others = replace(there, running=[*there.running, *staying], placed=moving)
    return GpuRoom(candidate_hosts.host_for_planner(cluster.hosts[key], others).slots.without_addresses())


def _worker(machine: Machine, workers: ClusterWorkers, targets: Collection[str]) -> MovingWorker:
    needs = workers.demand[machine.name], machines.reserved_mb(machine.values), move_facts.reserved_mhz(machine)
    is_one_of_several = len(workers.profiles) > 1 and machine.name in workers.moving
    return MovingWorker(needs, targets, profiles=machines.vgpus(machine.values) if is_one_of_several else ())


def _with_stuns(
    worker: MovingWorker, machine: Machine, targets: Mapping[str, _Target], stuns: dict[object, dict[str, float | None]]
) -> MovingWorker:
    """Return a worker with its expected stuns; ``stuns`` has those of workers of each kind so far."""
    profiles, memory_mb = machines.vgpus(machine.values), int(machine["config.hardware.memoryMB"] or 0)
    kind = (tuple(profiles), memory_mb)
    if kind not in stuns:
        stuns[kind] = {name: _stun(profiles, memory_mb, target) for name, target in targets.items()}
    return replace(worker, stun_s=stuns[kind], alone=bool(profiles))


def _stun(profiles: tuple[str, ...], memory_mb: int, target: _Target) -> float | None:
    if not profiles:
        return SECONDS_WITHOUT_VGPU
    vgpus = [
        stun_estimate.Vgpu(move_facts.gigabytes(one, target.described), target.estimates.get(one, ()))
        for one in profiles
    ]
    return stun_estimate.estimate(vgpus, memory_mb / 1024, megabits=target.megabits).seconds
