"""The module esxi_image as Ansible calls it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.vsphere import inventory, rest
from tests.fakes.calling import call
from tests.fakes.rest import FakeRest


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
