# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Every reader of the collection, each callable for one object of a site."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from ...cluster.cluster_info import ClusterReader
from ...fabric.fabric import Fabric
from ...fabric.fabric_spec import FabricSpec
from ...hosts import cluster_image, host_info
from ...maintenance import recent_tasks
from ...maintenance.lock.folders import LockFolders
from ...usage import gpu_usage
from ...vmotion.move import move_facts, move_watch
from ...vsphere import counters, host_clocks, inventory, rest, tags
from ...vsphere.properties import id_of, read_linked
from ...vsphere.sdk import vim
from ...vsphere.session import Session
from ...workers import existing_workers, machine
from ...workers.placement.rule_set import RuleSetSpec
from ...workers.rules.worker_rules import WorkerRules
from ...workers.worker_cluster import WorkerCluster

HOST, CLUSTER, VM, VCENTER = "host", "cluster", "virtual machine", "vCenter"


@dataclass(frozen=True)
class Question:
    """What is read: the objects by name, the days of events, the hours of counters, and the RDMA switch."""

    hosts: Mapping[str, Any]
    vms: Mapping[str, Any]
    clusters: Mapping[str, Any]
    tag_category: str = ""
    switch: str = "rdma"
    days: float = 7.0
    hours: float = 1.0

    def of(self, kind: str) -> Mapping[str, Any]:
        """The objects of a kind by name."""
        return {HOST: self.hosts, CLUSTER: self.clusters, VM: self.vms, VCENTER: {VCENTER: None}}[kind]


@dataclass(frozen=True)
class Reader:
    """One reader: its name, the kind of object that it is for, and whether preflight uses it too.

    ``is_empty`` tells from what it read that the object has nothing of the kind; ``is_asked``, whether it can be used
    for a question at all.
    """

    name: str
    of: str
    read: Callable[[Session, Question, str], Any]
    short: bool = False
    is_empty: Callable[[Any], bool] = lambda _result: False
    is_asked: Callable[[Question], bool] = lambda _question: True


class Unread(Exception):
    """A reader that gives its errors as a part of its result said this one."""


def _group(group: str, session: Session, question: Question, name: str) -> Any:
    """A group of settings of a host, as esxi_info reads it."""
    host = inventory.Host(session, question.hosts[name], name)
    (entry,) = host_info.gather(inventory.HostSet(session, [host], host_info.paths([group])), [group])
    if entry.get("failed"):
        raise Unread(entry["msg"])
    return entry


def _host_tasks(session: Session, question: Question, name: str) -> Any:
    return recent_tasks.recent(session, [question.hosts[name]])


def _stun(session: Session, question: Question, name: str) -> Any:
    return move_facts.stun_estimates(session, question.hosts[name], name)


def _rules(session: Session, _question: Question, name: str) -> Any:
    """The rules of a set of workers that nobody has: all that is read for it are those of others."""
    return WorkerRules(session, name, RuleSetSpec("acceptance")).read()


def _cluster(session: Session, _question: Question, name: str) -> Any:
    return ClusterReader(session, name).read(("clocks", "vms"))


def _usage(session: Session, question: Question, name: str) -> Any:
    return gpu_usage.GpuUsage(session, gpu_usage.UsageOptions(name, question.hours, gpu_usage.FOLDER)).read()


def _fabric(session: Session, question: Question, name: str) -> Any:
    return Fabric(session, FabricSpec(name, question.switch)).info()


def _image(session: Session, question: Question, name: str) -> Any:
    desired = cluster_image.ComponentSpec(component="", state="absent")
    with rest.opened(session) as api:
        return cluster_image.ClusterImage(api, id_of(question.clusters[name]), name, desired).read()


def _site(session: Session, question: Question, name: str) -> Any:
    site = WorkerCluster(session, name)
    site.refresh(question.vms)
    hosts = [host for host in site.host_names if host in question.hosts]
    return {"hosts": site.hosts, "networks": site.networks.all, "offers": [site.target(one) for one in hosts]}


def _workers(session: Session, _question: Question, _name: str) -> Any:
    return existing_workers.read_workers(session)


def _machine(session: Session, question: Question, name: str) -> Any:
    read = machine.read(session, [question.vms[name]])
    return [(one.extra, one.cards) for one in read.values()]


def _place(session: Session, question: Question, name: str) -> Any:
    return move_watch.runtime_of(session, question.vms[name])


def _moves(session: Session, question: Question, name: str) -> Any:
    since = host_clocks.server_time(session) - timedelta(days=question.days)
    return move_watch.events_since(session, question.vms[name], name, since)


def _vm_tasks(session: Session, question: Question, name: str) -> Any:
    """The tasks of a virtual machine, each with all that vCenter says of it."""
    ref = question.vms[name]
    return recent_tasks.recent(session, [ref]), read_linked(session, [ref], "recentTask", vim.Task, ("info",))


def _lock(session: Session, _question: Question, name: str) -> Any:
    """The events of the task that took the lock of a cluster, by their chain; nothing while nobody holds it."""
    ref, values = inventory.find_cluster(session, name, ("parent",))
    held = LockFolders(session, name, values["parent"], id_of(ref)).read()
    if held.current is None or held.record is None or held.record.free:
        return []
    tasks = read_linked(session, [held.current.ref], "recentTask", vim.Task, ("info",))
    # Chain 0, which a task has before its event, would match all events.
    chains = [one["info"].eventChainId for _ref, one in tasks if one["info"].eventChainId]
    specs = [vim.event.EventFilterSpec(eventChainId=chain) for chain in chains]
    return [event for spec in specs for event in session.content.eventManager.QueryEvents(spec) or []]


def _counters(session: Session, _question: Question, _name: str) -> Any:
    return counters.catalogue(session, "gpu")


def _tags(session: Session, question: Question, _name: str) -> Any:
    with rest.opened(session) as api:
        return tags.vm_tags(api, question.tag_category, [id_of(ref) for ref in question.vms.values()])


def _nothing(key: str, result: Any) -> bool:
    found_there = result.get(key) if isinstance(result, Mapping) else result
    return not found_there


_GROUPS: Sequence[tuple[str, str]] = tuple((name, group.shows) for name, group in host_info.GROUPS.items())
_OF_WHAT = {"graphics": "gpus", "rdma": "rdma_devices"}
READERS: tuple[Reader, ...] = (
    *(
        Reader(
            f"esxi_info: {name}",
            HOST,
            partial(_group, name),
            short=True,
            is_empty=partial(_nothing, _OF_WHAT[name]) if name in _OF_WHAT else lambda _result: False,
        )
        for name, _shows in _GROUPS
    ),
    Reader("esxi_info: management", HOST, partial(_group, host_info.MANAGEMENT)),
    Reader("tasks of a host", HOST, _host_tasks, is_empty=lambda result: not result),
    Reader("stun times of vGPU profiles", HOST, _stun, is_empty=lambda result: not result),
    Reader("cluster_info", CLUSTER, _cluster),
    Reader("gpu_usage_info", CLUSTER, _usage, is_empty=partial(_nothing, "gpus")),
    Reader("rdma_fabric_info", CLUSTER, _fabric, is_empty=partial(_nothing, "switch")),
    Reader("esxi_image", CLUSTER, _image),
    Reader("worker_vm", CLUSTER, _site),
    Reader("worker_rules", CLUSTER, _rules),
    Reader("events of the lock", CLUSTER, _lock, is_empty=lambda result: not result),
    Reader("worker_vm_info", VCENTER, _workers, is_empty=lambda result: not result),
    Reader("counters of GPUs", VCENTER, _counters, short=True, is_empty=lambda result: not result.counters),
    Reader("settings of a virtual machine", VM, _machine),
    Reader("place of a virtual machine", VM, _place),
    Reader("events of moves", VM, _moves, is_empty=lambda result: not result),
    Reader("tasks of a virtual machine", VM, _vm_tasks, is_empty=lambda result: not result[0]),
    Reader("tags", VCENTER, _tags, is_asked=lambda question: bool(question.tag_category)),
)


def chosen(question: Question, *, short: bool) -> list[tuple[Reader, str]]:
    """Each reader with each object that it is for."""
    return [
        (reader, name)
        for reader in READERS
        if (reader.short or not short) and reader.is_asked(question)
        for name in sorted(question.of(reader.of))
    ]
