"""esxi_profile against the simulated data centre."""

from __future__ import annotations

from lab.simulator import Simulator
from tests.integration.ansible import Ansible

PROFILE = {"kernel_modules": [{"name": "nmlx5_core", "options": {"max_vfs": 8}}]}


def test_single_host_may_have_its_own_profile(vcenter: Simulator, ansible: Ansible) -> None:
    own = {"esx02.lab": {"kernel_modules": [{"name": "nmlx5_core", "options": {"max_vfs": 4}}]}}
    plan = ansible.module("esxi_profile", check=True, cluster="gpu", profile=PROFILE, host_profiles=own)
    assert plan.rc == 0, plan.out
    assert plan.host("esx01.lab")["reboots"] == 1
    assert plan.host("esx02.lab")["state"]["kernel module nmlx5_core: options"] == {"max_vfs": "4"}
    assert vcenter.writes() == []


def test_refuses_a_mistake_in_a_hosts_own_profile(vcenter: Simulator, ansible: Ansible) -> None:
    refused = ansible.module("esxi_profile", cluster="gpu", host_profiles={"esx02.lab": {"kernel_module": []}})
    assert refused.rc == 1
    assert "host_profiles of esx02.lab" in refused.msg
    assert vcenter.writes() == []


def test_maintenance_or_a_note_marks_hosts_as_out(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("esxi_power", hosts=["esx01.lab"], state="maintenance").rc == 0
    vcenter.set_host("esx01.lab", maintenance=False)
    vcenter.set_host("esx02.lab", maintenance=True)
    plan = ansible.module("esxi_profile", check=True, cluster="gpu", profile=PROFILE)
    assert [host["host"] for host in plan.result["hosts"] if host["out_of_service"]] == ["esx01.lab", "esx02.lab"]
    assert all(host["boot_time"] for host in plan.result["hosts"])
