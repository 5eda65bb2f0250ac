"""The non-disruptive evacuation of 9.1: refused by an older vCenter before any write, accepted by 9.1."""

from __future__ import annotations

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible

ONE = {"hosts": ["esx01.lab"], "state": "maintenance", "non_disruptive": True}


@pytest.mark.release("9.1")
def test_empties_a_9_1_host_without_disruption(vcenter: Simulator, ansible: Ansible) -> None:
    entered = ansible.module("esxi_power", **ONE)
    assert entered.changed, entered.out
    assert vcenter.calls()["EnterMaintenanceMode_Task"] == 1


@pytest.mark.release("9.0")
def test_refuses_an_older_vcenter_before_any_write(vcenter: Simulator, ansible: Ansible) -> None:
    refused = ansible.module("esxi_power", **ONE)
    assert refused.rc == 1 and vcenter.writes() == []
    assert "vCenter 9.0.0 has no non-disruptive evacuation, which came with 9.1; omit non_disruptive" in refused.msg


@pytest.mark.release("9.0")
def test_window_refuses_an_older_vcenter_before_any_move(vcenter: Simulator, ansible: Ansible) -> None:
    window = {"cluster": "gpu", "empty_hosts": ["esx01.lab", "esx02.lab"]}
    refused = ansible.module("vmotion_plan", **window, non_disruptive=True)
    assert refused.rc == 1 and "vCenter 9.0.0 has no non-disruptive evacuation" in refused.msg, refused.out
    assert "esx01.lab, esx02.lab" in refused.msg and vcenter.writes() == []
