# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The plan of a rolling test: which workers can move, and the order of their moves."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import Refused
from ...workers import candidate_hosts, nics
from ...workers.capacity import machines
from ...workers.machine import Machine
from ...workers.worker_cluster import WorkerCluster
from ..plan import plan as moves


@dataclass
class Roll:
    """The workers of a cluster, sorted by whether they can move, and the slots of its hosts."""

    at: dict[str, str] = field(default_factory=dict)
    demand: dict[str, int] = field(default_factory=dict)
    fixed: dict[str, list[str]] = field(default_factory=dict)
    off: list[str] = field(default_factory=list)
    rdma: dict[str, str] = field(default_factory=dict)
    profile: str = ""
    slots: dict[str, int] = field(default_factory=dict)
    targets: list[str] = field(default_factory=list)


def look(site: WorkerCluster, names: Collection[str]) -> Roll:
    """The workers, and the slots that the hosts have for them."""
    site.refresh(names)
    workers = [site.find(name, "worker") for name in sorted(names)]
    roll = Roll()
    for machine in workers:
        _sort_in(roll, site, machine)
    roll.profile = _one_profile(site, workers, roll)
    for key, values in site.hosts.items():
        others = site.others(key, names)
        host = candidate_hosts.host_for_planner(values, others)
        held = sum(roll.demand[name] for name, where in roll.at.items() if where == host.name)
        room = host.slots.free(roll.profile) if roll.profile else len(roll.at)
        roll.slots[host.name] = max(room, held)
        if host.in_service:
            roll.targets.append(host.name)
        there = [*others.running, *(one for one in workers if one.on and one.host == key)]
        roll.rdma.update({one.name: host.name for one in there if nics.rdma_cards(one)})
    return roll


def chosen(cluster: str, there: Sequence[str], wanted: Sequence[str] | None) -> list[str]:
    """The names of the workers to move."""
    unknown = sorted(set(wanted or ()) - set(there))
    if unknown:
        known = ", ".join(sorted(there)) or "none"
        raise Refused(
            f"cluster {cluster}", f"find {', '.join(unknown)}", f"its workers are {known}", "correct the names"
        )
    return sorted(there if wanted is None else wanted)


def as_dict(roll: Roll) -> dict[str, Any]:
    """The roll as plain data."""
    return {
        "at": roll.at,
        "slots": roll.slots,
        "profile": roll.profile,
        "not_applicable": roll.fixed,
        "powered_off": roll.off,
        "rdma": roll.rdma,
    }


def plan(roll: Roll, chosen: Sequence[str], *, return_home: bool, one_per_host: bool) -> list[moves.Move]:
    """The moves in their order; refused where no order is possible."""
    movable = [name for name in chosen if name in roll.at]
    try:
        return moves.plan_moves(
            roll.slots,
            roll.at,
            movable=movable,
            demand=roll.demand,
            allowed=dict.fromkeys(roll.at, roll.targets),
            return_home=return_home,
            one_per_host=one_per_host,
        )
    except (moves.PlacementError, moves.Infeasible) as error:
        raise Refused("the workers", "plan their moves", str(error), "free a slot or add a host") from error


def _sort_in(roll: Roll, site: WorkerCluster, machine: Machine) -> None:
    if tied := machines.fixed(machine.values):
        roll.fixed[machine.name] = list(tied)
    elif not machine.on:
        roll.off.append(machine.name)
    else:
        roll.at[machine.name] = site.host_name(machine.host) or ""
        roll.demand[machine.name] = max(len(machines.vgpus(machine.values)), 1)


def _one_profile(site: WorkerCluster, workers: Sequence[Machine], roll: Roll) -> str:
    """The vGPU profile of all movable workers; several profiles are refused, because their slots differ."""
    found = {profile for worker in workers if worker.name in roll.at for profile in machines.vgpus(worker.values)}
    if len(found) > 1:
        said = f"they have several: {', '.join(sorted(found))}"
        raise Refused(f"cluster {site.name}", "count slots of one vGPU profile", said, "name workers of one profile")
    return found.pop() if found else ""
