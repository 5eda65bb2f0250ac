"""The module esxi_vib as Ansible calls it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.hosts import cluster_image
from tests.fakes.calling import call
from tests.fakes.esxi import FakeHost
from tests.fakes.gpus import FakeGpus, Gpu
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
