"""The location and the first settings of a new worker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.errors import Failed, NotFound, Refused
from plugins.module_utils.vsphere import properties
from plugins.module_utils.workers import clone
from plugins.module_utils.workers.worker_spec import WorkerSpec
from tests.fakes.worker_cluster import STORE, FakeWorkerCluster, disk, machine, with_values

POD = vim.StoragePod("group-p1")
ELSEWHERE = vim.Datastore("datastore-9")
GIVEN = {"template": "golden", "clone": "full", "folder": None, "resource_pool": None, "datastore": None}
OURS, THEIRS = vim.ClusterComputeResource("cluster-1"), vim.ClusterComputeResource("cluster-2")
INVENTORY: dict[Any, list[tuple[Any, dict[str, Any]]]] = {
    vim.Folder: [
        (vim.Folder("folder-5"), {"name": "training", "childType": ["Folder", "VirtualMachine"]}),
        (vim.Folder("folder-6"), {"name": "training", "childType": ["Network"]}),
        (vim.Folder("folder-7"), {"name": "double", "childType": ["VirtualMachine"]}),
        (vim.Folder("folder-8"), {"name": "double", "childType": ["VirtualMachine"]}),
    ],
    vim.ResourcePool: [
        (vim.ResourcePool("pool-5"), {"name": "gpus", "owner": OURS}),
        (vim.ResourcePool("pool-6"), {"name": "gpus", "owner": THEIRS}),
        (vim.ResourcePool("pool-7"), {"name": "far", "owner": THEIRS}),
    ],
    vim.Datastore: [(STORE, {"name": "vsan"}), (ELSEWHERE, {"name": "nfs"})],
    vim.StoragePod: [
        (POD, {"name": "pod", "childEntity": [STORE, ELSEWHERE]}),
        (vim.StoragePod("group-p2"), {"name": "far pod", "childEntity": [ELSEWHERE]}),
    ],
}


@pytest.fixture(autouse=True)
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The types of objects that were listed."""
    listed = list[Any]()

    def find_all(_session: Any, kind: Any, paths: Any) -> list[tuple[Any, dict[str, Any]]]:
        listed.append(kind)
        return [(ref, {path: values[path] for path in paths}) for ref, values in INVENTORY[kind]]

    monkeypatch.setattr(properties, "find_all", find_all)
    return listed


def location_of(
    template: Any = None, locations: clone.CloneLocations | None = None, **given: Any
) -> clone.CloneLocation:
    return (locations or clone.CloneLocations(FakeWorkerCluster())).find(
        WorkerSpec("w1", {**GIVEN, **given}), template or machine("golden")
    )


def template_with(snapshots: Any) -> Any:
    return with_values(machine("golden"), {"snapshot": snapshots})


def tree(name: str, ref: str, *children: Any) -> Any:
    return SimpleNamespace(name=name, snapshot=vim.vm.Snapshot(ref), childSnapshotList=list(children))


def test_places_a_clone_next_to_its_template(reads: list[Any]) -> None:
    location = location_of()
    assert (location.folder._moId, location.pool._moId, location.datastore, location.snapshot) == (
        "folder-1",
        "pool-1",
        STORE,
        None,
    )
    assert reads == []


def test_finds_folder_pool_and_datastore_of_a_clone() -> None:
    location = location_of(folder="training", resource_pool="gpus", datastore="vsan")
    assert (location.folder._moId, location.pool._moId, location.datastore) == ("folder-5", "pool-5", STORE)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"folder": "nowhere"}, "find one folder named 'nowhere': there is none; correct the folder"),
        ({"folder": "double"}, "find one folder named 'double': 2 objects have that name"),
        ({"resource_pool": "far"}, "find one resource pool named 'far': there is none"),
        ({"datastore": "nfs"}, "find one datastore named 'nfs': there is none"),
    ],
)
def test_refuses_missing_ambiguous_and_foreign_names(given: dict[str, str], expected: str) -> None:
    with pytest.raises(NotFound, match=expected):
        location_of(**given)


def test_requires_a_datastore_if_the_templates_is_foreign() -> None:
    far = with_values(machine("golden"), {"datastore": [ELSEWHERE]})
    with pytest.raises(
        Refused, match="w1: could not choose its datastore: the datastore of its template is not one of"
    ):
        location_of(far)
    assert location_of(far, datastore="vsan").datastore == STORE


def test_many_workers_list_each_kind_once(reads: list[Any]) -> None:
    locations = clone.CloneLocations(FakeWorkerCluster())
    for _worker in range(3):
        location_of(locations=locations, folder="training", datastore="vsan")
    assert reads == [vim.Folder, vim.Datastore]


def test_linked_clone_uses_the_current_or_named_snapshot() -> None:
    info = SimpleNamespace(
        currentSnapshot=vim.vm.Snapshot("snapshot-2"),
        rootSnapshotList=[tree("base", "snapshot-1", tree("drivers", "snapshot-2", tree("cuda", "snapshot-3")))],
    )
    assert location_of(template_with(info), clone="linked", snapshot=None).snapshot._moId == "snapshot-2"
    assert location_of(template_with(info), clone="linked", snapshot="cuda").snapshot._moId == "snapshot-3"


def test_a_linked_clone_without_its_snapshot_is_refused() -> None:
    with pytest.raises(Refused, match="golden has no snapshot; take a snapshot of it, or choose clone: full"):
        location_of(template_with(None), clone="linked", snapshot=None)
    none = SimpleNamespace(currentSnapshot=None, rootSnapshotList=[])
    with pytest.raises(Refused, match="golden has no snapshot named 'cuda'"):
        location_of(template_with(none), clone="linked", snapshot="cuda")


def test_clone_has_marker_and_record_and_stays_off(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, requested = FakeWorkerCluster(), dict[str, Any]()

    def clone_task(**given: Any) -> str:
        requested.update(given)
        return "task-1"

    golden = machine("golden")
    golden.ref = SimpleNamespace(CloneVM_Task=clone_task)
    of_snapshot = {"snapshot-1": {"config.hardware.device": [disk("golden"), disk("golden", "golden_1.vmdk", 1)]}}
    monkeypatch.setattr(properties, "read_many", lambda _session, _refs, _paths: of_snapshot)
    location = clone.CloneLocation(
        vim.Folder("folder-5"), vim.ResourcePool("pool-5"), STORE, vim.vm.Snapshot("snapshot-1")
    )
    started = clone.begin(cluster, WorkerSpec("w1", GIVEN), golden, location, "esx2")
    spec = requested["spec"]
    assert (started.task, started.target, started.tried) == ("task-1", "w1", "clone it from golden")
    assert (requested["name"], requested["folder"]._moId, spec.powerOn, spec.template) == (
        "w1",
        "folder-5",
        False,
        False,
    )
    assert (spec.location.host._moId, spec.location.diskMoveType) == ("host-2", "createNewChildDiskBacking")
    assert {one.key: one.value for one in spec.config.extraConfig} == {
        clone.worker_mark.BUILDING: "w1",
        clone.foreign_disks.RECORD: '["place 1000:0 10485760 KB", "place 1000:1 10485760 KB"]',
    }


def test_a_clone_goes_to_the_recommended_datastore_of_a_cluster() -> None:
    location = location_of(datastore="pod")
    assert (location.pod, location.datastore) == (POD, None)
    requests, requested = list[Any](), dict[str, Any]()

    def recommended(*places: Any) -> Any:
        actions = [SimpleNamespace(action=[SimpleNamespace(destination=place)]) for place in places]
        return SimpleNamespace(recommendations=actions, drsFault=None)

    def clone_by(*places: Any) -> None:
        cluster, golden = FakeWorkerCluster(), machine("golden")
        manager = SimpleNamespace(RecommendDatastores=lambda spec: requests.append(spec) or recommended(*places))
        cluster.session.content = SimpleNamespace(storageResourceManager=manager)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(golden.ref), "CloneVM_Task", lambda _vm, **given: requested.update(given))
            clone.begin(cluster, WorkerSpec("w1", {**GIVEN, "datastore": "pod"}), golden, location, "esx2")

    clone_by(ELSEWHERE, STORE)
    assert requested["spec"].location.datastore == STORE, "hosts of the cluster do not have the first one"
    assert (requests[0].type, requests[0].cloneName, requests[0].podSelectionSpec.storagePod) == ("clone", "w1", POD)
    with pytest.raises(Failed, match="w1: could not ask for a datastore of the datastore cluster pod"):
        clone_by(ELSEWHERE)


def test_a_datastore_has_the_name_before_a_cluster() -> None:
    assert location_of(datastore="vsan").pod is None
    with pytest.raises(NotFound, match="find one datastore named 'far pod'"):
        location_of(datastore="far pod")
