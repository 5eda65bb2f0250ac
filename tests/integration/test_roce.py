"""esxi_roce against the simulated data centre."""

from __future__ import annotations

from lab.simulator import Simulator
from tests.integration.ansible import Ansible
from tests.integration.booting import boot

HOST = "esx01.lab"
MODULES = ["nmlx5_core", "nmlx5_rdma"]


def test_lossless_settings_take_effect_after_one_boot(vcenter: Simulator, ansible: Ansible) -> None:
    desired = {"hosts": [HOST], "priority": 3, "trust": "dscp", "dscp": 26}
    applied = ansible.module("esxi_roce", **desired)
    assert applied.rc == 0 and "priority 3 enable" in applied.result["switch"]["onyx"], applied.out
    waiting = ansible.module("esxi_roce", **desired)
    assert waiting.host(HOST)["state"]["pfc"] == {"vmnic2": []}
    assert waiting.host(HOST)["state"]["active"] == {module: {} for module in MODULES}
    boot(vcenter, HOST)
    vcenter.clear()
    rested = ansible.module("esxi_roce", **desired)
    assert not rested.changed and rested.result["needs"] == [] and vcenter.writes() == []
    assert rested.host(HOST)["state"]["pfc"] == {"vmnic2": [3]}
    assert rested.host(HOST)["warnings"] == []


def test_merges_profile_parts_that_set_the_same_module(vcenter: Simulator, ansible: Ansible) -> None:
    profile = {
        "kernel_modules": [{"name": "nmlx5_core", "options": {"max_vfs": 8}}],
        "roce": {"priority": 3},
        "pvrdma": {"vmk": "vmk1"},
    }
    applied = ansible.module("esxi_profile", hosts=[HOST], profile=profile)
    assert applied.rc == 0, applied.out
    assert applied.host(HOST)["reboots"] == 1
    boot(vcenter, HOST)
    vcenter.clear()
    rested = ansible.module("esxi_profile", hosts=[HOST], profile=profile)
    assert not rested.changed and rested.result["needs"] == [] and vcenter.writes() == []
    assert rested.host(HOST)["state"]["RoCE: active"]["nmlx5_core"]["max_vfs"] == "8"
