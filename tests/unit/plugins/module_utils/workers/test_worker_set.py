"""The workers of a call: their hosts, their MAC addresses, and their demands."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.workers import clone, worker_demand, worker_power
from plugins.module_utils.workers.context import Context
from plugins.module_utils.workers.worker_set import WorkerSet
from plugins.module_utils.workers.worker_spec import Gpu, PendingPreparation, WorkerSetOptions, WorkerSpec
from tests.fakes import hardware
from tests.fakes.worker_cluster import RDMA_GROUP, FakeWorkerCluster, groups_of, machine, plain_card, rdma_card

T4 = (Gpu("grid_t4-16c"),)
NICS = [{"portgroup": RDMA_GROUP}]
PAIR = "Nvidia:2@grid_t4-8c%NVLink"
BARE = {"config__graphicsInfo": [hardware.graphics(graphicsType="basic")], "config__sharedPassthruGpuTypes": []}


def desired(name: str = "w1", gpus: Any = T4, **given: Any) -> WorkerSpec:
    return WorkerSpec(name, {"template": "golden", "reserve_memory": True, **given}, gpus)


def context(cluster: FakeWorkerCluster, *workers: WorkerSpec, **call: Any) -> Context:
    return Context(cluster, WorkerSetOptions("gpu", **call), clone.CloneLocations(cluster), specs=workers)


def assigned(cluster: FakeWorkerCluster, *workers: WorkerSpec, **call: Any) -> WorkerSet:
    made = WorkerSet(context(cluster, *workers, **call))
    made.refresh(workers)
    return made


def hosts_of(workers: WorkerSet) -> list[str]:
    return [one.host for one in workers.assignments.values()]


def test_assigns_separate_hosts_and_addresses_to_workers() -> None:
    cluster = FakeWorkerCluster(machine("golden"))
    there = assigned(cluster, desired("w1", rdma_nics=NICS), desired("w2", rdma_nics=NICS))
    assert sorted(hosts_of(there)) == ["esx1", "esx2"]
    macs = [mac for one in there.assignments.values() for mac in one.macs.values()]
    assert len(set(macs)) == 4
    assert cluster.refreshed == [{"w1", "w2", "golden"}]


def test_a_worker_stays_on_its_host() -> None:
    there = assigned(FakeWorkerCluster(machine("w2", hardware.vgpu(), host="host-2"), machine("golden")), desired("w2"))
    assert hosts_of(there) == ["esx2"]


def test_workers_go_to_the_allowed_hosts() -> None:
    cluster = FakeWorkerCluster(machine("golden"), hosts=3)
    assert hosts_of(assigned(cluster, desired(), hosts=("esx3",))) == ["esx3"]
    assert hosts_of(assigned(cluster, desired(host="esx2"), hosts=("esx3",))) == ["esx2"]
    with pytest.raises(Refused, match="find esx9: it has esx1, esx2, esx3; correct the names of hosts"):
        assigned(cluster, desired(host="esx9"))


def test_does_not_reassign_a_used_mac_address() -> None:
    def mac(cluster: FakeWorkerCluster) -> str:
        return assigned(cluster, desired(rdma_nics=NICS)).assignments["w1"].macs["rdma_nics 0"]

    first = mac(FakeWorkerCluster(machine("golden")))
    others = FakeWorkerCluster(machine("golden"), running=[machine("v1", plain_card(mac=first.upper()))])
    own = FakeWorkerCluster(machine("golden"), machine("w1", rdma_card(mac=first)))

    assert mac(others) != first
    assert mac(own) == first, "the card of this place in the options keeps its address"


def test_equal_names_in_other_clusters_get_different_addresses() -> None:
    places = [("52 1", "gpu"), ("52 1", "staging"), ("52 2", "gpu")]
    chosen = []
    for uuid, name in places:
        cluster = FakeWorkerCluster(machine("golden"))
        cluster.session.uuid, cluster.name = uuid, name  # type: ignore[misc]
        chosen += assigned(cluster, desired(rdma_nics=NICS)).assignments["w1"].macs.values()
    assert len(chosen) == len(set(chosen)) == 6


def test_does_not_place_workers_that_are_removed() -> None:
    there = assigned(FakeWorkerCluster(hosts=0), desired(), state="absent")
    assert there.assignments["w1"].host == ""
    cluster = FakeWorkerCluster()
    WorkerSet(context(cluster, desired())).refresh([])
    assert cluster.refreshed == []


def test_reads_device_groups_only_if_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, requested = FakeWorkerCluster(machine("golden")), list[str]()
    monkeypatch.setattr(cluster, "groups", lambda host: requested.append(host) or [PAIR])
    assert assigned(cluster, desired()).assignments["w1"].refusal == ""
    assert requested == []
    assert assigned(cluster, desired(gpus=(Gpu(group=PAIR),))).assignments["w1"].refusal == ""
    assert requested == ["esx1", "esx2"]


def test_a_guest_without_an_address_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    there = WorkerSet(context(FakeWorkerCluster(machine("golden")), desired("w1"), desired("w2")))
    there.assignments["w1"].started = machine("w1")
    waited = list[list[str]]()
    monkeypatch.setattr(
        worker_power, "without_address", lambda some, _s, _t: waited.append([one.name for one in some]) or {"w1"}
    )
    there.refresh(["something"])
    assert waited == [["w1"]]
    assert {name: one.silent for name, one in there.assignments.items()} == {"w1": True, "w2": False}


def test_places_workers_on_gpus_to_be_prepared() -> None:
    cluster = FakeWorkerCluster(machine("golden"), **BARE)
    assert assigned(cluster, desired()).assignments["w1"].refusal
    assert hosts_of(assigned(cluster, desired(), to_come=PendingPreparation(gpus=True))) == ["esx1"]


def test_defaults_to_gpus_of_machine_or_template() -> None:
    cluster = FakeWorkerCluster(
        machine("w1", hardware.vgpu("grid_t4-8c")), machine("golden", hardware.vgpu("grid_t4-16c"))
    )
    assert worker_demand.gpus_of(cluster, desired(gpus=None)) == (Gpu("grid_t4-8c"),)
    assert worker_demand.gpus_of(cluster, desired("w2", None)) == (Gpu("grid_t4-16c"),)
    assert worker_demand.gpus_of(cluster, desired("w2", ())) == ()
    assert worker_demand.gpus_of(cluster, desired("w2", None, template=None)) == ()


def test_demand_comes_from_options_or_the_machine() -> None:
    cluster = FakeWorkerCluster(machine("w1", hardware.vgpu()))
    there = worker_demand.placement_worker(cluster, desired(), None)
    assert (there.at, there.settled, there.demand.memory_mb, there.demand.cpus) == ("esx1", True, 8192, 4)
    more = worker_demand.placement_worker(cluster, desired(memory_mb=16384, cpus=8), frozenset({"esx2"}))
    assert (more.demand.memory_mb, more.demand.cpus, more.hosts) == (16384, 8, {"esx2"})
    other = worker_demand.placement_worker(cluster, desired(gpus=(Gpu("grid_t4-8c"),)), None)
    assert (other.at, other.settled) == ("esx1", False)


def test_unreserved_memory_is_not_in_the_demand() -> None:
    loose = machine("w1", config__memoryReservationLockedToMax=False, config__memoryAllocation__reservation=0)
    cluster = FakeWorkerCluster(loose)
    assert worker_demand.placement_worker(cluster, desired(reserve_memory=False), None).demand.memory_mb == 0
    assert worker_demand.placement_worker(cluster, desired(), None).demand.memory_mb == 8192


def test_linked_gpus_are_demanded_as_a_group() -> None:
    linked = groups_of(machine("w1", hardware.vgpu("grid_t4-8c", 1), hardware.vgpu("grid_t4-8c", 1)), **{PAIR: 1})
    there = worker_demand.placement_worker(FakeWorkerCluster(linked), desired(gpus=None), None)
    assert (there.demand.groups, there.demand.vgpus, there.settled) == ((PAIR,), ("grid_t4-8c",) * 2, True)


def test_missing_preparations_are_listed() -> None:
    coming = PendingPreparation(("storage",), gpus=True)
    given = {"rdma_nics": [{"portgroup": "storage"}], "management_nic": {"portgroup": RDMA_GROUP}}
    cluster = FakeWorkerCluster(machine("golden"), **BARE)
    assert worker_demand.missing_preparations(context(cluster, to_come=coming), desired(**given), "esx1") == [
        "port group storage",
        "the GPUs of esx1",
    ]
    assert worker_demand.missing_preparations(context(cluster), desired(), "esx1") == []
    assert worker_demand.missing_preparations(context(FakeWorkerCluster(), to_come=coming), desired(), "esx1") == []
