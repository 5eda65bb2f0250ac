"""Passthrough: plans, four runs, and hosts that misbehave."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils import runner
from plugins.module_utils.errors import Refused
from plugins.module_utils.hosts import passthrough, pci_devices
from plugins.module_utils.hosts.passthrough import Passthrough, plan_passthrough
from tests.fakes import esxi
from tests.fakes.esxi import FakeHost
from tests.fakes.gpus import NIC, T4, FakeGpus, Gpu
from tests.fakes.module import FakeModule

OTHER = "0000:d8:00.0"


def state(enabled: bool, active: bool, **more: Any) -> dict[str, Any]:
    device = {"name": "NVIDIA Tesla T4", "capable": True, "vms": [], **more.pop("device", {})}
    return {"enabled": {T4: enabled}, "active": {T4: active}, "devices": {T4: device}, "without_reboot": False, **more}


def test_refuses_a_device_incapable_of_passthrough() -> None:
    with pytest.raises(Refused, match=f"Tesla T4 at {T4} cannot be passed through"):
        plan_passthrough(state(False, False, device={"capable": False}), enabled=True)
    with pytest.raises(Refused, match="no NVIDIA GPU"):
        plan_passthrough({**state(False, False), "enabled": {}, "active": {}, "devices": {}}, enabled=True)
    assert not plan_passthrough(state(False, False, device={"capable": False}), enabled=False).changes


def test_does_not_take_a_gpu_in_use() -> None:
    used = state(False, False, device={"vms": ["worker01"]})
    assert "is in use by worker01" in plan_passthrough(used, enabled=True).unmet[0]
    assert plan_passthrough(state(True, True, device={"vms": ["worker01"]}), enabled=False).unmet == ()


def converge(subject: Passthrough, enabled: bool, check: bool = False) -> dict[str, Any]:
    work = runner.Work([subject], esxi.refresh, lambda current: plan_passthrough(current, enabled=enabled))
    return runner.converge(FakeModule(check_mode=check), work)


def test_a_boot_makes_it_active() -> None:
    host = FakeHost()
    gpus = FakeGpus(host, Gpu(T4), Gpu(OTHER, enabled=True, passed=True))
    subject = Passthrough(host)
    assert converge(subject, True)["needs"] == ["reboot"]
    assert host.writes == [("UpdatePassthruConfig", (T4, True))]
    assert host.settled == [True]
    gpus.boot()
    assert converge(subject, True)["needs"] == []


def test_devices_are_chosen_by_address_too() -> None:
    host = FakeHost()
    FakeGpus(host, Gpu())
    assert converge(Passthrough(host, ["5E:00.0"]), False)["hosts"][0]["state"]["enabled"] == {NIC: False}
    assert set(converge(Passthrough(host, ["gpus", NIC]), False)["hosts"][0]["state"]["enabled"]) == {T4, NIC}
    unknown = converge(Passthrough(host, ["0000:99:00.0"]), True)
    assert unknown["failed"]
    assert f"it has no PCI device 0000:99:00.0; choose among {T4}, {NIC}" in unknown["msg"]
    with pytest.raises(Refused, match=r"write it as 0000:3b:00\.0"):
        Passthrough(host, ["vmnic2"])


def test_the_paths_cover_all_properties_that_are_read() -> None:
    assert set(pci_devices.PATHS) < set(passthrough.PATHS)
