"""The inventory of a site: what is as it is today, and what the user must decide."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
import yaml

from plugins.module_utils.site.discovery.cluster_items import items_of, model_of
from plugins.module_utils.site.discovery.discovered import (
    DiscoveredCluster,
    DiscoveredDatastore,
    DiscoveredNetwork,
    DiscoveredSite,
    DiscoveredTemplate,
)
from plugins.module_utils.site.discovery.inventory_plan import decisions_of, is_host_name, text_of
from plugins.module_utils.site.discovery.inventory_text import Item, lines_of
from tools.inventory_schema import schema

FACTS: dict[str, Any] = {
    "name": "gpu",
    "options": {"vgpu.hotmigrate.enabled": False},
    "image_managed": False,
    "configuration_profile": False,
    "ha": {"enabled": True},
    "drs": {"enabled": True, "behaviour": "partiallyAutomated"},
    "max_out_of_service": {"allowed": 1, "why": "one by default"},
    "out_of_service": [],
    "vms": [],
    "occupied": None,
}
GPU = {"name": "NVIDIA Tesla T4", "memory_mb": 16384, "passthrough": "off", "type": "shared", "active_type": "basic"}
GPU |= {"vendor_id": "10de", "device_id": "1eb8"}
CARD = {"device": "vmnic2", "rdma": "vmrdma0", "driver": "nmlx5_core", "speed_mbps": 100000, "switch": None}
HOST: dict[str, Any] = {
    "host": "esx01.lab",
    "in_maintenance": False,
    "version": "8.0.3",
    "vendor": "Dell Inc.",
    "model": "PowerEdge R740",
    "gpus": [GPU],
    "graphics": {"policy": "performance", "profiles": []},
    "pvrdma": {"vmk": ""},
    "uplinks": [CARD],
    "vmkernel": [],
}
OFFERED = {"policy": "consolidation", "profiles": ["grid_t4-4c", "grid_t4-16c", "grid_t4-16q"]}
SHARED = {**HOST, "gpus": [{**GPU, "type": "shared_direct", "active_type": "shared_direct"}], "graphics": OFFERED}
PASSED = {**HOST, "gpus": [{**GPU, "passthrough": "on", "name": "TU104GL [Tesla T4]"}]}
TAGGED = {**SHARED, "pvrdma": {"vmk": "vmk2"}, "uplinks": [{**CARD, "switch": "rdma"}]}
DEBIAN = DiscoveredTemplate("debian-12", "Debian GNU/Linux 12 (64-bit)", "efi")


def cluster(*hosts: dict[str, Any], **facts: Any) -> DiscoveredCluster:
    named = [{**host, "host": f"esx{number:02}.lab"} for number, host in enumerate(hosts, 1)]
    stores = [
        DiscoveredDatastore("local", "VMFS", 90, 100, 1),
        DiscoveredDatastore("shared", "VMFS", 50, 100, len(hosts)),
    ]
    networks = [DiscoveredNetwork("VM Network"), DiscoveredNetwork("rdma-vm", True, 216)]
    return DiscoveredCluster({**FACTS, **facts}, named, networks, stores)  # type: ignore[typeddict-item]


def site(*clusters: DiscoveredCluster, **more: Any) -> DiscoveredSite:
    return DiscoveredSite("vcenter.lab", "8.0.3", clusters, [DEBIAN], **more)


def read(text: str, name: str = "gpu") -> dict[str, Any]:
    return dict(yaml.safe_load(text)["clusters"]["hosts"][name] or {})


def accepted(item: Item) -> Item:
    """The same after the user has removed the signs."""
    return replace(item, decide="", children=tuple(map(accepted, item.children)))


def test_common_settings_are_active_while_others_need_decisions() -> None:
    found = site(cluster(TAGGED, TAGGED))
    assert read(text_of(found)) == {
        "preflight_gpu": "Tesla T4",
        "esxi_host_profile": {
            "graphics": {"type": "shared_direct", "policy": "consolidation"},
            "pvrdma": {"vmk": "vmk2"},
        },
    }
    assert all(text.startswith("gpu: ") for text in decisions_of(found))
    assert "fabric_adapters" not in text_of(found)


def test_hosts_that_differ_leave_decisions_to_the_user() -> None:
    text = text_of(site(cluster(SHARED, PASSED)))
    assert read(text) == {"preflight_gpu": "Tesla T4"}
    assert "# decide: how workers get GPUs" in text and "#   graphics: {type: shared_direct" in text


def test_whole_gpus_are_proposed_by_their_device() -> None:
    text = text_of(site(cluster(PASSED, PASSED)))
    assert read(text)["esxi_host_profile"] == {"passthrough": {"devices": ["gpus"], "enabled": True}}
    assert '{device: "10de:1eb8"}' in text and "hotmigrate" not in text


def test_an_image_takes_the_vgpu_manager() -> None:
    text = text_of(site(cluster(HOST, image_managed=True)))
    assert "vibs:" not in text and "esxi_image" in text


@pytest.mark.parametrize("hosts", [[HOST, HOST], [SHARED, SHARED, SHARED], [PASSED], [TAGGED, HOST]])
def test_all_proposals_fit_the_schema_of_inventories(hosts: list[dict[str, Any]]) -> None:
    items = [accepted(item) for item in items_of(cluster(*hosts), [DEBIAN])]
    variables = yaml.safe_load("\n".join(lines_of(items)))
    assert {"worker_defaults", "worker_vms", "esxi_host_profile"} <= set(variables)
    jsonschema.validate(variables, json.loads(json.dumps(schema())))


def test_proposed_workers_use_what_the_cluster_has() -> None:
    items = {item.key: item.value for item in items_of(cluster(SHARED, SHARED, SHARED), [DEBIAN])}
    worker = items["worker_defaults"]
    assert worker["template"] == "debian-12" and worker["datastore"] == "shared" and worker["firmware"] == "efi"
    assert worker["gpus"] == [{"profile": "grid_t4-16c"}] and worker["rdma_nics"][0]["portgroup"] == "rdma-vm"
    assert [one["name"] for one in items["worker_vms"]] == ["worker01", "worker02"]


def test_findings_that_stop_preflight_are_decisions() -> None:
    lost = {"host": "esx02.lab", "failed": True, "connection": "notResponding", "msg": "it is lost"}
    found = replace(cluster(HOST), stops=["esx02.lab: it is lost"], hosts=[{**HOST}, lost])
    text = text_of(site(found))
    assert "# decide: preflight stops. esx02.lab: it is lost" in text and "esx02.lab: notResponding" in text
    profile = text_of(site(cluster(HOST, configuration_profile=True)))
    assert "a configuration profile keeps the settings" in profile


def test_free_hosts_are_those_in_service_without_machines() -> None:
    busy = cluster(HOST, HOST, HOST, vms=[{"host": "esx01.lab"}], out_of_service=[{"host": "esx02.lab"}])
    assert busy.free_hosts == ["esx03.lab"]


def test_leaves_out_clusters_without_gpus_if_others_exist() -> None:
    plain = replace(cluster({**HOST, "gpus": []}), facts={**FACTS, "name": "office"})  # type: ignore[typeddict-item]
    both = text_of(site(cluster(HOST), plain))
    assert set(yaml.safe_load(both)["clusters"]["hosts"]) == {"gpu"} and "left out: office" in both
    assert set(yaml.safe_load(text_of(site(plain)))["clusters"]["hosts"]) == {"office"}


@pytest.mark.parametrize("name", ["gpu[1:3]", "gpu:22", "{{ x }}", "all", "a,b", " gpu", "gpu*", "12", "line\nbreak"])
def test_a_name_that_ansible_misreads_needs_a_decision(name: str) -> None:
    found = site(replace(cluster(HOST), facts={**FACTS, "name": name}))  # type: ignore[typeddict-item]
    assert not is_host_name(name)
    assert yaml.safe_load(text_of(found))["clusters"]["hosts"] is None
    (decision,) = decisions_of(found)
    assert "rename the cluster" in decision


def test_names_that_several_clusters_have_are_a_decision() -> None:
    found = site(cluster(HOST), ambiguous=["twin"])
    assert "# decide: twin: several clusters have the name twin" in text_of(found)
    assert any(text.startswith("twin: several clusters") for text in decisions_of(found))
    assert is_host_name("GPU Cluster 1")


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("NVIDIA Tesla T4", "Tesla T4"),
        ("TU104GL [Tesla T4]", "Tesla T4"),
        ("GA100 [A100 PCIe 40GB]", "A100 PCIe 40GB"),
        ("NVIDIA A100-PCIE-40GB", "A100-PCIE-40GB"),
    ],
)
def test_recognizes_gpu_models_of_every_driver(name: str, model: str) -> None:
    assert model_of(name) == model


def test_the_inventory_is_bound_to_its_vcenter() -> None:
    text = text_of(site(cluster(), uuid="52c1-77"))
    assert yaml.safe_load(text)["clusters"]["vars"]["vcenter_uuid"] == "52c1-77"
