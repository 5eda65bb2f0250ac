"""All readers of the collection, each for one object of a site."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

from ...cluster.cluster_info import ClusterReader
from ...fabric.fabric import Fabric
from ...fabric.fabric_spec import FabricSpec
from ...hosts import cluster_image, host_image, host_info, remediation
from ...maintenance import recent_tasks
from ...maintenance.lock.folders import LockFolders
from ...moves.move import move_facts, move_watch
from ...usage import gpu_usage
from ...vsphere import host_clocks, inventory, rest, tags
from ...vsphere.properties import id_of, read_linked
from ...vsphere.sdk import vim
from ...vsphere.session import Session
from ...workers import existing_workers, machine
from ...workers.placement.rule_set import RuleSetSpec
from ...workers.rules.worker_rules import WorkerRules
from ...workers.worker_cluster import WorkerCluster
from .reader import CLUSTER, COUNTERS, GROUPS, HOST, VCENTER, VM, Reader, ReadRequest, is_without, read_group


def _host_tasks(session: Session, request: ReadRequest, name: str) -> object:
    return recent_tasks.recent(session, [request.hosts[name]])


def _stun(session: Session, request: ReadRequest, name: str) -> Any:
    return move_facts.stun_estimates(session, request.hosts[name], name)


def _rules(session: Session, _request: ReadRequest, name: str) -> object:
    """Return the rules for a set that has no workers: only the rules of other clients are read."""
    return WorkerRules(session, name, RuleSetSpec("acceptance")).read()


def _cluster(session: Session, _request: ReadRequest, name: str) -> object:
    return ClusterReader(session, name).read(("clocks", "occupied", "vms"))


def _usage(session: Session, request: ReadRequest, name: str) -> object:
    return gpu_usage.GpuUsage(session, gpu_usage.UsageOptions(name, request.hours, gpu_usage.FOLDER)).read()


def _fabric(session: Session, request: ReadRequest, name: str) -> object:
    return Fabric(session, FabricSpec(name, request.switch)).info()


def _image(session: Session, request: ReadRequest, name: str) -> object:
    moid = id_of(request.clusters[name])
    with rest.opened(session) as api:
        image = cluster_image.ClusterImage(api, moid, name, cluster_image.ImageSpec()).read()
        if not image["managed"]:
            return image
        hosts = host_image.ImageOfHosts(api, moid, name, host_image.ApplyOptions())
        hosts.look()
        policy = remediation.read_policy(api, moid, name)
        return {**image, "hosts": hosts.by_host, "policy": policy, "running": remediation.running(api, moid, name)}


def _worker_cluster(session: Session, request: ReadRequest, name: str) -> object:
    cluster = WorkerCluster(session, name)
    cluster.refresh(request.vms)
    hosts = [host for host in cluster.host_names if host in request.hosts]
    offers = [cluster.target(host) for host in hosts]
    return {"hosts": cluster.hosts, "networks": cluster.networks.all, "offers": offers}


def _workers(session: Session, _request: ReadRequest, _name: str) -> object:
    return existing_workers.read_workers(session)


def _machine(session: Session, request: ReadRequest, name: str) -> Any:
    machines = machine.read(session, [request.vms[name]])
    return [(each.extra, each.cards) for each in machines.values()]


def _runtime(session: Session, request: ReadRequest, name: str) -> object:
    return move_watch.runtime_of(session, request.vms[name])


def _moves(session: Session, request: ReadRequest, name: str) -> object:
    since = host_clocks.server_time(session) - timedelta(days=request.days)
    return move_watch.events_since(session, request.vms[name], name, since)


def _vm_tasks(session: Session, request: ReadRequest, name: str) -> object:
    """Return the tasks of a virtual machine, each with its complete description from vCenter."""
    ref = request.vms[name]
    return recent_tasks.recent(session, [ref]), read_linked(session, [ref], "recentTask", vim.Task, ("info",))


def _lock(session: Session, _request: ReadRequest, name: str) -> object:
    """Return the events of the task that took the lock of a cluster, by their chain; empty if the lock is free."""
    ref, values = inventory.find_cluster(session, name, ("parent",))
    held = LockFolders(session, name, values["parent"], id_of(ref)).read()
    if held.current is None or held.record is None or held.record.free:
        return []
    tasks = read_linked(session, [held.current.ref], "recentTask", vim.Task, ("info",))
    # A task has chain 0 before its event, and chain 0 would match all events.
    chains = [values["info"].eventChainId for _ref, values in tasks if values["info"].eventChainId]
    specs = [vim.event.EventFilterSpec(eventChainId=chain) for chain in chains]
    return [event for spec in specs for event in session.content.eventManager.QueryEvents(spec) or []]


def _tags(session: Session, request: ReadRequest, _name: str) -> Any:
    with rest.opened(session) as api:
        return tags.vm_tags(api, request.tag_category, [id_of(ref) for ref in request.vms.values()])


READERS: tuple[Reader, ...] = (
    *GROUPS,
    Reader("esxi_info: management", HOST, partial(read_group, host_info.MANAGEMENT)),
    Reader("tasks of a host", HOST, _host_tasks, is_empty=lambda result: not result),
    Reader("stun times of vGPU profiles", HOST, _stun, is_empty=lambda result: not result),
    Reader("cluster_info", CLUSTER, _cluster),
    Reader("gpu_usage", CLUSTER, _usage, is_empty=partial(is_without, "gpus")),
    Reader("rdma_fabric", CLUSTER, _fabric, is_empty=partial(is_without, "switch")),
    Reader("esxi_image", CLUSTER, _image),
    Reader("worker_vm", CLUSTER, _worker_cluster),
    Reader("worker_rules", CLUSTER, _rules),
    Reader("events of the lock", CLUSTER, _lock, is_empty=lambda result: not result),
    Reader("worker_vm_info", VCENTER, _workers, is_empty=lambda result: not result),
    COUNTERS,
    Reader("settings of a virtual machine", VM, _machine),
    Reader("place of a virtual machine", VM, _runtime),
    Reader("events of moves", VM, _moves, is_empty=lambda result: not result),
    Reader("tasks of a virtual machine", VM, _vm_tasks, is_empty=lambda result: not result[0]),
    Reader("tags", VCENTER, _tags, is_requested=lambda request: bool(request.tag_category)),
)
