"""The state of a worker VM, with the keys of plans and results."""

from __future__ import annotations

from typing import Any

from ..core import names
from . import (
    customise,
    encryption,
    foreign_disks,
    library_items,
    nics,
    sizing,
    storage,
    unified_memory,
    worker_gpus,
    worker_mark,
)
from .machine import Machine
from .worker_cluster import WorkerCluster

KEYS = (
    *("exists", "name", "folder", "host", "power", "template", storage.OPTION, storage.STATE),
    *encryption.KEYS,
    *("cpus", "cores_per_socket", "memory_mb", "memory_reserved", "cpu_reserved_mhz"),
    *("latency_sensitivity", "firmware", "vmotion_encryption", "numa", "disks_gb", "disks_recorded", "gpus", "mmio_gb"),
    *("vgpu_unified_memory", "management_nic", "rdma_nics", "guest", "annotation", "mark", "confirmed", "address"),
)


def facts(cluster: WorkerCluster, machine: Machine | None) -> dict[str, Any]:
    """Return the state of a virtual machine; if it is None, every key but ``exists`` has the value None."""
    if machine is None:
        return {**dict.fromkeys(KEYS), "exists": False}
    marked = cluster.mark_of(machine)
    # A killed run left this clone without a mark.
    unfinished = not marked and machine.extra.get(worker_mark.BUILDING) == machine.shown
    confirmed = unfinished or cluster.is_confirmed(machine)
    return {
        "exists": True,
        "name": machine.shown,
        "folder": None,
        "host": cluster.host_name(machine.host),
        "power": "on" if machine.on else "off",
        "template": library_items.recorded(machine.extra),
        storage.OPTION: None,
        storage.STATE: None,
        **encryption.facts(machine),
        **sizing.facts(machine),
        **nics.facts(machine, cluster.networks),
        "disks_recorded": foreign_disks.is_recorded(machine),
        "gpus": worker_gpus.names_of([assigned.gpu for assigned in worker_gpus.assigned_gpus(machine)]),
        "mmio_gb": worker_gpus.window_gb(machine.extra),
        unified_memory.OPTION: unified_memory.state(machine),
        "guest": customise.facts(machine.extra),
        "mark": {"built": True} if unfinished else marked,
        "confirmed": confirmed,
        "address": names.address(machine["guest.ipAddress"]),
    }
