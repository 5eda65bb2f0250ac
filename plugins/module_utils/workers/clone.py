# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""A new worker: a full or linked clone of a template, in its folder, resource pool and datastore."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import NotFound, Refused
from ..vsphere import properties, tasks
from ..vsphere.escaped_names import plain
from ..vsphere.faults import translating_faults
from ..vsphere.sdk import vim
from . import worker_mark
from .machine import Machine
from .worker_cluster import WorkerCluster
from .worker_spec import WorkerSpec

LINKED = "linked"
FOLDER = ("name", "childType")


@dataclass(frozen=True)
class CloneLocation:
    """The folder, pool and datastore of a clone, and the snapshot of a linked clone."""

    folder: Any
    pool: Any
    datastore: Any
    snapshot: Any = None


def base_of(cluster: WorkerCluster, desired: WorkerSpec) -> Machine:
    """The worker's virtual machine where it exists, else the template that it is cloned from."""
    there = cluster.machines.get(desired.name)
    if there:
        return there
    if not desired["template"]:
        said = "it does not exist, and no template is given"
        raise Refused(desired.name, "make it", said, "name a template, or correct its name")
    return cluster.find(desired["template"], "template")


class CloneLocations:
    """Finds folders, pools and datastores by name, each kind in one read."""

    def __init__(self, cluster: WorkerCluster) -> None:
        self.cluster = cluster
        self._known: dict[Any, Sequence[properties.Found]] = {}

    def find(self, desired: WorkerSpec, template: Machine) -> CloneLocation:
        """The folder, pool, datastore and snapshot of a new worker; a missing one is refused before the first write."""
        folder = self.folder(desired) or template["parent"]
        pool = self._pool(desired["resource_pool"]) if desired["resource_pool"] else self.cluster.values["resourcePool"]
        snapshot = _snapshot(desired, template) if desired["clone"] == LINKED else None
        return CloneLocation(folder, pool, self._datastore(desired, template), snapshot)

    def folder(self, desired: WorkerSpec) -> Any:
        """The folder that a worker names; None where it names none."""
        return self._named(vim.Folder, desired["folder"], "folder") if desired["folder"] else None

    def folder_name(self, ref: Any) -> str | None:
        """The name of a folder; None where this account does not see the folder."""
        found = (values["name"] for one, values in self._all(vim.Folder, FOLDER) if ref and one._moId == ref._moId)
        return next(found, None)

    def _datastore(self, desired: WorkerSpec, template: Machine) -> Any:
        here = {ref._moId: ref for ref in self.cluster.values.get("datastore") or []}
        if desired["datastore"]:
            return self._named(vim.Datastore, desired["datastore"], "datastore", set(here))
        same = [ref for ref in template["datastore"] or [] if ref._moId in here]
        if same:
            return same[0]
        said = f"the datastore of its template is not one of cluster {self.cluster.name}"
        raise Refused(desired.name, "choose its datastore", said, "name a datastore")

    def _pool(self, name: str) -> Any:
        pools = self._all(vim.ResourcePool, ("name", "owner"))
        ours = {ref._moId for ref, values in pools if values["owner"]._moId == self.cluster.ref._moId}
        return self._named(vim.ResourcePool, name, "resource pool", ours)

    def _named(self, kind: Any, name: str, word: str, among: set[str] | None = None) -> Any:
        paths = FOLDER if kind is vim.Folder else ("name", "owner") if kind is vim.ResourcePool else ("name",)
        found = [
            ref
            for ref, values in self._all(kind, paths)
            if values["name"] == plain(name) and (among is None or ref._moId in among) and _holds_machines(values)
        ]
        if len(found) == 1:
            return found[0]
        said = f"{len(found)} have that name" if found else "there is none"
        raise NotFound(self.cluster.session.server, f"find one {word} named {name!r}", said, f"correct the {word}")

    def _all(self, kind: Any, paths: Sequence[str]) -> Sequence[properties.Found]:
        if kind not in self._known:
            self._known[kind] = properties.find_all(self.cluster.session, kind, paths)
        return self._known[kind]


def begin(
    cluster: WorkerCluster, desired: WorkerSpec, template: Machine, location: CloneLocation, host: str
) -> tasks.Started:
    """Begin to clone the template; the task's result is the new machine."""
    # The clone carries its purpose from the start, so that the next run can continue when this run is killed here.
    building = vim.option.OptionValue(key=worker_mark.BUILDING, value=desired.name)
    spec = vim.vm.CloneSpec(
        location=vim.vm.RelocateSpec(
            host=cluster.host_named(host),
            pool=location.pool,
            datastore=location.datastore,
            diskMoveType="createNewChildDiskBacking" if location.snapshot else None,
        ),
        snapshot=location.snapshot,
        powerOn=False,
        template=False,
        config=vim.vm.ConfigSpec(extraConfig=[building]),
    )
    tried = f"clone it from {template.name}"
    with translating_faults(desired.name, tried):
        task = template.ref.CloneVM_Task(folder=location.folder, name=desired.name, spec=spec)
    return tasks.Started(task, desired.name, tried)


def _snapshot(desired: WorkerSpec, template: Machine) -> Any:
    """The snapshot of a linked clone: the named one, or the current one."""
    info = template["snapshot"]
    found = info.currentSnapshot if info else None
    if desired["snapshot"]:
        found = _in_tree(info.rootSnapshotList if info else [], desired["snapshot"])
    if found is None:
        said = f"{template.name} has no snapshot" + (f" named {desired['snapshot']!r}" if desired["snapshot"] else "")
        raise Refused(desired.name, "make a linked clone", said, "take a snapshot of it, or choose clone: full")
    return found


def _in_tree(trees: Any, name: str) -> Any:
    for tree in trees or []:
        found = tree.snapshot if tree.name == name else _in_tree(tree.childSnapshotList, name)
        if found:
            return found
    return None


def _holds_machines(values: properties.Values) -> bool:
    return "childType" not in values or "VirtualMachine" in [str(kind) for kind in values["childType"]]
