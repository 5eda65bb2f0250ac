"""The resources that a worker needs on its host, and those that must be prepared before the worker can be built."""

from __future__ import annotations

from dataclasses import replace

from . import candidate_hosts, nics, sizing, worker_gpus
from .context import Context
from .machine import Machine
from .placement import place
from .worker_cluster import WorkerCluster
from .worker_spec import Gpu, PendingPreparation, WorkerSpec


def gpus_of(cluster: WorkerCluster, desired: WorkerSpec) -> tuple[Gpu, ...]:
    """Return the GPUs that a worker will have: those in its options, otherwise those of the VM or its template."""
    if desired.gpus is not None:
        return desired.gpus
    base = _base(cluster, desired)
    return tuple(assigned.gpu for assigned in worker_gpus.assigned_gpus(base)) if base else ()


def placement_worker(
    cluster: WorkerCluster, desired: WorkerSpec, allowed: frozenset[str] | None
) -> place.WorkerToPlace:
    """Return a worker for the placement planner; a missing template is refused later, when the worker is planned."""
    there, base = cluster.machines.get(desired.name), _base(cluster, desired)
    gpus, hosts_ = gpus_of(cluster, desired), frozenset({desired["host"]}) if desired["host"] else allowed
    size = sizing.facts(base) if base else {"memory_mb": 0, "cpus": 0, "memory_reserved": False}
    memory = int(desired["memory_mb"] or size["memory_mb"] or 0)
    reserved = memory if desired["reserve_memory"] or size["memory_reserved"] else 0
    demand = worker_gpus.demand_of(gpus, reserved, int(desired["cpus"] or size["cpus"] or 0))
    nics_ = _nics(desired, base)
    given = desired[nics.RDMA]
    number = len(given) if given is not None else len(nics.rdma_nics(base)) if base else 0
    demand = replace(demand, devices=(*demand.devices, *nics_), nics=number)
    if there is None:
        return place.WorkerToPlace(desired.name, demand, hosts_)
    _kept, missing, many = worker_gpus.compare(gpus, worker_gpus.assigned_gpus(there))
    settled = there.on and not missing and not many and sorted(nics_, key=str) == sorted(_nics(None, there), key=str)
    return place.WorkerToPlace(desired.name, demand, hosts_, cluster.host_name(there.host) or "", settled)


def missing_preparations(context: Context, desired: WorkerSpec, host: str) -> list[str]:
    """Return the port groups and GPUs of a worker that are not prepared yet."""
    if context.options.to_come == PendingPreparation():
        return []
    cards = [card for card in (desired[nics.MANAGEMENT], *(desired[nics.RDMA] or [])) if card]
    named = {context.networks.named(card["portgroup"]) for card in cards}
    missing = [f"port group {network.name}" for network in named if network.to_come]
    demand = worker_gpus.demand_of(gpus_of(context.cluster, desired), 0, 0)
    gpus = [f"the GPUs of {host}"] if candidate_hosts.lacks_gpus(context.cluster.properties_of(host), demand) else []
    return [*sorted(missing), *gpus]


def _nics(desired: WorkerSpec | None, base: Machine | None) -> list[place.DeviceRequest]:
    """Return the devices of a class for the RDMA cards, from the options or, otherwise, from the VM or its template."""
    given = desired[nics.RDMA] if desired else None
    names = nics.classes_of(base) if given is None else [nic.get("device_class") for nic in given]
    return [place.DeviceRequest(device_class=name) for name in names if name]


def _base(cluster: WorkerCluster, desired: WorkerSpec) -> Machine | None:
    return cluster.machines.get(desired.name) or cluster.machines.get(desired["template"] or "")
