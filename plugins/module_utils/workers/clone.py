"""A new worker: a full or linked clone of a template, in its folder, resource pool and datastore."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import Failed, NotFound, Refused
from ..vsphere import properties, tasks
from ..vsphere.escaped_names import plain
from ..vsphere.faults import translating_faults
from ..vsphere.libraries import LibraryItem
from ..vsphere.sdk import ApiObject, vim
from . import encryption, foreign_disks, library_items, worker_mark
from .machine import Machine
from .worker_cluster import WorkerCluster
from .worker_spec import WorkerSpec

LINKED = "linked"
FOLDER = ("name", "childType")
POD = ("name", "childEntity")


@dataclass(frozen=True)
class CloneLocation:
    """The folder, pool and datastore of a clone, and the snapshot of a linked clone.

    Without a datastore, vCenter recommends one of the datastore cluster ``pod``. ``profile`` is the identifier of the
    storage policy.
    """

    folder: Any
    pool: Any
    datastore: Any
    snapshot: Any = None
    pod: Any = None
    profile: str = ""


def base_of(cluster: WorkerCluster, desired: WorkerSpec) -> Machine:
    """Return the worker's virtual machine, or, if it does not exist, the template to clone."""
    there = cluster.machines.get(desired.name)
    if there:
        return there
    if not desired["template"]:
        reason = "it does not exist, and no template is set"
        raise Refused(desired.name, "create it", reason, "name a template, or correct its name")
    return cluster.find(desired["template"], "template")


class CloneLocations:
    """The folders, pools and datastores by name; each type is read once."""

    def __init__(self, cluster: WorkerCluster) -> None:
        self.cluster = cluster
        self._known: dict[Any, Sequence[properties.Found]] = {}

    def find(self, desired: WorkerSpec, template: Machine) -> CloneLocation:
        """Return the location of a new worker; a missing object is refused before the first write."""
        folder = self.folder(desired) or template["parent"]
        pool = self._pool(desired["resource_pool"]) if desired["resource_pool"] else self.cluster.values["resourcePool"]
        snapshot = _snapshot(desired, template) if desired["clone"] == LINKED else None
        pod = self._pod(desired)
        return CloneLocation(folder, pool, None if pod else self._datastore(desired, template), snapshot, pod)

    def _pod(self, desired: WorkerSpec) -> ApiObject:
        """Return the datastore cluster in the options of a worker; None if a datastore has that name."""
        name, here = desired["datastore"], {ref._moId for ref in self.cluster.values.get("datastore") or []}
        stores = self._all(vim.Datastore, ("name",)) if name else []
        if not name or any(values["name"] == plain(name) and ref._moId in here for ref, values in stores):
            return None
        pods = [pod for pod in self._all(vim.StoragePod, POD) if pod[1]["name"] == plain(name)]
        ours = [ref for ref, values in pods if here & {one._moId for one in values.get("childEntity") or []}]
        return ours[0] if len(ours) == 1 else None

    def folder(self, desired: WorkerSpec) -> ApiObject:
        """Return the folder in the options of a worker; None if the option is not set."""
        return self._named(vim.Folder, desired["folder"], "folder") if desired["folder"] else None

    def folder_name(self, ref: ApiObject) -> str | None:
        """Return the name of a folder; None if this account cannot read the folder."""
        names = (
            values["name"] for folder, values in self._all(vim.Folder, FOLDER) if ref and folder._moId == ref._moId
        )
        return next(names, None)

    def datastore_of_item(self, desired: WorkerSpec) -> ApiObject:
        """Return the datastore for the template that is made of an item of a content library."""
        here = self.cluster.values.get("datastore") or []
        if len(here) == 1 or desired["datastore"]:
            return self._datastore(desired, Machine(self.cluster.session, None, {"datastore": here}))
        reason = (
            f"its template comes from a content library, and cluster {self.cluster.name} has {len(here)} datastores"
        )
        raise Refused(desired.name, "choose its datastore", reason, "name a datastore")

    def _datastore(self, desired: WorkerSpec, template: Machine) -> ApiObject:
        here = {ref._moId: ref for ref in self.cluster.values.get("datastore") or []}
        if desired["datastore"]:
            return self._named(vim.Datastore, desired["datastore"], "datastore", set(here))
        same = [ref for ref in template["datastore"] or [] if ref._moId in here]
        if same:
            return same[0]
        reason = f"the datastore of its template is not one of cluster {self.cluster.name}"
        raise Refused(desired.name, "choose its datastore", reason, "name a datastore")

    def _pool(self, name: str) -> ApiObject:
        pools = self._all(vim.ResourcePool, ("name", "owner"))
        ours = {ref._moId for ref, values in pools if values["owner"]._moId == self.cluster.ref._moId}
        return self._named(vim.ResourcePool, name, "resource pool", ours)

    def _named(self, kind: object, name: str, word: str, among: set[str] | None = None) -> ApiObject:
        paths = FOLDER if kind is vim.Folder else ("name", "owner") if kind is vim.ResourcePool else ("name",)
        matches = [
            ref
            for ref, values in self._all(kind, paths)
            if values["name"] == plain(name) and (among is None or ref._moId in among) and _holds_machines(values)
        ]
        if len(matches) == 1:
            return matches[0]
        reason = f"{len(matches)} objects have that name" if matches else "there is none"
        raise NotFound(self.cluster.session.server, f"find one {word} named {name!r}", reason, f"correct the {word}")

    def _all(self, kind: object, paths: Sequence[str]) -> Sequence[properties.Found]:
        if kind not in self._known:
            self._known[kind] = properties.find_all(self.cluster.session, kind, paths)
        return self._known[kind]


def begin(
    cluster: WorkerCluster,
    desired: WorkerSpec,
    template: Machine,
    location: CloneLocation,
    host: str,
    item: LibraryItem | None = None,
) -> tasks.Started:
    """Start to clone the template; the result of the task is the new machine."""
    spec = _spec(cluster, desired, template, location, host, item)
    if location.pod:
        spec.location.datastore = _recommended(cluster, desired, template, location, spec)
    if location.profile:
        _set_profile(spec.location, template, location.profile)
    tried = f"clone it from {template.name}"
    with translating_faults(desired.name, tried):
        task = template.ref.CloneVM_Task(folder=location.folder, name=desired.name, spec=spec)
    return tasks.Started(task, desired.name, tried)


def _spec(
    cluster: WorkerCluster,
    desired: WorkerSpec,
    template: Machine,
    location: CloneLocation,
    host: str,
    item: LibraryItem | None,
) -> ApiObject:
    # The clone has the marker from the start, so that the next run can continue if this run is killed here.
    options = {
        worker_mark.BUILDING: desired.name,
        foreign_disks.RECORD: foreign_disks.record_of_clone(template, location.snapshot),
        **({library_items.RECORD: library_items.record_of(item)} if item else {}),
    }
    return vim.vm.CloneSpec(
        location=vim.vm.RelocateSpec(
            host=cluster.host_named(host),
            pool=location.pool,
            datastore=location.datastore,
            diskMoveType="createNewChildDiskBacking" if location.snapshot else None,
        ),
        snapshot=location.snapshot,
        powerOn=False,
        template=False,
        **encryption.tpm_policy(template),
        config=vim.vm.ConfigSpec(extraConfig=[vim.option.OptionValue(key=key, value=options[key]) for key in options]),
    )


def _set_profile(where: ApiObject, template: Machine, profile: str) -> None:
    """Create the clone with its storage policy, so that nothing is to be moved when it is assigned."""
    where.profile = [vim.vm.DefinedProfileSpec(profileId=profile)]
    where.disk = [
        vim.vm.RelocateSpec.DiskLocator(diskId=disk.key, datastore=where.datastore, profile=where.profile)
        for disk in template.devices(vim.vm.device.VirtualDisk)
    ]


def _recommended(
    cluster: WorkerCluster, desired: WorkerSpec, template: Machine, location: CloneLocation, spec: ApiObject
) -> ApiObject:
    """Return the datastore of a datastore cluster that vCenter recommends first for a clone."""
    kind, pod = vim.storageDrs, location.pod
    config = kind.PodSelectionSpec.VmPodConfig(storagePod=pod)
    request = kind.StoragePlacementSpec(
        type="clone",
        vm=template.ref,
        folder=location.folder,
        cloneName=desired.name,
        cloneSpec=spec,
        resourcePool=location.pool,
        host=spec.location.host,
        podSelectionSpec=kind.PodSelectionSpec(storagePod=pod, initialVmConfig=[config]),
    )
    tried = f"ask for a datastore of the datastore cluster {desired['datastore']}"
    with translating_faults(desired.name, tried):
        answer = cluster.session.content.storageResourceManager.RecommendDatastores(request)
    here = {ref._moId for ref in cluster.values.get("datastore") or []}
    actions = [action for one in answer.recommendations or [] for action in one.action or []]
    places = [action.destination for action in actions if getattr(action, "destination", None)]
    usable = [place for place in places if place._moId in here]
    if not usable:
        fault = answer.drsFault.reason if answer.drsFault else "it recommends none that the cluster has"
        raise Failed(desired.name, tried, fault, "free space there, or name a datastore")
    return usable[0]


def _snapshot(desired: WorkerSpec, template: Machine) -> ApiObject:
    """Return the snapshot of a linked clone: the snapshot with the given name, or the current snapshot."""
    info = template["snapshot"]
    snapshot = info.currentSnapshot if info else None
    if desired["snapshot"]:
        snapshot = _in_tree(info.rootSnapshotList if info else [], desired["snapshot"])
    if snapshot is None:
        reason = f"{template.name} has no snapshot" + (f" named {desired['snapshot']!r}" if desired["snapshot"] else "")
        raise Refused(desired.name, "make a linked clone", reason, "take a snapshot of it, or choose clone: full")
    return snapshot


def _in_tree(trees: ApiObject, name: str) -> ApiObject:
    for tree in trees or []:
        snapshot = tree.snapshot if tree.name == name else _in_tree(tree.childSnapshotList, name)
        if snapshot:
            return snapshot
    return None


def _holds_machines(values: properties.Values) -> bool:
    return "childType" not in values or "VirtualMachine" in [str(kind) for kind in values["childType"]]
