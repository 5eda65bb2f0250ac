"""esxi_graphics against the simulated data centre."""

from __future__ import annotations

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible
from tests.integration.booting import boot

GPU = "0000:3b:00.0"
DESIRED = {"cluster": "gpu", "type": "shared_direct", "policy": "consolidation"}
DRIVEN = """
hardware:
  mig:
    gpus: [{pci: "0000:ca:00.0", model: a100, mig: true}]
clusters:
  - name: gpu
    hosts:
      - name: esx01.lab
        hardware: t4_cx5
        maintenance: true
        vibs: [{name: NVD-AIE_ESXi_8.0.0_Driver, version: "550.90.05-1", vendor: NVIDIA}]
      - {name: esx02.lab, hardware: t4_cx5, passthrough: [all]}
      - {name: esx03.lab, hardware: no_gpu}
"""


def test_settings_take_effect_with_driver_and_boot(vcenter: Simulator, ansible: Ansible) -> None:
    applied = ansible.module("esxi_graphics", **DESIRED)
    assert applied.rc == 0, applied.out
    state = applied.host("esx01.lab")["state"]
    assert (state["types"], state["active_types"]) == ({GPU: "shared_direct"}, {GPU: "basic"})
    assert (state["policy"], state["active_policy"]) == ("consolidation", "performance")
    boot(vcenter, "esx01.lab")
    assert ansible.module("esxi_graphics", **DESIRED).host("esx01.lab")["state"]["active_policy"] == "consolidation"


@pytest.mark.datacentre(text=DRIVEN)
def test_xorg_restart_replaces_a_reboot_with_running_driver(vcenter: Simulator, ansible: Ansible) -> None:
    desired = {"hosts": ["esx01.lab"], "type": "shared_direct", "restart_xorg": True}
    vcenter.set_host("esx01.lab", maintenance=False)
    refused = ansible.module("esxi_graphics", **desired)
    assert "Xorg is restarted only in maintenance mode" in refused.msg
    assert vcenter.writes() == []
    vcenter.set_host("esx01.lab", maintenance=True)
    done = ansible.module("esxi_graphics", **desired)
    assert (done.rc, done.result["needs"]) == (0, []), done.out
    state = done.host("esx01.lab")["state"]
    assert state["active_types"] == {GPU: "shared_direct"}
    assert "grid_t4-16c" in state["profiles"]
    assert not ansible.module("esxi_graphics", **desired).changed
