"""The module esxi_passthrough as Ansible calls it."""

from __future__ import annotations

from tests.fakes.calling import call
from tests.fakes.esxi import FakeHost
from tests.fakes.gpus import T4, FakeGpus, Gpu


def test_enables_gpus_by_default_only_where_they_differ() -> None:
    one, two = FakeHost("esx01.lab"), FakeHost("esx02.lab")
    FakeGpus(one, Gpu())
    FakeGpus(two, Gpu(enabled=True, passed=True))
    planned = call("esxi_passthrough", [one, two], enabled=True, check=True)
    assert [(entry["changed"], entry["reboots"]) for entry in planned["hosts"]] == [(True, 1), (False, 0)]
    assert planned["diff"][0]["after"] == {"enabled": {T4: True}}
    assert one.writes == []
    assert call("esxi_passthrough", [one, two], enabled=True)["changed"]
    assert (len(one.writes), two.writes) == (1, [])


def test_enabled_is_required() -> None:
    assert "missing required arguments: enabled" in call("esxi_passthrough", [FakeHost()])["msg"]
