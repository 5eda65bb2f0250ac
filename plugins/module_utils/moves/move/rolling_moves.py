"""The plan of rolling moves: the workers that can move, and the order of their moves."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...errors import Refused
from ...vsphere import properties
from ...workers import candidate_hosts, nics, worker_gpus
from ...workers.candidate_hosts import OtherMachines
from ...workers.capacity import machines
from ...workers.machine import Machine
from ...workers.worker_cluster import WorkerCluster
from ..plan import plan as moves
from ..plan import ruled_moves, window
from ..plan.fleet import Fleet


@dataclass
class ClusterWorkers:
    """The workers of a cluster, sorted by whether they can move, and the slots of its hosts.

    ``at`` has the host of each worker that can move, ``demand`` its slots; ``fixed`` has the devices that tie a worker
    to its host ``fixed_at``, ``staying`` the running ones among them, ``off`` the powered-off workers, and ``rdma`` the
    host of each VM with an RDMA card. ``linked`` has the device groups of a worker, and ``offering`` the hosts that
    offer all of them. If the ``profiles`` are several, the number of slots is the most that may fit, and the GPUs of a
    host decide; a worker that is not ``moving`` keeps its GPUs.
    """

    at: dict[str, str] = field(default_factory=dict)
    demand: dict[str, int] = field(default_factory=dict)
    fixed: dict[str, list[str]] = field(default_factory=dict)
    fixed_at: dict[str, str] = field(default_factory=dict)
    staying: list[Machine] = field(default_factory=list)
    off: list[str] = field(default_factory=list)
    rdma: dict[str, str] = field(default_factory=dict)
    profiles: list[str] = field(default_factory=list)
    moving: frozenset[str] = frozenset()
    slots: dict[str, int] = field(default_factory=dict)
    targets: list[str] = field(default_factory=list)
    linked: dict[str, list[str]] = field(default_factory=dict)
    offering: dict[str, frozenset[str]] = field(default_factory=dict)
    # The hosts of another cluster that take workers only if those of their cluster have no room.
    spare: frozenset[str] = frozenset()
    # The other running machines with a vGPU on hosts in service, which take slots that workers may need.
    taking: list[str] = field(default_factory=list)
    # The hosts to which none of them moves.
    avoided: frozenset[str] = frozenset()

    def allowed(self, one_per_host: bool) -> dict[str, frozenset[str]]:
        """Return the hosts in service that each worker may move to."""
        return {name: hosts & frozenset(self.targets) for name, hosts in self.usable(one_per_host).items()}

    def usable(self, one_per_host: bool) -> dict[str, frozenset[str]]:
        """Return the hosts that each worker may use in service; linked vGPUs need a host that offers the link.

        If each host may have one worker, a worker that cannot move keeps the others off its host.
        """
        held = {self.fixed_at[machine.name] for machine in self.staying} if one_per_host else set()
        hosts = frozenset(self.slots)
        return {
            name: self.offering.get(name, hosts) - ((held | self.avoided) - {where}) for name, where in self.at.items()
        }

    def others(self, cluster: WorkerCluster, key: str) -> OtherMachines:
        """Return the machines on a host that do not move, including the workers that devices tie to it."""
        others = cluster.others(key, self.at)
        return replace(others, running=[*others.running, *(one for one in self.staying if one.host == key)])


def read_workers(
    cluster: WorkerCluster,
    names: Collection[str],
    movers: Collection[str] | None = None,
    emptied: Collection[str] | None = None,
) -> ClusterWorkers:
    """Return the workers and the slots of the hosts. Those on emptied hosts will move; else ``movers`` (all)."""
    cluster.refresh(names)
    machines_of_workers = [cluster.find(name, "worker") for name in sorted(names)]
    workers = ClusterWorkers(spare=frozenset(cluster.spare.values()))
    for machine in machines_of_workers:
        _sort_in(workers, cluster, machine)
    given = {one.name: machines.vgpus(one.values) for one in machines_of_workers if one.name in workers.at}
    workers.profiles = sorted({profile for profiles in given.values() for profile in profiles})
    workers.moving = frozenset(_moving(workers, movers, emptied))
    _find_links(workers, cluster)
    for key, values in cluster.hosts.items():
        others = workers.others(cluster, key)
        host = candidate_hosts.host_for_planner(values, others)
        held = sum(workers.demand[name] for name, where in workers.at.items() if where == host.name)
        # Beside several profiles, a worker without a vGPU needs no slot, but counts as one.
        plain = sum(not profiles for profiles in given.values()) if len(workers.profiles) != 1 else 0
        room = sum(host.slots.free(profile) for profile in workers.profiles) + plain
        workers.slots[host.name] = max(room, held)
        if host.in_service:
            workers.targets.append(host.name)
            workers.taking += [f"{vm.name} on {host.name}" for vm in others.running if machines.vgpus(vm.values)]
        on_host = [*others.running, *others.placed]
        workers.rdma.update({machine.name: host.name for machine in on_host if nics.rdma_cards(machine)})
    return workers


def select_workers(cluster: str, known: Sequence[str], names: Sequence[str] | None) -> list[str]:
    """Return the names of the workers to move: the given ones, or all known ones."""
    unknown = sorted(set(names or ()) - set(known))
    if unknown:
        workers = f"its workers are {', '.join(sorted(known))}" if known else "it has no workers"
        raise Refused(f"cluster {cluster}", f"find {', '.join(unknown)}", workers, "correct the names")
    return sorted(known if names is None else names)


def as_dict(workers: ClusterWorkers) -> dict[str, object]:
    return {
        "at": workers.at,
        "slots": workers.slots,
        "profile": ", ".join(workers.profiles),
        "not_applicable": workers.fixed,
        "powered_off": workers.off,
        "rdma": workers.rdma,
    }


def plan_moves(
    workers: ClusterWorkers, selected: Sequence[str], *, return_home: bool, one_per_host: bool
) -> list[moves.Move]:
    """Return the moves in their order; raise Refused if no order is possible."""
    movable = [name for name in selected if name in workers.at]
    _refuse_without_link(workers, movable)
    try:
        return moves.plan_moves(
            workers.slots,
            workers.at,
            movable=movable,
            demand=workers.demand,
            allowed=workers.allowed(one_per_host),
            return_home=return_home,
            one_per_host=one_per_host,
        )
    except (moves.PlacementError, moves.Infeasible) as error:
        cause = f"{error}{_taking(workers)}"
        raise Refused("the workers", "plan their moves", cause, "free a slot or add a host") from error


def keep_rules(
    fleet: Fleet, planned: Sequence[moves.Move], at: Mapping[str, str], return_home: bool
) -> list[moves.Move]:
    """Return moves that also keep the rules of the cluster and fit memory and CPU; raise Refused without such moves."""
    try:
        return ruled_moves.keep_rules(fleet, planned, at, return_home)
    except moves.Infeasible as error:
        raise Refused("the workers", "plan their moves", str(error), "change the rule, or add a host") from error


def plan_window(workers: ClusterWorkers, fleet: Fleet, hosts: Sequence[str]) -> list[window.EmptiedHost]:
    """Return the order in which these hosts leave service, and the moves that empty them; raise Refused without one."""
    unknown = sorted(set(hosts) - set(workers.slots))
    if unknown:
        remedy = f"its hosts are {', '.join(sorted(workers.slots))}"
        raise Refused("the cluster", f"find {', '.join(unknown)}", "it has no such host", remedy)
    tied = [f"{name} on {where}" for name, where in sorted(workers.fixed_at.items()) if where in hosts]
    if tied:
        reason = f"devices tie {', '.join(tied)} to the host"
        remedy = "leave these hosts out, or stop the job at a checkpoint with window_by=restart"
        raise Refused("the workers", "plan their moves", reason, remedy)
    _refuse_without_link(workers, [name for name, where in workers.at.items() if where in hosts])
    try:
        return _plan_window(workers, fleet, hosts)
    except moves.Infeasible as error:
        raise Refused("the workers", "plan their moves", f"{error}{_taking(workers)}") from error


def _plan_window(workers: ClusterWorkers, fleet: Fleet, hosts: Sequence[str]) -> list[window.EmptiedHost]:
    """Return the plan of a window; it uses spare hosts only if no plan without them exists."""
    try:
        return window.plan_window(fleet.without(workers.spare), workers.at, hosts, workers.targets)
    except moves.Infeasible:
        if not workers.spare or workers.spare & set(hosts):
            raise
    return window.plan_window(fleet, workers.at, hosts, workers.targets)


def plan_return(workers: ClusterWorkers, fleet: Fleet, planned: Sequence[window.EmptiedHost]) -> list[moves.Move]:
    """Return the moves that bring workers back from spare hosts after the planned moves; refused without room."""
    at = {**workers.at, **{move.worker: move.target for change in planned for move in change.moves}}
    back = {*workers.targets, *(change.host for change in planned)} - workers.spare
    if not workers.spare & set(at.values()):
        return []
    try:
        returning = window.plan_window(fleet.without(workers.spare), at, sorted(workers.spare), back)
    except moves.Infeasible as error:
        raise Refused("the workers", "plan their return from the spare hosts", f"{error}{_taking(workers)}") from error
    return [move for change in returning for move in change.moves]


def _moving(workers: ClusterWorkers, movers: Collection[str] | None, emptied: Collection[str] | None) -> Iterator[str]:
    """Yield the workers that move; those on spare hosts move back when the other hosts are changed."""
    left = {*(emptied or ()), *workers.spare}
    for name, where in workers.at.items():
        if where in left if emptied is not None else movers is None or name in movers:
            yield name


def _taking(workers: ClusterWorkers) -> str:
    """Return the other machines that take slots, as part of a sentence, or an empty text."""
    return (
        f"; other virtual machines with a vGPU run there: {', '.join(sorted(workers.taking))}" if workers.taking else ""
    )


def _sort_in(workers: ClusterWorkers, cluster: WorkerCluster, machine: Machine) -> None:
    if devices := machines.fixed(machine.values, cluster.device_classes(machine)):
        workers.fixed[machine.name] = list(devices)
        workers.fixed_at[machine.name] = cluster.host_name(machine.host) or ""
        workers.staying += [machine] if machine.on else []
    elif not machine.on:
        workers.off.append(machine.name)
    else:
        workers.at[machine.name] = _host_of(cluster, machine)
        workers.demand[machine.name] = max(len(machines.vgpus(machine.values)), 1)
        if groups := worker_gpus.group_names(machine):
            workers.linked[machine.name] = groups


def _host_of(cluster: WorkerCluster, machine: Machine) -> str:
    """Return the host of a running worker; refuse one that runs in another cluster, which nothing here counts with."""
    host = cluster.host_name(machine.host)
    if host is None:
        where = properties.read_many(cluster.session, [machine["runtime.host"]], ("name",))[machine.host]["name"]
        reason = f"it runs on {where}, and cluster {cluster.name} has no such host"
        remedy = "move it back with dml.vsphere.workers and allow_moves=true, or name this host as a spare host"
        raise Refused(machine.name, "plan its move", reason, remedy)
    return host


def _find_links(workers: ClusterWorkers, cluster: WorkerCluster) -> None:
    """Ask each host for the device groups that it offers, if a worker has one."""
    if not workers.linked:
        return
    offered = {str(values["name"]): set(cluster.groups(str(values["name"]))) for values in cluster.hosts.values()}
    for name, groups in workers.linked.items():
        workers.offering[name] = frozenset(host for host, there in offered.items() if set(groups) <= there)


def _refuse_without_link(workers: ClusterWorkers, names: Sequence[str]) -> None:
    """Refuse to move a worker if no other host offers its linked vGPUs."""
    for name in names:
        if name in workers.linked and not workers.offering[name] - {workers.at[name]}:
            groups = ", ".join(workers.linked[name])
            reason = f"no other host offers its linked vGPUs, the device group {groups}"
            raise Refused(name, "plan its move", reason, "link the GPUs of another host in the same way")
