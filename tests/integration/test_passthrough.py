"""esxi_passthrough against the simulated data centre."""

from __future__ import annotations

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible
from tests.integration.booting import boot

GPU = "0000:3b:00.0"
ON = {"cluster": "gpu", "enabled": True}


def test_on_and_off_each_take_a_boot(vcenter: Simulator, ansible: Ansible) -> None:
    planned = ansible.module("esxi_passthrough", check=True, **ON)
    assert planned.changed
    assert vcenter.writes() == []
    applied = ansible.module("esxi_passthrough", **ON)
    assert applied.rc == 0, applied.out
    assert applied.result["diff"] == planned.result["diff"]
    assert [write["method"] for write in vcenter.writes()] == ["UpdatePassthruConfig"] * 5
    vcenter.clear()
    again = ansible.module("esxi_passthrough", **ON)
    assert (again.changed, vcenter.writes(), again.result["needs"]) == (False, [], ["reboot"])
    boot(vcenter, "esx01.lab")
    booted = ansible.module("esxi_passthrough", **ON).host("esx01.lab")
    assert (booted["needs"], booted["state"]["active"]) == ([], {GPU: True})
    off = ansible.module("esxi_passthrough", hosts=["esx01.lab"], enabled=False).host("esx01.lab")
    assert (off["state"]["enabled"], off["state"]["active"], off["needs"]) == ({GPU: False}, {GPU: True}, ["reboot"])


def test_unknown_and_incapable_devices_are_refused_before_any_write(vcenter: Simulator, ansible: Ansible) -> None:
    unknown = ansible.module("esxi_passthrough", hosts=["esx02.lab"], devices=["0000:99:00.0"], enabled=True)
    assert "esx02.lab" in unknown.msg
    assert f"choose among {GPU}" in unknown.msg
    incapable = ansible.module("esxi_passthrough", hosts=["esx02.lab"], devices=["0000:18:00.0"], enabled=True)
    assert "cannot be passed through" in incapable.msg
    assert vcenter.writes() == []


def test_a_deaf_host_and_a_missing_privilege_are_found_out(vcenter: Simulator, ansible: Ansible) -> None:
    vcenter.fault("UpdatePassthruConfig", "deaf", name="esx03.lab")
    vcenter.fault("UpdatePassthruConfig", fault="NoPermission", name="esx04.lab")
    outcome = ansible.module("esxi_passthrough", **ON)
    failed = {entry["host"]: entry["msg"] for entry in outcome.result["hosts"] if entry.get("failed")}
    assert set(failed) == {"esx03.lab", "esx04.lab"}
    assert "accepted the change, yet" in failed["esx03.lab"]
    assert "privilege Host.Config.Settings is missing" in failed["esx04.lab"]


MODES = ["host", "directPath"]


@pytest.mark.parametrize(
    ("release", "mode"), [("9.0", None), ("9.1", {"mode": "host", "modes": MODES})], indirect=["release"]
)
def test_the_mode_of_a_gpu_is_that_of_the_host_where_it_reports_one(
    vcenter: Simulator, ansible: Ansible, mode: dict[str, object] | None
) -> None:
    (gpu,) = ansible.module("esxi_info", hosts=["esx01.lab"], gather=["gpu"]).host("esx01.lab")["gpus"]
    assert gpu["direct_path"] == mode
    if mode:
        ansible.module("esxi_passthrough", **ON)
        boot(vcenter, "esx01.lab")
        (gpu,) = ansible.module("esxi_info", hosts=["esx01.lab"], gather=["gpu"]).host("esx01.lab")["gpus"]
        assert (gpu["passthrough"], gpu["direct_path"]["mode"]) == ("on", "directPath")
