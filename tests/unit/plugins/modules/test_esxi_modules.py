"""The modules esxi_vib, esxi_image and esxi_info as Ansible calls them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.hosts import cluster_image
from plugins.module_utils.vsphere import inventory, rest
from tests.fakes.calling import call
from tests.fakes.esxi import FakeFirewall, FakeHost, FakeOptions
from tests.fakes.gpus import FakeGpus, Gpu
from tests.fakes.rest import FakeRest
from tests.fakes.vibs import DEPOT, DRIVER, NEW, FakeVibs

DESIRED: dict[str, Any] = {"name": DRIVER, "version": NEW, "source": DEPOT}


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The clusters that are managed by an image."""
    found: dict[str, str] = {}
    monkeypatch.setattr(cluster_image, "managed_clusters", lambda _session: found)
    return found


def host(name: str = "esx01.lab", *, maintenance: bool = True) -> FakeHost:
    made = FakeHost(name)
    FakeGpus(made, Gpu())
    FakeVibs(made)
    made.has(runtime__inMaintenanceMode=maintenance, parent=SimpleNamespace(_moId="domain-c1"))
    return made


def test_one_host_outside_maintenance_mode_prevents_all_writes(clusters: dict[str, str]) -> None:
    one, two = host("esx01.lab"), host("esx02.lab", maintenance=False)
    planned = call("esxi_vib", [one, two], check=True, **DESIRED)
    assert [len(entry["unmet"]) for entry in planned["hosts"]] == [0, 1]
    refused = call("esxi_vib", [one, two], **DESIRED)
    assert refused["failed"]
    assert "esx02.lab" in refused["msg"]
    assert one.writes == two.writes == []


def test_refuses_an_image_managed_cluster(clusters: dict[str, str]) -> None:
    clusters["domain-c1"] = "gpu"
    one = host()
    assert "change the component in the cluster's image with esxi_image" in call("esxi_vib", [one], **DESIRED)["msg"]
    assert one.writes == []


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> FakeRest:
    """vCenter's REST API, and one cluster in its inventory."""
    fake = FakeRest(tool="1")

    @contextmanager
    def opened(_session: Any) -> Iterator[FakeRest]:
        yield fake

    monkeypatch.setattr(rest, "opened", opened)
    monkeypatch.setattr(inventory, "find_cluster", lambda *_names: (SimpleNamespace(_moId="domain-c1"), {}))
    return fake


def test_puts_the_component_into_the_image_once(api: FakeRest) -> None:
    desired = {"cluster": "gpu", "components": {"NVD-AIE-800": "550.90.05"}}
    planned = call("esxi_image", [], check=True, **desired)
    assert planned["changed"]
    assert planned["diff"][0]["after"] == {"components": {"tool": "1", "NVD-AIE-800": "550.90.05"}}
    assert api.writes == []
    done = call("esxi_image", [], **desired)
    assert done["state"]["components"] == api.components == {"tool": "1", "NVD-AIE-800": "550.90.05"}
    assert call("esxi_image", [], **desired)["changed"] is False


def test_requires_cluster_or_depot_and_removes_absent_components(api: FakeRest) -> None:
    assert "cluster, depot" in call("esxi_image", [])["msg"]
    assert call("esxi_image", [], cluster="gpu", absent=["tool"])["changed"]
    assert api.components == {}


def fire_host(name: str) -> FakeHost:
    made = FakeHost(name)
    FakeOptions(made, Net__PVRDMAVmknic="vmk1")
    FakeFirewall(made, pvrdma=True)
    return made


def test_gathers_a_subset_of_hosts_without_writing() -> None:
    hosts = [fire_host("esx01.lab"), fire_host("esx02.lab")]
    for check in (True, False):
        result = call("esxi_info", hosts, check=check, gather=["pvrdma"])
        assert [entry["pvrdma"]["vmk"] for entry in result["hosts"]] == ["vmk1", "vmk1"]
        assert not result["changed"] and "failed" not in result
    assert hosts[0].writes == hosts[1].writes == []


def test_unreachable_host_fails_the_call_without_hiding_others() -> None:
    hosts = [fire_host("esx01.lab"), fire_host("esx02.lab")]
    hosts[1].has(runtime__connectionState="disconnected")
    strict = call("esxi_info", hosts, gather=["pvrdma"])
    assert strict["failed"] and strict["unreachable_hosts"] == ["esx02.lab"]
    assert strict["hosts"][0]["pvrdma"]["vmk"] == "vmk1"
    lenient = call("esxi_info", hosts, gather=["pvrdma"], fail_unreachable=False)
    assert "failed" not in lenient and lenient["hosts"][1]["connection"] == "disconnected"


def test_names_an_unknown_group() -> None:
    assert (
        "value of gather must be one or more of" in call("esxi_info", [fire_host("esx01.lab")], gather=["gpus"])["msg"]
    )
