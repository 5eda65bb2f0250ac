"""The workers of a vCenter with the variables of an inventory, and clones that a killed run left."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.vsphere import custom_fields, inventory, properties
from plugins.module_utils.workers import customise, existing_workers, worker_mark
from plugins.module_utils.workers.machine import Machine
from plugins.module_utils.workers.worker_spec import WorkerSpec
from tests.fakes import hardware
from tests.fakes.worker_cluster import machine, plain_card, rdma_card

MARK = 101
CONFIRMATION = worker_mark.CONFIRMATION


def marked(one: Machine, **of: Any) -> dict[str, Any]:
    """Return the properties of a machine with a mark."""
    text = json.dumps({"name": one.name, "cluster": "gpu", "role": "worker", "tenant": "blue", "built": True, **of})
    return {**one.values, "customValue": [vim.CustomFieldsManager.StringValue(key=MARK, value=text)]}


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """The objects of a server, by ID."""
    objects: dict[str, dict[str, Any]] = {"host-1": {"name": "esx1"}, "host-2": {"name": "esx2"}}

    def picked(key: str, paths: Sequence[str]) -> dict[str, Any]:
        return {path: objects[key][path] for path in paths if objects[key].get(path) is not None}

    def find_all(_session: Any, _kind: Any, paths: Sequence[str]) -> list[Any]:
        return [(vim.VirtualMachine(key), picked(key, paths)) for key in objects if key.startswith("vm-")]

    monkeypatch.setattr(properties, "find_all", find_all)
    monkeypatch.setattr(
        properties, "read_many", lambda _s, refs, paths: {one._moId: picked(one._moId, paths) for one in refs}
    )
    monkeypatch.setattr(
        custom_fields, "definitions", lambda _session: [SimpleNamespace(name=worker_mark.ATTRIBUTE, key=MARK)]
    )
    cluster = {"host": [vim.HostSystem("host-1")]}
    monkeypatch.setattr(inventory, "find_cluster", lambda _session, _name, _paths: (None, cluster))
    return objects


SESSION: Any = SimpleNamespace(server="vcenter.lab", api_version=(8, 0, 3))


def test_reads_mark_gpus_and_addresses_of_a_worker(reads: dict[str, dict[str, Any]]) -> None:
    net = [vim.vm.GuestInfo.NicInfo(deviceConfigId=4001, connected=True, ipAddress=["fe80::1", "10.1.0.1"])]
    confirmed = {
        "config__instanceUuid": "50",
        "config__extraConfig": hardware.settings(**{CONFIRMATION: "built 50 w1"}),
    }
    of_guest = {"guest__net": net, "guest__ipAddress": "10.0.0.1", "guest__toolsRunningStatus": "guestToolsRunning"}
    there = machine("w1", rdma_card(), plain_card(), hardware.vgpu(), **of_guest, **confirmed)
    reads["vm-1"] = marked(there)
    reads["vm-2"] = machine("other").values  # type: ignore[assignment]
    (one,) = existing_workers.read_workers(SESSION)
    assert (one["name"], one["ansible_host"], one["vm_host"], one["vm_power"]) == ("w1", "10.0.0.1", "esx1", "on")
    assert (one["vm_profiles"], one["vm_rdma_addresses"]) == (["grid_t4-16c"], ["10.1.0.1"])
    assert one["vm_built"] and one["vm_tools"]
    reads["vm-1"]["config.instanceUuid"] = "51"
    (other,) = existing_workers.read_workers(SESSION)
    assert (other["vm_built"], other["vm_confirmed"]) == (False, False)
    assert list(existing_workers.inventory_groups(one)) == [
        "workers",
        "cluster_gpu",
        "role_worker",
        "tenant_blue",
        "host_esx1",
        "profile_grid_t4-16c",
    ]


def test_sorts_workers_and_omits_those_of_other_clusters(reads: dict[str, dict[str, Any]]) -> None:
    reads["vm-1"], reads["vm-2"] = marked(machine("w2")), marked(machine("w1"))
    reads["vm-3"] = marked(machine("w0"), cluster="other")
    assert [one["name"] for one in existing_workers.read_workers(SESSION, ["gpu"])] == ["w1", "w2"]
    assert [one["name"] for one in existing_workers.read_workers(SESSION)] == ["w0", "w1", "w2"]


def test_ignores_a_mark_copied_into_a_clone(reads: dict[str, dict[str, Any]]) -> None:
    reads["vm-1"] = marked(machine("copy"), name="w1")
    assert existing_workers.read_workers(SESSION) == []


def test_silent_guest_has_the_address_from_cloud_init(reads: dict[str, dict[str, Any]]) -> None:
    given = {"guest": {"address": "10.0.0.7/24"}, "management_nic": {"portgroup": "a"}}
    data = customise.desired_data(WorkerSpec("w1", given), {"management_nic": {"mac": "00:50:56:01:02:03"}})
    assert data
    extra = [vim.option.OptionValue(key=key, value=value) for key, value in customise.guestinfo_options(data).items()]
    reads["vm-1"] = marked(machine("w1", plain_card(mac="00:50:56:01:02:03"), config__extraConfig=extra))
    assert existing_workers.read_workers(SESSION)[0]["ansible_host"] == "10.0.0.7"


MAC = "00:50:56:01:02:03"
CARD = {"match": {"macaddress": MAC}}


@pytest.mark.parametrize(
    "metadata",
    [
        ["x"],
        {"network": "bmV0d29yazoge3ZlcnNpb246IDJ9Cg==", "network.encoding": "base64"},
        {"network": ["x"]},
        {"network": {"ethernets": ["x"]}},
        {"network": {"ethernets": {"a": "x"}}},
        {"network": {"ethernets": {"a": {"match": "x"}}}},
        {"network": {"ethernets": {"a": {"match": {"macaddress": None}, "addresses": ["10.0.0.7/24"]}}}},
        {"network": {"ethernets": {"a": {**CARD, "addresses": "10.0.0.7/24"}}}},
        {"network": {"ethernets": {"a": {**CARD, "addresses": [None, {"10.0.0.7/24": {"label": "x"}}]}}}},
    ],
)
def test_lists_a_worker_with_foreign_cloud_init_data(reads: dict[str, dict[str, Any]], metadata: object) -> None:
    extra = [vim.option.OptionValue(key=customise.METADATA, value=json.dumps(metadata))]
    reads["vm-1"] = marked(machine("w1", plain_card(mac=MAC), config__extraConfig=extra))

    (worker,) = existing_workers.read_workers(SESSION)

    assert worker["name"] == "w1" and "ansible_host" not in worker


def test_unmarked_clones_are_found_in_their_cluster(reads: dict[str, dict[str, Any]]) -> None:
    def building(name: str, written: str, host: str = "host-1") -> dict[str, Any]:
        extra = [vim.option.OptionValue(key=worker_mark.BUILDING, value=written)]
        return dict(machine(name, host=host, config__extraConfig=extra).values)

    reads["vm-1"], reads["vm-2"] = building("w1", "w1"), building("copy", "w1")
    reads["vm-3"], reads["vm-4"] = building("w3", "w3", "host-2"), machine("w4").values  # type: ignore[assignment]
    assert existing_workers.unfinished_clones(SESSION, "gpu") == ["w1"]
