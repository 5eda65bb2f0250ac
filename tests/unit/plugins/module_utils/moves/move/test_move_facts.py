"""The facts for the rules of one move, as they are read from the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.maintenance.recent_tasks import RecentTask
from plugins.module_utils.moves.checks import move_checks as rules
from plugins.module_utils.moves.move.move import move_facts
from plugins.module_utils.workers.machine import Machine
from tests.fakes import hardware
from tests.fakes.hardware import MELLANOX, NIC
from tests.fakes.moves import FakeServer, site_of
from tests.fakes.worker_cluster import groups_of, machine, plain_card, rdma_card

PAIR = "Nvidia:2@grid_t4-8c%NVLink"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    return FakeServer(monkeypatch)


def facts(server: FakeServer, one: Machine, tasks: Sequence[RecentTask] = (), **more: Any) -> dict[str, Any]:
    return move_facts.facts(site_of(server, one, **more), one, "esx2", tasks, move_facts.Budget(60.0))


def stops(found: dict[str, Any]) -> list[str]:
    return [one.rule for one in rules.findings(found) if one.severity == "stop"]


def test_nothing_stops_a_worker_that_fits(server: FakeServer) -> None:
    found = facts(server, machine("w1", hardware.vgpu(), rdma_card(), plain_card()))
    assert (found["profiles"], found["slots_free"], found["pvrdma"], found["rdma"]) == (
        ["grid_t4-16c"],
        True,
        True,
        True,
    )
    assert (found["free_mb"], found["memory_reserved_mb"], found["free_mhz"]) == (65536, 8192, 32000)
    assert (found["stun"].seconds, found["stun_budget_s"], found["switchover_s"]) == (48, 60.0, 100.0)
    assert stops(found) == []


def test_linked_vgpus_need_slots_and_time_like_others(server: FakeServer) -> None:
    linked = groups_of(machine("w1", hardware.vgpu("grid_t4-8c", 1), hardware.vgpu("grid_t4-8c", 1)), **{PAIR: 1})
    offered = {"groups": {"esx2": [PAIR]}}
    found = facts(server, linked, **offered)
    assert (found["profiles"], found["fixed"], found["stun"].seconds) == (["grid_t4-8c"] * 2, [], 48)
    assert stops(found) == [] and stops(facts(server, linked, groups={"esx1": [PAIR]})) == ["device_group"]
    full = facts(server, linked, **offered, running=[machine("v1", hardware.vgpu("grid_t4-8c"), host="host-2")])
    assert (stops(full), full["holders"]) == (["slots"], ["v1 (grid_t4-8c)"])


def test_encrypted_worker_needs_keys_and_hosts(server: FakeServer) -> None:
    key = vim.encryption.CryptoKeyId(keyId="1", providerId=vim.encryption.KeyProviderId(id="native"))
    providers = [vim.encryption.KmipClusterInfo(clusterId=vim.encryption.KeyProviderId(id="other"))]
    server.values.update({"runtime.cryptoState": "pendingIncapable", "capability.encryptedVMotionSupported": False})
    plain, keyed = machine("w1"), machine("w1", hardware.vgpu(), config__keyId=key)
    strict = machine("w1", config__migrateEncryption="required")

    found = {name: facts(server, one) for name, one in (("plain", plain), ("keyed", keyed), ("strict", strict))}
    server.values.update({"kmipServers": providers, "runtime.cryptoState": "safe"})

    assert stops(found["plain"]) == [] and stops(found["strict"]) == ["encrypted_moves"]
    assert stops(found["keyed"]) == ["key_provider", "host_key", "encrypted_moves"]
    assert stops(facts(server, keyed)) == ["key_provider", "encrypted_moves"]
    providers[0].clusterId.id = "native"
    del server.values["capability.encryptedVMotionSupported"]
    assert stops(facts(server, keyed)) == []


@pytest.mark.parametrize("device", [hardware.passed(), hardware.passed(NIC, MELLANOX), hardware.sriov_card()])
def test_host_device_stops_the_move(server: FakeServer, device: Any) -> None:
    assert stops(facts(server, machine("w1", hardware.vgpu(), device))) == ["passthrough"]


def test_reads_plugin_flags_and_the_switchover_limit(server: FakeServer) -> None:
    extra = {"pciPassthru0__cfg__enable_uvm": "yes", "vmotion__maxSwitchoverSeconds": "30"}
    found = facts(server, machine("w1", hardware.vgpu(), config__extraConfig=hardware.settings(**extra)))
    assert (found["flags"], found["switchover_s"]) == (["pciPassthru0.cfg.enable_uvm"], 30.0)
    assert "gpu_flags" in stops(found)


def test_names_networks_and_datastores_that_the_target_lacks(server: FakeServer) -> None:
    server.values.update(datastore=[], network=[])
    found = facts(server, machine("w1", plain_card()))
    assert (found["datastores_missing"], found["networks_missing"]) == (["named"], ["VM Network"])


def test_subtracts_cpu_reservations_of_other_machines(server: FakeServer) -> None:
    other = machine("v1", host="host-2", config__cpuAllocation__reservation=30000)
    one = machine("w1", config__cpuAllocation__reservation=4000)
    found = facts(server, one, running=[other])
    assert (found["free_mhz"], found["cpu_reserved_mhz"], stops(found)) == (2000, 4000, ["cpu"])


def test_reports_the_objections_of_vcenter_to_a_move(server: FakeServer) -> None:
    fault = vim.fault.InsufficientResourcesFault(msg="the host is full")
    server.results = [SimpleNamespace(error=[fault], warning=[])]
    assert "the host is full" in facts(server, machine("w1"))["check_errors"][0]


def test_requests_server_estimates_since_version_8_0_2(server: FakeServer) -> None:
    one = machine("w1", hardware.vgpu())
    site = site_of(server, one)
    site.session.api_version = (8, 0, 2)  # type: ignore[misc]
    reported = [SimpleNamespace(migrationBW=10000, stunTime=7)]
    profile = SimpleNamespace(profileName="grid_t4-16c", stunTimeEstimates=reported)
    server.values[move_facts.MANAGER] = SimpleNamespace(RetrieveVgpuProfileInfo=lambda: [profile])
    found = move_facts.facts(site, one, "esx2", (), move_facts.Budget())
    assert (found["stun"].seconds, found["stun"].source) == (7, "the server's estimate at 10000 Mb/s")


def test_foreign_tasks_except_screenshots_stop_the_move(server: FakeServer) -> None:
    made = [RecentTask(None, "vm-w1", what, True, "backup") for what in ("createSnapshot", "createScreenshot")]
    assert facts(server, machine("w1"), made)["tasks"] == ["the task createSnapshot of backup"]


def test_storage_vmotion_blocks_a_move_without_waiting(server: FakeServer) -> None:
    one, disks = machine("w1"), RecentTask(None, "vm-w1", "ExecuteStorageVmotionLro", True, "the system")
    found = facts(server, one, [disks])
    assert found["tasks"] == ["the task ExecuteStorageVmotionLro of the system"]
    assert "task" in stops(found)
    assert move_facts.running_move(site_of(server, one), one, [disks], "esx2") is None
