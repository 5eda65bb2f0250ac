"""The facts that the rules for one move need; nothing is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.versions import ROCE_V1
from ...hosts import pvrdma
from ...maintenance import cluster_problems, recent_tasks
from ...maintenance.recent_tasks import RecentTask
from ...vsphere import properties, tasks
from ...vsphere.faults import translating_faults, words
from ...vsphere.sdk import ApiObject, vim
from ...vsphere.session import Session
from ...workers import candidate_hosts, encryption, nics, worker_gpus
from ...workers.capacity import host_capacity as capacity
from ...workers.capacity import machines
from ...workers.machine import Machine
from ...workers.placement import gpu_slots
from ...workers.placement.host_room import DeviceRequest, choose
from ...workers.placement.place import HostResources
from ...workers.worker_cluster import WorkerCluster
from ..checks import move_checks, stun_estimate
from . import move_watch

TARGET = ("datastore", "network", "triggeredAlarmState", "summary.hardware.numCpuCores", pvrdma.TAG)
MANAGER = "configManager.graphicsManager"
STUN_SINCE = (8, 0, 2)
CHECK_SECONDS = 300
# Tasks that do not interfere with a move.
HARMLESS = ("createScreenshot",)


@dataclass(frozen=True)
class Budget:
    """The longest stun that the job tolerates, and the bandwidth of the move."""

    stun_seconds: float | None = None
    megabits: int | None = None


def facts(
    cluster: WorkerCluster, machine: Machine, target: str, running: Sequence[RecentTask], budget: Budget
) -> move_checks.MoveFacts:
    """Return the facts about one worker, its running tasks and its target host."""
    ref = cluster.host_named(target)
    values = cluster.hosts[ref._moId]
    more = properties.read_many(cluster.session, [ref], TARGET)[ref._moId]
    profiles, others = machines.vgpus(machine.values), cluster.others(ref._moId, [machine.name])
    return {
        "worker": machine.name,
        "target": target,
        "profiles": list(profiles),
        "fixed": list(machines.fixed(machine.values, cluster.device_classes(machine))),
        **_classes(machine, candidate_hosts.host_for_planner(values, others), capacity.device_classes(values)),
        "flags": machines.plugin_flags(machine.extra),
        "hot_migrate": cluster.hot_migrate if profiles else True,
        "alarms": _red_alarms(cluster, target, more.get("triggeredAlarmState") or []),
        **_room(candidate_hosts.host_for_planner(values, others), profiles),
        **_links(cluster, machine, target),
        "memory_reserved_mb": machines.reserved_mb(machine.values),
        "free_mhz": free_mhz(values, int(more["summary.hardware.numCpuCores"]), others.running),
        "cpu_reserved_mhz": reserved_mhz(machine),
        **_lacking(cluster, machine, ref, more),
        **_rdma(nics.rdma_cards(machine), values, more),
        **_keys(cluster, machine, ref),
        "snapshot": machine["snapshot"] is not None,
        "tasks": [_text(task) for task in running if task.what not in HARMLESS],
        **_vcenter_check(cluster, machine, ref),
        **_stun(_vgpus(cluster, ref, profiles), machine, budget),
    }


def _links(cluster: WorkerCluster, machine: Machine, target: str) -> move_checks.LinkFacts:
    """Return the device groups of the worker and, if it has some, those of the target host."""
    groups = worker_gpus.group_names(machine)
    return {"groups": groups, "groups_offered": cluster.groups(target) if groups else []}


def _rdma(cards: Sequence[ApiObject], target: properties.Values, more: properties.Values) -> move_checks.RdmaFacts:
    """Return the PVRDMA of the worker, and what the target host supports of it."""
    return {
        "rdma": bool(cards),
        "roce_v1": any(card.deviceProtocol == ROCE_V1 for card in cards),
        "target_version": target.get(nics.VERSION),
        "pvrdma": bool(more.get(pvrdma.TAG)),
    }


def _keys(cluster: WorkerCluster, machine: Machine, target: Any) -> move_checks.KeyFacts:
    """Return what the encryption of the worker and of its move needs of vCenter and both hosts."""
    requested, providers = str(machine["config.migrateEncryption"] or ""), encryption.providers_of(machine)
    # A virtual TPM encrypts the home of its machine.
    is_encrypted = any(encryption.facts(machine).values())
    both = [machine["runtime.host"], target] if is_encrypted or requested == "required" else [target]
    hosts = properties.read_many(cluster.session, both, (encryption.HOST, encryption.MOVES))
    known = encryption.providers(cluster.session) if providers else set()
    unable = [key for key, values in hosts.items() if values.get(encryption.MOVES) is False]
    return {
        "encryption": requested,
        "encrypted": is_encrypted,
        "providers_missing": [name for name in providers if name not in known],
        "key_pending": str(hosts[target._moId].get(encryption.HOST) or "") == encryption.PENDING,
        "no_encrypted_moves": sorted(cluster.host_name(key) or key for key in unable),
    }


def _room(host: HostResources, profiles: Sequence[str]) -> move_checks.HostFacts:
    """Return the room that other virtual machines leave on the host."""
    return {
        "in_service": host.in_service,
        "offered": list(host.slots.offered),
        "slots_free": host.slots.take_all(profiles) is not None,
        "holders": [f"{name} ({what})" for name, what in host.holders],
        "free_mb": host.free_mb,
    }


def _classes(machine: Machine, host: HostResources, offered: Mapping[str, bool]) -> move_checks.ClassFacts:
    """Return the device classes of the worker, those of the target host, and whether it has free devices of them."""
    classes = machines.device_classes(machine.values)
    requests = [DeviceRequest(device_class=name) for name in classes]
    free = [device for device in host.devices if not device.holder]
    return {
        "classes": list(classes),
        "target_classes": dict(offered),
        "class_slots_free": choose(requests, free) is not None,
    }


def free_mhz(values: properties.Values, cores: int, running: Sequence[Machine]) -> int:
    """Return the unreserved MHz of a host; hyper-threads do not count."""
    return cores * int(values["summary.hardware.cpuMhz"]) - sum(map(reserved_mhz, running))


def reserved_mhz(machine: Machine) -> int:
    return int(machine["config.cpuAllocation.reservation"] or 0)


def tasks_on(cluster: WorkerCluster, machine: Machine) -> list[RecentTask]:
    """Return the running tasks of the worker, from any user."""
    return [task for task in recent_tasks.recent(cluster.session, [machine.ref]) if task.running]


def running_move(cluster: WorkerCluster, machine: Machine, running: Sequence[RecentTask], target: str) -> ApiObject:
    """Return the running move of the worker to this host, or None.

    A task does not name its target, but its events do. A move that has no events yet counts as a move to this host.
    """
    for task in running:
        if task.what in recent_tasks.MOVES:
            info = properties.read_many(cluster.session, [task.ref], ("info",))[task.ref._moId]["info"]
            events = move_watch.events_since(cluster.session, machine.ref, machine.name, info.queueTime)
            targets = {event["target"] for event in move_watch.of_chain(events, info.eventChainId) if event["target"]}
            if targets <= {target}:
                return task.ref
    return None


def _text(task: RecentTask) -> str:
    return f"the task {task.what} of {task.user}"


def _red_alarms(cluster: WorkerCluster, target: str, states: Sequence[ApiObject]) -> list[str]:
    names = {key: values["name"] for key, values in cluster.hosts.items()}
    alarms = cluster_problems.alarms(cluster.session, names, states)
    return [alarm["alarm"] for alarm in alarms if alarm["status"] == "red" and alarm["object"] == target]


def _lacking(
    cluster: WorkerCluster, machine: Machine, target: ApiObject, more: properties.Values
) -> move_checks.AccessFacts:
    """Return what the worker uses and the target host does not have."""
    return {
        "datastores_missing": _missing(cluster, machine["datastore"], more.get("datastore")),
        "networks_missing": _unconnected(cluster, machine, more.get("network")),
        "pool_lost": _pool_lost(cluster, machine, target),
    }


def _missing(cluster: WorkerCluster, needed: Sequence[Any] | None, on_host: Sequence[Any] | None) -> list[str]:
    """Return the names of the needed objects that the host does not have."""
    known = {ref._moId for ref in on_host or []}
    refs = [ref for ref in needed or [] if ref._moId not in known]
    return sorted(values["name"] for values in properties.read_many(cluster.session, refs, ("name",)).values())


def _unconnected(cluster: WorkerCluster, machine: Machine, on_host: Sequence[Any] | None) -> list[str]:
    """Return the networks of the worker's cards that the host is not connected to."""
    known = {ref._moId for ref in on_host or []}
    names = {str(cluster.networks.name_of(card.backing)) for card in machine.cards}
    connected = {network.name for network in cluster.networks.all if network.ref._moId in known}
    return sorted(names - connected)


def relocation(cluster: WorkerCluster, machine: Machine, target: ApiObject) -> ApiObject:
    """Return the request of a move to a host, with the resource pool of its cluster if that is another one."""
    return vim.vm.RelocateSpec(host=target, pool=cluster.pool_for(machine, target))


def _pool_lost(cluster: WorkerCluster, machine: Machine, target: ApiObject) -> str:
    """Return the name of the resource pool that the worker would leave for the root of another cluster; else empty."""
    pool = machine["resourcePool"]
    if pool is None or cluster.pool_for(machine, target) is None:
        return ""
    found = properties.read_many(cluster.session, [pool], ("name", "owner", "parent"))[pool._moId]
    return "" if found["parent"]._moId == found["owner"]._moId else str(found["name"])


def _vcenter_check(cluster: WorkerCluster, machine: Machine, target: ApiObject) -> move_checks.CheckFacts:
    """Return the errors and warnings of vCenter's check of the move."""
    tried = "check whether it can move"
    with translating_faults(machine.name, tried):
        checker = cluster.session.content.vmProvisioningChecker
        spec = relocation(cluster, machine, target)
        task = checker.CheckRelocate_Task(vm=machine.ref, spec=spec, testType=None)
    results = tasks.wait(cluster.session, tasks.Started(task, machine.name, tried), CHECK_SECONDS).result or []
    return {
        "check_errors": [words(error) for result in results for error in result.error or []],
        "check_warnings": [words(warning) for result in results for warning in result.warning or []],
    }


def _stun(vgpus: Sequence[stun_estimate.Vgpu], machine: Machine, budget: Budget) -> move_checks.StunFacts:
    """Return the estimated stun, the stun that the job tolerates, and the limit of the switchover."""
    limit = machine.extra.get(move_checks.SWITCHOVER, "")
    memory_gb = int(machine["config.hardware.memoryMB"] or 0) / 1024
    return {
        "stun": stun_estimate.estimate(vgpus, memory_gb, megabits=budget.megabits),
        "stun_budget_s": budget.stun_seconds,
        "switchover_s": float(limit) if limit.isdigit() else float(move_checks.SWITCHOVER_DEFAULT),
    }


def _vgpus(cluster: WorkerCluster, target: ApiObject, profiles: Sequence[str]) -> list[stun_estimate.Vgpu]:
    """Return the virtual GPUs, each with the target's estimates of its stun."""
    estimates = stun_estimates(cluster.session, target, cluster.host_name(target._moId) or "") if profiles else {}
    described = cluster.hosts[target._moId].get(capacity.DESCRIBED, ())
    return [stun_estimate.Vgpu(gigabytes(profile, described), estimates.get(profile, ())) for profile in profiles]


def gigabytes(profile: str, described: Iterable[gpu_slots.VgpuProfile] = ()) -> int:
    """Return the framebuffer of a vGPU profile by its name or its host's description; 0 if both lack it."""
    known = gpu_slots.known(profile, described)
    return known.gigabytes if known else 0


def stun_estimates(session: Session, host: ApiObject, name: str) -> dict[str, list[dict[str, int]]]:
    """Return the server's estimates of stuns on a host, for each vGPU profile and bandwidth of the move."""
    if session.api_version < STUN_SINCE:
        return {}
    manager = properties.read_many(session, [host], (MANAGER,))[host._moId][MANAGER]
    with translating_faults(name, "ask for the stun times of its vGPU profiles"):
        infos = manager.RetrieveVgpuProfileInfo()
    return {
        info.profileName: [
            {"megabits": int(entry.migrationBW), "seconds": int(entry.stunTime)}
            for entry in info.stunTimeEstimates or []
        ]
        for info in infos or []
    }
