"""playbooks/fabric.yml: planned, built, verified, repeated, taken away, with the shared settings as they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible, AnsibleFor, Outcome, Start
from tests.integration.fabrics import datacentre, desired, with_switch
from tests.integration.releases import NEWEST
from tests.integration.rolling import LAB, recap

pytestmark = pytest.mark.release(NEWEST)

HOT, DRS = "vgpu.hotmigrate.enabled", "VgpuMMAutomationTimeoutSecs"
SHARED = {"fabric_vcenter_options": {HOT: True}, "fabric_drs_options": {DRS: "-1"}}


def run(ansible: Ansible, *options: str, **variables: Any) -> Outcome:
    expected = desired()
    given = {
        "fabric_port_groups": expected["port_groups"],
        "fabric_adapters": expected["adapters"],
        "fabric_record_dir": str(ansible.folder / "record"),
        # The lab's inventory has more than these tests want.
        "fabric_vcenter_options": {},
        "fabric_allow_shared_settings": False,
        **variables,
    }
    return ansible.playbook("playbooks/fabric.yml", *LAB, *options, "-e", json.dumps(given))


def settings(vcenter: Simulator, ansible: Ansible) -> tuple[Any, Any]:
    read = ansible.module("cluster_info", cluster="gpu").result["cluster"]
    # HA stays on throughout.
    assert read["ha"]["enabled"] and read["ha"]["admission_control"]
    return read["options"], vcenter.ask("GET", "/clusters/gpu")["drs_options"]


def test_refused_network_leaves_shared_settings_unchanged(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = start(text=with_switch(count=3))

    refused = run(ansible_for(vcenter), **SHARED, fabric_allow_shared_settings=True)

    reason = "switch rdma exists and was not built by this collection"
    assert refused.rc != 0 and reason in " ".join(refused.out.split()), refused.out
    assert vcenter.writes() == []


@pytest.mark.every_release
@pytest.mark.datacentre(text=datacentre())
def test_built_and_removed_network_leaves_no_trace(vcenter: Simulator, ansible: Ansible) -> None:
    before = settings(vcenter, ansible)
    planned = run(ansible, "--check", "--diff", **SHARED, fabric_allow_shared_settings=True)
    assert planned.rc == 0 and recap(planned)["changed"] == 2, planned.out
    assert vcenter.writes() == [] and not (ansible.folder / "record").exists()
    assert "Unable to find" not in planned.out, "of a folder that need not be there yet"
    built = run(ansible, **SHARED, fabric_allow_shared_settings=True)
    assert built.rc == 0 and recap(built)["changed"] == 2, built.out
    assert "vmk1 of esx01.lab -> esx02.lab (10.216.0.2), 8972 bytes: 3 of 3 answered" in built.out
    assert settings(vcenter, ansible) == ({HOT: True}, {DRS: "-1"})
    vcenter.clear()
    again = run(ansible, **SHARED, fabric_allow_shared_settings=True)
    assert again.rc == 0 and recap(again)["changed"] == 0 and vcenter.writes() == [], again.out
    # The record keeps the values from before the first change.
    assert run(ansible, fabric_drs_options={DRS: "60"}, fabric_allow_shared_settings=True).rc == 0
    gone = run(ansible, fabric_state="absent", fabric_allow_shared_settings=True)
    assert gone.rc == 0, gone.out
    assert settings(vcenter, ansible) == before and not list((ansible.folder / "record").glob("*.json"))
    assert ansible.module("cluster_info", cluster="gpu", switch="rdma").result["fabric"]["switch"] is None


def test_refuses_to_build_a_network_without_variables(tmp_path: Path) -> None:
    path = tmp_path / "hosts.yml"
    path.write_text(json.dumps({"clusters": {"hosts": {"gpu": None}}}))
    ansible = Ansible({"VMWARE_HOST": "vcenter.invalid", "VMWARE_USER": "u", "VMWARE_PASSWORD": "p"}, tmp_path)

    refused = ansible.playbook("playbooks/fabric.yml", "-i", str(path))

    assert refused.rc != 0
    sentence = "gpu: neither fabric_port_groups nor fabric_adapters describes an RDMA network."
    assert sentence in " ".join(refused.out.split())
