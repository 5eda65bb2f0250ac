"""Evidence, change and rollback against the simulated data centre: afterwards the hosts are as the evidence says."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from lab.simulator import DATACENTRES, ROOT, Simulator
from tests.integration.ansible import Ansible, Outcome, Start
from tests.integration.releases import NEWEST

pytestmark = pytest.mark.release(NEWEST)

MANAGER = "NVD-AIE_ESXi_8.0.0_Driver"
OLD = "550.54.16-1OEM.800.1.0.20613240"
PROFILE: dict[str, Any] = {
    "vibs": [
        {
            "name": MANAGER,
            "version": "550.90.05-1OEM.800.1.0.20613240",
            "source": "http://depot.lab/NVD-AIE-800_550.90.05.zip",
        }
    ],
    "graphics": {"type": "shared_direct", "policy": "consolidation"},
    "kernel_modules": [{"name": "nmlx5_core", "options": {"max_vfs": 4}}],
    "roce": {"priority": 3},
    "pvrdma": {"vmk": "vmk1"},
}
DEPOT = {"name": MANAGER, "version": OLD, "source": "[shared] NVD-AIE-800_550.54.16-1OEM.800.1.0.20613240_23471877.zip"}
# A bare host, and one that had a life before: an older manager that shares its GPU, its own options, another tag.
HOSTS = f"""
      - {{name: esx01.lab}}
      - name: esx02.lab
        vibs: [{{name: {MANAGER}, version: {OLD}, vendor: NVIDIA, acceptance_level: VMwareAccepted}}]
        graphics: {{default: sharedDirect, policy: performance}}
        module_options: {{nmlx5_core: max_vfs=8 pfctx=0x10 pfcrx=0x10, nmlx5_rdma: pcp_force=4}}
        vmkernel: [{{device: vmk2, switch: rdma, portgroup: rdma-vmk, address: 10.217.0.2, mtu: 9000}}]
        options: {{Net.PVRDMAVmknic: vmk2}}
        rulesets: {{pvrdma: true}}
"""


@pytest.fixture
def vcenter(start: Start) -> Simulator:
    text = (
        (DATACENTRES / "ready.yml").read_text().partition("\nvms:")[0].replace("reboot_seconds: 2", "reboot_seconds: 1")
    )
    line = next(line for line in text.splitlines() if '"esx%02d.lab"' in line)
    return start(text=text.replace(line, HOSTS.strip("\n")))


def run(ansible: Ansible, playbook: str, *options: str, **variables: Any) -> Outcome:
    folder = str(ansible.folder / "evidence")
    given = {"esxi_host_profile": PROFILE, "evidence_dir": folder, "esxi_host_evidence_dir": folder, **variables}
    return ansible.playbook(f"playbooks/{playbook}.yml", "-i", "inventories/lab", *options, "-e", json.dumps(given))


def evidence(ansible: Ansible) -> list[Path]:
    return sorted((ansible.folder / "evidence").glob("gpu-*.json"))


def settings(hosts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the compared values of hosts: all that esxi_info reports but the time of boot and traffic."""
    kept = []
    for host in hosts:
        devices = [{k: v for k, v in one.items() if not k.endswith("counters")} for one in host["rdma_devices"]]
        kept.append({**{k: v for k, v in host.items() if k != "boot_time"}, "rdma_devices": devices})
    return kept


def now(ansible: Ansible) -> list[dict[str, Any]]:
    return settings(ansible.module("esxi_info", cluster="gpu").result["hosts"])


@pytest.mark.slow
@pytest.mark.every_release
def test_rollback_restores_the_evidence(vcenter: Simulator, ansible: Ansible) -> None:
    taken = run(ansible, "evidence")
    assert taken.rc == 0, taken.out
    (file,) = evidence(ansible)
    assert vcenter.writes() == []
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = json.loads(file.read_text())
    assert settings(before["hosts"]) == now(ansible)

    done = run(ansible, "hosts")
    assert done.rc == 0, done.out
    assert now(ansible) != settings(before["hosts"])
    vcenter.clear()

    refused = run(ansible, "rollback", rollback_evidence=str(file))
    assert refused.rc == 2
    assert f"esx02.lab: it had VIB {MANAGER} {OLD}" in " ".join(refused.out.split())
    assert vcenter.writes() == []

    back = run(ansible, "rollback", rollback_evidence=str(file), rollback_depots=[DEPOT])
    assert back.rc == 0, back.out
    assert now(ansible) == settings(before["hosts"])
    reboots = [write["name"] for write in vcenter.writes() if write["method"] == "RebootHost_Task"]
    assert reboots == ["esx01.lab", "esx02.lab"]

    again = run(ansible, "rollback", "--check", rollback_evidence=str(file), rollback_depots=[DEPOT])
    assert again.rc == 0, again.out
    assert "esx01.lab, esx02.lab: in force, nothing to do" in again.out


def test_rollback_of_one_host_leaves_others_alone(vcenter: Simulator, ansible: Ansible) -> None:
    small = {"pvrdma": {"vmk": "vmk1"}}
    done = run(ansible, "hosts", esxi_host_profile=small)
    assert done.rc == 0, done.out
    shared = {"vcenter_options": {"vgpu.hotmigrate.enabled": True}, "drs_options": {"PassthroughDrsAutomation": "1"}}
    assert ansible.module("shared_settings", cluster="gpu", allow_shared_settings=True, **shared).changed
    (file,) = evidence(ansible)
    before = settings(json.loads(file.read_text())["hosts"])
    vcenter.clear()
    only = {"rollback_hosts": ["esx02.lab"], "rollback_shared_settings": True}
    back = run(ansible, "rollback", rollback_evidence=os.path.relpath(file, ROOT), **only)
    assert back.rc == 0, back.out
    cluster = ansible.module("cluster_info", cluster="gpu").result["cluster"]
    assert cluster["options"] == {"vgpu.hotmigrate.enabled": False} and cluster["drs"]["options"] == {}
    changed, restored = now(ansible)
    assert restored == before[1] and changed != before[0]
    assert {write["name"] for write in vcenter.writes() if write["type"] == "HostSystem"} <= {"esx02.lab"}
