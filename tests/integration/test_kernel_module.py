"""esxi_kernel_module against the simulated data centre."""

from __future__ import annotations

from lab.simulator import Simulator
from tests.integration.ansible import Ansible
from tests.integration.refusals import Case

DESIRED = {"cluster": "gpu", "name": "nmlx5_core", "options": {"pfctx": "0x08", "pfcrx": 8}}
WITHOUT_PRIVILEGE = (
    Case("esxi_kernel_module", DESIRED, "HostSystem.UpdateModuleOptionString", "Host.Config.Settings"),
)


def test_check_writes_nothing_and_a_second_run_changes_nothing(vcenter: Simulator, ansible: Ansible) -> None:
    planned = ansible.module("esxi_kernel_module", check=True, **DESIRED)
    assert planned.changed and vcenter.writes() == []
    applied = ansible.module("esxi_kernel_module", **DESIRED)
    assert applied.changed, applied.out
    assert applied.result["diff"] == planned.result["diff"]
    updates = [write for write in vcenter.writes() if write["method"] == "UpdateModuleOptionString"]
    assert len(updates) == 5
    vcenter.clear()
    again = ansible.module("esxi_kernel_module", **DESIRED)
    assert not again.changed and vcenter.writes() == []
    assert again.result["needs"] == ["reboot"]
    assert again.host("esx01.lab")["state"] == {"options": {"pfctx": "0x08", "pfcrx": "8"}, "active": {}}


def test_an_unknown_module_is_refused_before_any_write(vcenter: Simulator, ansible: Ansible) -> None:
    refused = ansible.module("esxi_kernel_module", **{**DESIRED, "name": "nosuch"})
    assert refused.rc == 1 and "nosuch" in refused.msg and "esx01.lab" in refused.msg
    assert vcenter.writes() == []


def test_a_mistyped_option_is_refused_with_the_name_that_the_driver_has(vcenter: Simulator, ansible: Ansible) -> None:
    refused = ansible.module("esxi_kernel_module", **{**DESIRED, "options": {"max_vsf": 4}})
    assert refused.rc == 1 and vcenter.writes() == []
    assert "kernel module nmlx5_core has no parameter max_vsf (did you mean max_vfs?)" in refused.msg


def test_a_deaf_host_is_found_out(vcenter: Simulator, ansible: Ansible) -> None:
    vcenter.fault("UpdateModuleOptionString", "deaf", name="esx03.lab")
    outcome = ansible.module("esxi_kernel_module", **DESIRED)
    assert outcome.rc == 1
    assert "esx03.lab" in outcome.msg and "accepted the change, yet" in outcome.msg
    assert [entry["host"] for entry in outcome.result["hosts"] if entry.get("failed")] == ["esx03.lab"]
