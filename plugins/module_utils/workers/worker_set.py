"""The workers of one call: the assignment of their hosts, and of unique MAC addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import CollectionError, Refused
from ..vsphere import properties
from ..vsphere.properties import Values
from ..vsphere.sdk import ApiObject, vim
from ..vsphere.session import Session
from . import candidate_hosts, clone, nics, sizing, worker_demand, worker_gpus, worker_power
from .context import Assignment, Context, ReportProgress
from .library_templates import LibraryTemplates
from .machine import Machine
from .placement import place
from .worker_cluster import WorkerCluster
from .worker_spec import WorkerSetOptions, WorkerSpec

_COMMITTED, _FREE = "summary.storage.committed", "summary.freeSpace"
_GIB, _MIB = 1 << 30, 1 << 20


def context_of(
    session: Session, options: WorkerSetOptions, report: ReportProgress, worker_specs: Sequence[WorkerSpec]
) -> Context:
    """Return the context that the workers of a call share."""
    cluster = WorkerCluster(session, options.cluster)
    return Context(cluster, options, clone.CloneLocations(cluster), report, worker_specs)


class WorkerSet:
    """The workers of one call in their cluster; ``refresh`` reads all of them and assigns their hosts."""

    def __init__(self, context: Context) -> None:
        self.context, self.worker_specs = context, list(context.specs)
        self.templates = LibraryTemplates(context)
        self.assignments = {desired.name: Assignment() for desired in self.worker_specs}

    def read(self, subjects: Sequence[object]) -> None:
        """Read the cluster and these workers, and refuse new ones for which a datastore has no room."""
        self.refresh(subjects)
        if subjects:
            refuse_shortage(self.context)

    def refresh(self, subjects: Sequence[object]) -> None:
        """Read the cluster and these workers; without workers nothing is read."""
        if not subjects:
            return
        options, cluster = self.context.options, self.context.cluster
        if options.wait_for_address:
            self._await_addresses()
        names = [desired.name for desired in self.worker_specs]
        templates = [one["template"] for one in self.worker_specs if one["template"] and not one.library]
        if options.state == "present":
            self.templates.read()
        cluster.refresh([*names, *templates], self.templates.refs)
        if options.state == "present":
            self.templates.show_missing()
            stores = cluster.values.get("datastore")
            self.context.policies.read(cluster.session, self.worker_specs, cluster.machines, stores)
            self._expect_disks()
            self._check_hosts()
            self._assign_hosts(names)
            self._assign_macs()

    def makes_room(self, subject: Any) -> bool:
        """Return whether a worker must move away before another one can start to move."""
        return bool(self.assignments[subject.target].makes_room_for)

    def _expect_disks(self) -> None:
        machines = self.context.cluster.machines
        for desired in self.worker_specs:
            template, sizes = machines.get(desired["template"] or ""), desired["disks_gb"] or []
            if there := machines.get(desired.name):
                copied = sizing.facts(template)["disks_gb"] if template else []
                there.expected_gb = [*sizes, *copied[len(sizes) :]]

    def _await_addresses(self) -> None:
        started = [assignment.started for assignment in self.assignments.values() if assignment.started]
        silent = worker_power.without_address(started, self.context.options.address_timeout, self.context.report)
        for name, assignment in self.assignments.items():
            assignment.silent = name in silent

    def _assign_hosts(self, names: Sequence[str]) -> None:
        options, cluster = self.context.options, self.context.cluster
        allowed = frozenset(options.hosts) if options.hosts else None
        workers = [worker_demand.placement_worker(cluster, desired, allowed) for desired in self.worker_specs]
        rules = place.Rules(options.one_per_host, options.same_numa_node)
        placed = place.place if options.allow_moves else place.without_moves
        placement = placed(self._hosts(names), workers, rules)
        for name, assignment in self.assignments.items():
            assignment.host, assignment.refusal = placement.where.get(name, ""), placement.refusals.get(name, "")
            assignment.makes_room_for = placement.makes_room_for if name in placement.moves else ()

    def _assign_macs(self) -> None:
        cluster = self.context.cluster
        taken, place = cluster.taken_macs(), f"{cluster.session.uuid} {cluster.name}"
        for desired in self.worker_specs:
            # An RDMA card keeps the address of its place in the options.
            there = cluster.machines.get(desired.name)
            own = {str(card.macAddress or "").lower() for card in (nics.rdma_nics(there) if there else [])}
            macs = nics.choose_macs(place, desired.name, nics.keys(len(desired[nics.RDMA] or [])), taken - own)
            self.assignments[desired.name].macs = macs
            taken |= set(macs.values())

    def _hosts(self, names: Sequence[str]) -> list[place.HostResources]:
        cluster = self.context.cluster
        gpus = [one for desired in self.worker_specs for one in worker_demand.gpus_of(cluster, desired)]
        grouped, profiles = any(one.group for one in gpus), sorted(set(worker_gpus.demand_of(gpus, 0, 0).vgpus))
        return [
            candidate_hosts.host_for_planner(
                candidate_hosts.prepared_host(values, profiles) if self.context.options.to_come.gpus else values,
                cluster.others(key, names),
                cluster.groups(values["name"]) if grouped and _answers(values) else (),
            )
            for key, values in cluster.hosts.items()
        ]

    def _check_hosts(self) -> None:
        options, cluster = self.context.options, self.context.cluster
        named = {*(options.hosts or ()), *(desired["host"] for desired in self.worker_specs if desired["host"])}
        if unknown := sorted(named - set(cluster.host_names)):
            reason = f"it has {', '.join(sorted(cluster.host_names))}"
            raise Refused(f"cluster {cluster.name}", f"find {', '.join(unknown)}", reason, "correct the names of hosts")


def _answers(values: Values) -> bool:
    return bool(values.get("runtime.connectionState") == "connected")


def refuse_shortage(context: Context) -> None:
    """Refuse a call whose new workers need more space than a datastore, or a datastore cluster, has free."""
    cluster, places = context.cluster, dict[str, Any]()
    new = [one for one in context.specs if one.name not in cluster.machines]
    sources = {one.name: template for one in new if (template := cluster.machines.get(one["template"] or ""))}
    # The size of an item that is not deployed yet is unknown.
    refs = {one.ref._moId: one.ref for one in sources.values() if one.ref._moId}
    committed = properties.read_many(cluster.session, list(refs.values()), (_COMMITTED,)) if refs else {}
    needs: dict[str, dict[str, int]] = {}
    for desired in new:
        template = sources.get(desired.name)
        size = (committed.get(template.ref._moId) or {}).get(_COMMITTED) if template else None
        place = _place(context, desired, template) if template and size is not None else None
        if place is not None:
            places[place._moId] = place
            needs.setdefault(place._moId, {})[desired.name] = _bytes(desired, template, int(size or 0))
    for key, place in places.items():
        _refuse_excess(needs[key], *_free(context, place))


def _free(context: Context, place: ApiObject) -> tuple[str, int | None]:
    """Return the name and the free space of a datastore, or of all datastores of a datastore cluster."""
    session, is_pod = context.cluster.session, isinstance(place, vim.StoragePod)
    values = properties.read_many(session, [place], ("name", "childEntity" if is_pod else _FREE)).get(place._moId) or {}
    if is_pod:
        stores = properties.read_many(session, values.get("childEntity") or [], (_FREE,)).values()
        return str(values.get("name")), sum(int(store.get(_FREE) or 0) for store in stores)
    return str(values.get("name")), values.get(_FREE)


def _place(context: Context, desired: WorkerSpec, template: Machine) -> ApiObject:
    """Return the datastore or datastore cluster of a new worker; None if the plan of the worker will refuse it."""
    try:
        location = context.locations.find(desired, template)
    except CollectionError:
        return None
    return location.pod or location.datastore


def _bytes(desired: WorkerSpec, template: Machine | None, committed: int) -> int:
    """Return the space of a clone, whose disks are as thin as those of its template, with its swap file."""
    memory = int(desired["memory_mb"] or (template["config.hardware.memoryMB"] if template else 0) or 0)
    swap = 0 if desired["reserve_memory"] else memory * _MIB
    return swap + (0 if desired["clone"] == clone.LINKED else committed)


def _refuse_excess(needs: Mapping[str, int], place: str, left: int | None) -> None:
    total = sum(needs.values())
    if left is not None and total > left:
        reason = f"they need {total / _GIB:.1f} GiB, and it has {left / _GIB:.1f} GiB free"
        remedy = "free space, or name another datastore; nothing was changed"
        raise Refused(place, f"hold {', '.join(sorted(needs))}", reason, remedy)
