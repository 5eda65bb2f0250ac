"""The writes of our modules, read back by clients that no one here wrote: community.vmware and govc."""

from __future__ import annotations

from typing import Any

import pytest

from lab.simulator import Simulator
from tests.govc import govc, vibs
from tests.integration.ansible import Ansible

HOST = "esx02.lab"
DRIVER, VERSION = "NVD-AIE_ESXi_8.0.0_Driver", "550.90.05"
DEPOT = "[shared] NVD-AIE-800_550.90.05-1OEM.800.1.0.20613240_24012345.zip"
PROFILE: dict[str, Any] = {
    "graphics": {"type": "shared_direct", "policy": "consolidation"},
    "kernel_modules": [{"name": "nmlx5_core", "options": {"max_vfs": 8}}],
    "pvrdma": {"vmk": "vmk1"},
}


@pytest.fixture
def written(vcenter: Simulator, ansible: Ansible) -> Simulator:
    """A data centre whose hosts our modules have just changed."""
    outcome = ansible.module("esxi_profile", cluster="gpu", profile=PROFILE)
    assert outcome.rc == 0, outcome.msg
    return vcenter


def theirs(ansible: Ansible, module: str, *, check: bool = False, **options: Any) -> dict[str, Any]:
    """The result of a module of community.vmware, run as its users run it."""
    options["validate_certs"] = False
    return ansible.adhoc(module, collection="community.vmware", check=check, **options).result


def test_community_vmware_finds_nothing_left_to_change(written: Simulator, ansible: Ansible) -> None:
    kernel = theirs(
        ansible,
        "vmware_host_kernel_manager",
        check=True,
        esxi_hostname=HOST,
        kernel_module_name="nmlx5_core",
        kernel_module_option="max_vfs=8",
    )
    assert kernel["changed"] is False
    option = theirs(
        ansible, "vmware_host_config_manager", check=True, esxi_hostname=HOST, options={"Net.PVRDMAVmknic": "vmk1"}
    )
    assert option["changed"] is False


def test_govc_reads_the_same(written: Simulator, ansible: Ansible) -> None:
    (option,) = govc(written, "host.option.ls", "-json", "-host", HOST, "Net.PVRDMAVmknic")
    assert option["value"] == "vmk1"
    assert ansible.module("esxi_power", hosts=[HOST], state="maintenance").rc == 0
    installed = ansible.module("esxi_vib", hosts=[HOST], name=DRIVER, version=VERSION, source=DEPOT)
    assert installed.changed, installed.msg
    assert DRIVER not in vibs(written, HOST)
    assert vibs(written, HOST, "--rebooting-image=true")[DRIVER].startswith(VERSION)
    assert ansible.module("esxi_power", hosts=[HOST], state="rebooted").rc == 0
    assert vibs(written, HOST)[DRIVER].startswith(VERSION)
