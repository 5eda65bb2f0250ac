"""esxi_roce against the simulated data centre."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lab.simulator import Simulator
from plugins.module_utils.vsphere import inventory, session
from tests.integration.ansible import Ansible
from tests.integration.booting import DEFAULTS, boot

HOST = "esx01.lab"
MODULES = ["nmlx5_core", "nmlx5_rdma"]

SHARED = """
switches:
  - {name: rdma, mtu: 9000, uplinks: [vmnic2], portgroups: [{name: rdma-vmk, vlan: VLAN}]}
host_defaults:
  hardware: t4_cx5
  vmkernel:
    - {device: vmk0, portgroup: Management Network, address: "10.0.0.{n}", services: [management]}
    - {device: vmk1, switch: rdma, portgroup: rdma-vmk, address: "10.216.0.{n}", mtu: 9000, services: [SERVICE]}
clusters:
  - name: gpu
    hosts:
      - {name: esx01.lab, rdma_users: [USER], reboot_seconds: 0.2}
"""


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


def test_foreign_option_survives_present_and_absent(vcenter: Simulator, ansible: Ansible) -> None:
    ansible.module("esxi_kernel_module", hosts=[HOST], name="nmlx5_core", options={"max_vfs": 8})
    ansible.module("esxi_roce", hosts=[HOST])
    state = ansible.module("esxi_roce", hosts=[HOST]).host(HOST)["state"]
    assert state["nmlx5_core"] == {"max_vfs": "8", "pfctx": "0x08", "pfcrx": "0x08", "trust_state": "2"}
    assert state["nmlx5_rdma"] == {"dscp_force": "26"}
    gone = ansible.module("esxi_roce", hosts=[HOST], state="absent").host(HOST)["state"]
    assert gone["nmlx5_core"] == {"max_vfs": "8"} and gone["nmlx5_rdma"] == {}


def set_by_hand(vcenter: Simulator, module: str, text: str) -> None:
    """Return what someone does in the host's shell: no note reports it."""
    with session.session({**DEFAULTS, **vcenter.connection}) as opened:
        found = inventory.find_hosts(opened, {"hosts": [HOST]}, ("configManager.kernelModuleSystem",))
        found.refresh()
        found.hosts[0]["configManager.kernelModuleSystem"].UpdateModuleOptionString(module, text)


def test_warns_about_manual_options_that_no_card_applies(vcenter: Simulator, ansible: Ansible) -> None:
    set_by_hand(vcenter, "nmlx5_core", "pfctx=0x08 pfcrx=0x08 trust_state=2")
    set_by_hand(vcenter, "nmlx5_rdma", "dscp_force=26")
    outcome = ansible.module("esxi_roce", hosts=[HOST])
    assert not outcome.changed
    (warning,) = outcome.host(HOST)["warnings"]
    assert "vmnic2 shows no flow control on priority 3 although the options are set: reboot the host" in warning


def test_warns_before_disabling_foreign_flow_control(vcenter: Simulator, ansible: Ansible) -> None:
    set_by_hand(vcenter, "nmlx5_core", "pfctx=0x10 pfcrx=0x10")
    warnings = ansible.module("esxi_roce", check=True, hosts=[HOST]).host(HOST)["warnings"]
    assert "flow control on priority 4 is switched off" in warnings


@pytest.mark.parametrize(
    ("service", "user", "expected"),
    [
        ("vsan", "", "vSAN (vmk1 over vmnic2)"),
        ("", "nvme", "NVMe over RDMA (vmhba64 over vmnic2)"),
        ("", "iser", "iSER"),
    ],
)
def test_leaves_a_shared_card_alone_until_acknowledged(
    start: Callable[..., Simulator], ansible_for: Callable[..., Ansible], service: str, user: str, expected: str
) -> None:
    vcenter = start(text=SHARED.replace("SERVICE", service).replace("USER", user).replace("VLAN", "216"))
    ansible = ansible_for(vcenter)
    refused = ansible.module("esxi_roce", hosts=[HOST])
    assert refused.rc == 1 and expected in refused.msg and "acknowledge_shared_nic" in refused.msg
    assert vcenter.writes() == []
    assert ansible.module("esxi_roce", hosts=[HOST], acknowledge_shared_nic=True).changed


@pytest.mark.parametrize(("vlan", "rc"), [("0", 1), ("216", 0)])
def test_trust_in_pcp_requires_a_vlan(
    start: Callable[..., Simulator], ansible_for: Callable[..., Ansible], vlan: str, rc: int
) -> None:
    vcenter = start(text=SHARED.replace("SERVICE", "").replace("USER", "").replace("VLAN", vlan))
    outcome = ansible_for(vcenter).module("esxi_roce", hosts=[HOST], trust="pcp")
    assert outcome.rc == rc, outcome.out
    if rc:
        assert "no port group of rdma has a VLAN" in outcome.msg and vcenter.writes() == []
    else:
        assert outcome.host(HOST)["state"]["nmlx5_rdma"] == {"pcp_force": "3"}


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
