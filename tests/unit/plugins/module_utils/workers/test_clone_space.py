"""The space of new workers on their datastores."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.errors import Refused
from plugins.module_utils.vsphere import properties
from plugins.module_utils.workers import clone, worker_set
from plugins.module_utils.workers.context import Context
from plugins.module_utils.workers.worker_spec import WorkerSetOptions, WorkerSpec
from tests.fakes.worker_cluster import STORE, FakeWorkerCluster, machine

GIB = 1 << 30
GIVEN = {"template": "golden", "clone": "full", "reserve_memory": True}


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The properties of a template that takes 20 GiB, and of a datastore with 50 GiB free."""
    values: dict[str, Any] = {
        "vm-golden": {"summary.storage.committed": 20 * GIB},
        STORE._moId: {"name": "vsan", "summary.freeSpace": 50 * GIB},
    }
    monkeypatch.setattr(properties, "read_many", lambda _s, refs, _p: {one._moId: values[one._moId] for one in refs})
    monkeypatch.setattr(properties, "find_all", lambda *_given: [])
    return values


def shortage(*names: str, there: tuple[str, ...] = (), **given: Any) -> str:
    """Return the refusal of workers; empty if they have room."""
    cluster = FakeWorkerCluster(machine("golden"), *(machine(name) for name in there))
    specs = [WorkerSpec(name, {**GIVEN, **given}) for name in names]
    context = Context(cluster, WorkerSetOptions("gpu"), clone.CloneLocations(cluster), specs=specs)
    try:
        worker_set.refuse_shortage(context)
    except Refused as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("names", "more", "refused"),
    [
        (("w1", "w2"), {}, ""),
        (("w1", "w2", "w3"), {}, "vsan: could not hold w1, w2, w3: they need 60.0 GiB, and it has 50.0 GiB free"),
        (("w1", "w2", "w3"), {"there": ("w1",)}, ""),
        (("w1", "w2"), {"reserve_memory": False, "memory_mb": 8192}, "they need 56.0 GiB"),
        (("w1", "w2", "w3"), {"clone": "linked"}, ""),
        (("w1", "w2", "w3"), {"folder": "nowhere"}, ""),
    ],
)
def test_new_workers_must_fit_their_datastore(names: tuple[str, ...], more: dict[str, Any], refused: str) -> None:
    found = shortage(*names, **more)
    assert refused in found and bool(refused) == bool(found)


def test_all_datastores_of_a_cluster_count(server: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    pod, other = vim.StoragePod("group-p1"), vim.Datastore("datastore-2")
    known = {vim.Datastore: [], vim.StoragePod: [(pod, {"name": "pod", "childEntity": [STORE, other]})]}
    monkeypatch.setattr(properties, "find_all", lambda _session, kind, _paths: known[kind])
    server.update({pod._moId: known[vim.StoragePod][0][1], other._moId: {"summary.freeSpace": 20 * GIB}})
    assert shortage("w1", "w2", "w3", datastore="pod") == ""
    assert "pod: could not hold w1, w2, w3, w4: they need 80.0 GiB, and it has 70.0 GiB free" in shortage(
        "w1", "w2", "w3", "w4", datastore="pod"
    )


def test_an_unknown_size_refuses_nothing(server: dict[str, Any]) -> None:
    server["vm-golden"] = {}
    assert shortage("w1", "w2", "w3") == ""
    placeholder = machine("golden")
    placeholder.ref = SimpleNamespace(_moId="")
    cluster = FakeWorkerCluster(placeholder)
    context = Context(cluster, WorkerSetOptions("gpu"), clone.CloneLocations(cluster), specs=[WorkerSpec("w1", GIVEN)])
    worker_set.refuse_shortage(context)
    assert isinstance(STORE, vim.Datastore)
