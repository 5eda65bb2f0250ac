"""esxi_vib against the simulated data centre."""

from __future__ import annotations

from typing import Any

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible, AnsibleFor, Start
from tests.integration.booting import boot

DRIVER = "NVD-AIE_ESXi_8.0.0_Driver"
VERSION = "550.90.05-1OEM.800.1.0.20613240"
DESIRED: dict[str, Any] = {
    "hosts": ["esx01.lab", "esx02.lab"],
    "name": DRIVER,
    "version": VERSION,
    "source": "[shared] NVD-AIE-800_550.90.05-1OEM.800.1.0.20613240_24012345.zip",
}
INSTALL = "esxcli software vib install"  # the first call of it is the dry run


@pytest.fixture
def resting(vcenter: Simulator) -> Simulator:
    """The data centre with two hosts in maintenance mode."""
    for name in DESIRED["hosts"]:
        vcenter.set_host(name, maintenance=True)
    return vcenter


LIVE = f"""
depots:
  - paths: [/vmfs/volumes/shared/X.zip]
    vibs: [{{name: {DRIVER}, version: {VERSION}, vendor: NVIDIA, acceptance_level: VMwareAccepted, live_install: true}}]
clusters:
  - name: gpu
    hosts:
      - name: esx01.lab
        hardware: t4_cx5
        vibs: [{{name: {DRIVER}, version: 550.54.16-1OEM.800.1.0.20613240, vendor: NVIDIA, live_install: true}}]
"""


def test_manager_needs_a_boot_despite_the_hosts_report(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = start(text=LIVE)
    ansible, one = ansible_for(vcenter), {**DESIRED, "hosts": ["esx01.lab"], "source": "[shared] X.zip"}
    assert ansible.module("esxi_vib", check=True, **one).result["needs"] == ["maintenance", "reboot"]
    vcenter.set_host("esx01.lab", maintenance=True)
    for changed in (True, False):
        done = ansible.module("esxi_vib", **one)
        assert (done.changed, done.result["needs"]) == (changed, ["reboot"]), done.out
        assert done.host("esx01.lab")["state"]["running"].startswith("550.54.16-")
    listed = ansible.module("esxi_info", hosts=["esx01.lab"], gather=["vib"]).host("esx01.lab")["vibs"]["running"]
    versions = [one["version"] for one in listed if one["name"] == DRIVER]
    assert versions == [VERSION], "the host lists at once what it has not booted into"
    boot(vcenter, "esx01.lab")
    after = ansible.module("esxi_vib", **one)
    assert (after.changed, after.result["needs"]) == (False, [])
    assert after.host("esx01.lab")["state"]["running"] == VERSION


def test_downgrades_removes_and_installs_without_boot(resting: Simulator, ansible: Ansible) -> None:
    boot_one = {**DESIRED, "hosts": ["esx01.lab"]}
    ansible.module("esxi_vib", **boot_one)
    boot(resting, "esx01.lab")
    older = "[shared] NVD-AIE-800_550.54.16-1OEM.800.1.0.20613240_23471877.zip"
    down = ansible.module("esxi_vib", **{**boot_one, "version": "550.54.16", "source": older}).host("esx01.lab")
    assert down["state"]["next_boot"].startswith("550.54.16-")
    gone = ansible.module("esxi_vib", hosts=["esx01.lab"], name=DRIVER, state="absent").host("esx01.lab")
    assert (gone["state"]["running"], gone["state"]["next_boot"], gone["needs"]) == (VERSION, None, ["reboot"])
    daemon = {"name": "nvdgpumgmtdaemon", "version": "550.90.05", "source": "[shared] nvdgpumgmtdaemon.vib"}
    live = ansible.module("esxi_vib", hosts=["esx02.lab"], **daemon).host("esx02.lab")
    assert (live["changed"], live["needs"]) == (True, [])


def test_broken_connection_during_install_needs_no_repair(resting: Simulator, ansible: Ansible) -> None:
    one = {**DESIRED, "hosts": ["esx01.lab"]}
    resting.fault(INSTALL, "drop", after=True, name="esx01.lab", skip=1)
    broken = ansible.module("esxi_vib", **one)
    assert broken.rc == 1
    assert "run again" in broken.msg
    resting.clear()
    again = ansible.module("esxi_vib", **one)
    assert (again.changed, resting.writes(), again.result["needs"]) == (False, [], ["reboot"])
