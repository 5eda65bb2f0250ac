# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The workers of one call together: which host each of them gets, and addresses that none of them shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import Refused
from ..vsphere.properties import Values
from ..vsphere.session import Session
from . import candidate_hosts, clone, demand, nics, worker_gpus, worker_power
from .call_cluster import Site
from .context import Assignment, Context, Tell
from .placement import place
from .worker_spec import Call, Desired


def context_of(session: Session, call: Call, tell: Tell) -> Context:
    """The context that the workers of a call share."""
    site = Site(session, call.cluster)
    return Context(site, call, clone.Places(site), tell)


class WorkerSet:
    """The workers of one call in their cluster; ``refresh`` reads them all and assigns their hosts."""

    def __init__(self, context: Context, desired_workers: Sequence[Desired]) -> None:
        self.context, self.desired_workers = context, list(desired_workers)
        self.assignments = {desired.name: Assignment() for desired in self.desired_workers}

    def refresh(self, subjects: Sequence[Any]) -> None:
        """Read the cluster with these workers in it; without workers there is nothing to read."""
        if not subjects:
            return
        call, site = self.context.call, self.context.site
        if call.wait_for_address:
            self._await_addresses()
        names = [desired.name for desired in self.desired_workers]
        site.refresh([*names, *(desired["template"] for desired in self.desired_workers if desired["template"])])
        if call.state == "present":
            self._check_hosts()
            self._assign_hosts(names)
            self._assign_macs()

    def _await_addresses(self) -> None:
        started = [one.started for one in self.assignments.values() if one.started]
        silent = worker_power.silent(started, self.context.call.address_timeout, self.context.tell)
        for name, assignment in self.assignments.items():
            assignment.silent = name in silent

    def _assign_hosts(self, names: Sequence[str]) -> None:
        call, site = self.context.call, self.context.site
        allowed = frozenset(call.hosts) if call.hosts else None
        workers = [demand.to_place(site, desired, allowed) for desired in self.desired_workers]
        rules = place.Rules(call.one_per_host, call.same_numa_node)
        placed = place.place if call.allow_moves else place.without_moves
        placement = placed(self._hosts(names), workers, rules)
        for name, assignment in self.assignments.items():
            assignment.host, assignment.refusal = placement.where.get(name, ""), placement.refusals.get(name, "")
            assignment.makes_room_for = placement.makes_room_for if name in placement.moves else ()

    def _assign_macs(self) -> None:
        taken = self.context.site.taken_macs()
        for name, assignment in self.assignments.items():
            assignment.macs = nics.choose_macs(name, (nics.MANAGEMENT, nics.RDMA), taken)
            taken |= set(assignment.macs.values())

    def _hosts(self, names: Sequence[str]) -> list[place.Host]:
        """The hosts as the planner of placements sees them."""
        site = self.context.site
        gpus = [one for desired in self.desired_workers for one in demand.gpus_of(site, desired)]
        grouped, profiles = any(one.group for one in gpus), sorted(set(worker_gpus.demand_of(gpus, 0, 0).vgpus))
        return [
            candidate_hosts.seen(
                candidate_hosts.prepared(values, profiles) if self.context.call.to_come.gpus else values,
                site.others(key, names),
                site.groups(values["name"]) if grouped and _answers(values) else (),
            )
            for key, values in site.hosts.items()
        ]

    def _check_hosts(self) -> None:
        call, site = self.context.call, self.context.site
        named = {*(call.hosts or ()), *(desired["host"] for desired in self.desired_workers if desired["host"])}
        if unknown := sorted(named - set(site.host_names)):
            said = f"it has {', '.join(sorted(site.host_names))}"
            raise Refused(f"cluster {site.name}", f"find {', '.join(unknown)}", said, "correct the names of hosts")


def _answers(values: Values) -> bool:
    return bool(values.get("runtime.connectionState") == "connected")
