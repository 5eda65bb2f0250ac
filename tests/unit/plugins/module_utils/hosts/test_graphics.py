"""Graphics settings: plans, four runs, a restart of Xorg, and hosts that misbehave."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils import runner
from plugins.module_utils.errors import Refused
from plugins.module_utils.hosts.graphics import PART, Graphics, GraphicsSpec, plan_graphics
from plugins.module_utils.hosts.part import PlannedSubject, ProfileContext
from plugins.module_utils.hosts.profile import Profile
from plugins.module_utils.plan import REBOOT, Plan
from plugins.module_utils.vsphere import properties
from tests.fakes import esxi
from tests.fakes.esxi import FakeHost
from tests.fakes.gpus import T4, FakeGpus, Gpu
from tests.fakes.module import FakeModule, FakeSubject

OTHER = "0000:d8:00.0"
DIRECT = GraphicsSpec(type="shared_direct")
XORG = GraphicsSpec(type="shared_direct", restart_xorg=True)


def host_with(*gpus: Gpu, **more: Any) -> tuple[FakeHost, FakeGpus]:
    host = FakeHost()
    return host, FakeGpus(host, *(gpus or (Gpu(),)), **more)


def state(*gpus: Gpu, **more: Any) -> dict[str, Any]:
    host, _gpus = host_with(*gpus)
    host.refresh()
    return {**Graphics(host, DIRECT).read(), **more}


def converge(subject: Graphics, check: bool = False) -> dict[str, Any]:
    work = runner.Work([subject], esxi.refresh, lambda current: plan_graphics(current, subject.desired))
    return runner.converge(FakeModule(check_mode=check), work)


def test_refuses_impossible_settings() -> None:
    with pytest.raises(Refused, match="no NVIDIA GPU"):
        plan_graphics({**state(), "gpus": {}}, DIRECT)
    with pytest.raises(Refused, match="does not report its graphics configuration"):
        plan_graphics(state(default_type=None), DIRECT)
    with pytest.raises(Refused, match=r"ESXi 8\.0\.2 has no vGPU mode"):
        plan_graphics(state(version="8.0.2"), GraphicsSpec(vgpu_mode="mixed_size"))
    with pytest.raises(Refused, match=r"is in MIG mode.*nvidia-smi -i INDEX -mig 1"):
        plan_graphics(state(Gpu(active_mode="multiInstanceGpu")), GraphicsSpec(vgpu_mode="mixed_size"))
    assert plan_graphics(state(Gpu(active_mode="multiInstanceGpu")), DIRECT).changes


def test_leaves_a_passthrough_gpu_and_names_it() -> None:
    current = state(Gpu(T4, active="direct", enabled=True, passed=True), Gpu(OTHER))
    plan = plan_graphics(current, DIRECT)
    assert plan.after["types"] == {T4: None, OTHER: "shared_direct"}
    assert plan.warnings == (f"NVIDIA Tesla T4 at {T4} is in passthrough and was left alone: esxi_passthrough ends it",)
    assert not any(T4 in text for text in plan.why)


def test_gpus_in_use_are_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(properties, "read_many", lambda _session, refs, _paths: {r._moId: {"name": "w1"} for r in refs})
    plan = plan_graphics(state(Gpu(vms=["vm-1"])), DIRECT)
    assert plan.unmet == (
        f"NVIDIA Tesla T4 at {T4} is in use by w1: move the virtual machines or power them off first",
    )


def test_keeps_foreign_devices_and_activates_at_boot() -> None:
    host, gpus = host_with()
    subject = Graphics(host, DIRECT)
    assert converge(subject)["needs"] == ["reboot"]
    kinds = {"0000:03:00.0": ("shared", None), T4: ("sharedDirect", None)}
    assert host.writes == [("UpdateGraphicsConfig", "sharedDirect", kinds)]
    assert host.settled == [True]
    gpus.boot()
    assert converge(subject)["needs"] == []


def test_the_active_policy_is_recorded_until_the_boot() -> None:
    host, _gpus = host_with()
    subject = Graphics(host, GraphicsSpec(policy="consolidation"))
    converge(subject)
    again = converge(subject)
    assert (again["changed"], again["needs"]) == (False, ["reboot"])
    assert again["hosts"][0]["state"]["active_policy"] == "performance"
    host.has(runtime__bootTime=esxi.BOOTED.replace(year=2027))
    assert converge(subject)["needs"] == []


def test_restarts_xorg_only_in_maintenance_mode_if_needed() -> None:
    host, _gpus = host_with()
    subject = Graphics(host, XORG)
    refused = converge(subject)
    assert refused["failed"]
    assert "Xorg is restarted only in maintenance mode" in refused["msg"]
    assert host.writes == []
    host.has(runtime__inMaintenanceMode=True)
    done = converge(subject)
    assert [write[0] for write in host.writes] == ["UpdateGraphicsConfig", "Restart"]
    assert (done["changed"], done["needs"]) == (True, [])
    assert "nv-hostengine" in " ".join(done["warnings"])
    assert (converge(subject)["changed"], converge(subject)["warnings"]) == (False, [])
    assert len(host.writes) == 2


def test_only_restarts_xorg_if_settings_are_correct() -> None:
    host, gpus = host_with(Gpu(configured="sharedDirect"))
    gpus.default = "sharedDirect"
    host.has(runtime__inMaintenanceMode=True)
    assert converge(Graphics(host, XORG))["needs"] == []
    assert host.writes == [("Restart", "xorg")]


def test_policy_waits_for_a_restart_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API does not show the policy in use, so that a later run would take the stored one for it."""

    def fails(_gpus: FakeGpus, _service: str) -> None:
        raise vim.fault.HostConfigFault()

    host, _gpus = host_with()
    host.has(runtime__inMaintenanceMode=True)
    subject = Graphics(host, GraphicsSpec(policy="consolidation", restart_xorg=True))
    with monkeypatch.context() as broken:
        broken.setattr(FakeGpus, "Restart", fails)
        assert "could not restart Xorg" in converge(subject)["msg"]

    again = converge(subject)

    assert again["changed"] and ("Restart", "xorg") in host.writes
    assert again["hosts"][0]["state"]["active_policy"] == "consolidation"
    assert (converge(subject)["changed"], converge(subject)["needs"]) == (False, [])


def test_restart_does_not_replace_a_needed_boot() -> None:
    mixed = plan_graphics(
        state(in_maintenance=True), GraphicsSpec(type="shared_direct", vgpu_mode="mixed_size", restart_xorg=True)
    )
    bare = plan_graphics(state(Gpu(active="basic"), in_maintenance=True), XORG)
    assert "reboot" in mixed.needs
    assert "reboot" in bare.needs
    assert bare.after["active_types"] == {T4: "basic"}


@pytest.mark.parametrize("others_boot", [True, False])
def test_does_not_restart_xorg_before_a_boot(others_boot: bool) -> None:
    host, _gpus = host_with()
    host.has(runtime__inMaintenanceMode=True)
    other = FakeSubject("esx01.lab", {"on": not others_boot})
    needs = frozenset({REBOOT} if others_boot else ())
    members = [
        *PART.members(host, {"type": "shared_direct", "restart_xorg": True}, ProfileContext({})),
        PlannedSubject("other", other, lambda current: Plan(current, {**current, "on": True}, needs=needs)),
    ]
    profile = Profile(host, members)
    done = runner.converge(FakeModule(), runner.Work([profile], lambda _subjects: host.refresh()))
    restarts = [write for write in host.writes if write[0] == "Restart"]
    assert (bool(restarts), done["needs"]) == (not others_boot, ["reboot"] if others_boot else [])
    assert host.writes[0][0] == "UpdateGraphicsConfig"
