"""A missing privilege is one sentence with its name and its object, for every module that writes.

The simulator enforces none: each refusal here is injected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from lab.simulator import USERNAME, Simulator
from plugins.module_utils.hosts.module_privileges import TABLE as NEEDS
from tests.integration import callers, fabrics
from tests.integration.ansible import Ansible, AnsibleFor, Start
from tests.integration.workers import HOSTS, desired

# A worker moves only where its PVRDMA goes on.
TAGGED = HOSTS.replace("  hardware: t4_cx5\n", "  hardware: t4_cx5\n  options: {Net.PVRDMAVmknic: vmk1}\n")
For = AnsibleFor


class Case(NamedTuple):
    """A module, its options, the call that is refused, and the privilege that is missing."""

    module: str
    options: dict[str, Any]
    call: str
    privilege: str


ONE: dict[str, Any] = {"hosts": ["esx01.lab"]}
RESTING: dict[str, Any] = {"hosts": ["esx02.lab"]}
DEPOT = "[shared] NVD-AIE-800_550.90.05-1OEM.800.1.0.20613240_24012345.zip"
DRIVER = {"name": "NVD-AIE_ESXi_8.0.0_Driver", "version": "550.90.05-1OEM.800.1.0.20613240", "source": DEPOT}
SRIOV = {"name": "nmlx5_core", "options": {"max_vfs": 8}}
SHARED = {"vcenter_options": {"vgpu.hotmigrate.enabled": True}, "allow_shared_settings": True}
INSTALL = "esxcli software vib install"
# By the data centre that they need.
ON_HOSTS = [
    Case("cluster_lock", {"cluster": "gpu", "run": "test"}, "Folder.CreateFolder", "Folder.Create"),
    Case(
        "esxi_advanced_option",
        {**ONE, "options": {"Security.AccountLockFailures": 3}},
        "HostSystem.UpdateOptions",
        "Host.Config.AdvancedConfig",
    ),
    Case("esxi_graphics", {**ONE, "type": "shared_direct"}, "HostSystem.UpdateGraphicsConfig", "Host.Config.Settings"),
    Case("esxi_kernel_module", {**ONE, **SRIOV}, "HostSystem.UpdateModuleOptionString", "Host.Config.Settings"),
    Case("esxi_passthrough", {**ONE, "enabled": True}, "HostSystem.UpdatePassthruConfig", "Host.Config.PciPassthru"),
    Case(
        "esxi_power", {**ONE, "state": "maintenance"}, "HostSystem.EnterMaintenanceMode_Task", "Host.Config.Maintenance"
    ),
    Case(
        "esxi_profile",
        {**ONE, "profile": {"kernel_modules": [SRIOV]}},
        "HostSystem.UpdateModuleOptionString",
        "Host.Config.Settings",
    ),
    Case("esxi_pvrdma", {**ONE, "vmk": "vmk1"}, "HostSystem.UpdateOptions", "Host.Config.AdvancedConfig"),
    Case("esxi_roce", {**ONE, "priority": 3}, "HostSystem.UpdateModuleOptionString", "Host.Config.Settings"),
    Case("esxi_vib", {**RESTING, **DRIVER}, INSTALL, "Host.Config.Image"),
    Case("shared_settings", SHARED, "OptionManager.UpdateOptions", "Global.Settings"),
    Case("vcenter_role", {}, "AuthorizationManager.AddAuthorizationRole", "Authorization.ModifyRoles"),
]
WITHOUT_FABRIC = [Case("rdma_fabric", fabrics.desired(), "Folder.CreateDVS_Task", "DVSwitch.Create")]
WITH_WINDOW = [
    Case("maintenance_window", {"cluster": "gpu", "action": "pause"}, "Folder.CreateFolder", "Folder.Create")
]
RULES = {"cluster": "gpu", "workers": ["worker01", "worker02"]}
MOVE = {"cluster": "gpu", "worker": "worker01", "target": "esx05.lab"}
WITH_WORKERS = [
    Case("worker_vm", desired(3), "VirtualMachine.CloneVM_Task", "VirtualMachine.Provisioning.DeployTemplate"),
    Case("vmotion", MOVE, "VirtualMachine.RelocateVM_Task", "Resource.HotMigrate"),
    Case("worker_rules", RULES, "ClusterComputeResource.ReconfigureComputeResource_Task", "Host.Inventory.EditCluster"),
]
WITHOUT_WORKERS = [
    Case(
        "custom_attributes", {"cluster": "gpu"}, "CustomFieldsManager.RemoveCustomFieldDef", "Global.ManageCustomFields"
    )
]
COMPONENT = {"cluster": "gpu", "components": {"NVD-AIE-800": "550.90.05-1OEM.800.1.0.20613240"}}


def refusals(vcenter: Simulator, ansible: Ansible, cases: Sequence[Case]) -> None:
    """Refuse each case's call, and look at what the module says of it."""
    for case in cases:
        assert case.call in NEEDS.calls_of(case.module)
        assert case.privilege in {need.privilege for need in NEEDS.needs_of(case.call, case.module)}
        method = case.call.rsplit(".", maxsplit=1)[-1]
        vcenter.fault(method, fault="NoPermission", properties={"PrivilegeId": case.privilege}, count=-1)
        outcome = ansible.module(case.module, **case.options)
        vcenter.heal()
        assert outcome.rc == 1, (case.module, outcome.out)
        sentences = [one for one in outcome.msg.split(" | ") if "NoPermission" in one]
        assert sentences, (case.module, outcome.msg)
        for sentence in sentences:
            assert re.search(rf"privilege {case.privilege} is missing on \w+ [\w-]+;", sentence), sentence
            assert sentence.endswith(f"give {USERNAME} that privilege on the object and run again"), sentence


def test_modules_for_hosts_name_missing_privilege_and_object(vcenter: Simulator, ansible: Ansible) -> None:
    vcenter.set_host("esx02.lab", maintenance=True)
    refusals(vcenter, ansible, ON_HOSTS)


def test_window_request_names_missing_privilege_and_object(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("cluster_lock", cluster="gpu", run="test", note="window").rc == 0
    refusals(vcenter, ansible, WITH_WINDOW)


def test_fabric_names_missing_privilege_and_object(start: Start, ansible_for: For) -> None:
    vcenter = start(text=fabrics.datacentre())
    refusals(vcenter, ansible_for(vcenter), WITHOUT_FABRIC)


@pytest.mark.datacentre(text=TAGGED)
def test_modules_for_workers_name_missing_privilege_and_object(vcenter: Simulator, ansible: Ansible) -> None:
    refusals(vcenter, ansible, WITH_WORKERS[:1])
    assert ansible.module("worker_vm", **desired(2)).rc == 0
    refusals(vcenter, ansible, WITH_WORKERS[1:])
    gone = [{"name": "worker01"}, {"name": "worker02"}]
    assert ansible.module("worker_vm", cluster="gpu", state="absent", power_cycle=True, workers=gone).rc == 0
    refusals(vcenter, ansible, WITHOUT_WORKERS)


def test_refused_rest_call_refers_to_the_privileges_page(vcenter: Simulator, ansible: Ansible) -> None:
    vcenter.set_cluster("gpu", image_managed=True)
    assert ansible.module("esxi_image", check=True, **COMPONENT).rc == 0
    (image,) = {call for call in vcenter.callers()["dml.vsphere (esxi_image)"] if call.endswith("/software")} - {
        call for call in vcenter.callers()["dml.vsphere (esxi_image)"] if "enablement" in call
    }
    vcenter.fault(image.replace("GET", "POST") + "/drafts", status=403)
    outcome = ansible.module("esxi_image", **COMPONENT)
    assert outcome.rc == 1 and "the server said 403" in outcome.msg
    assert outcome.msg.endswith("docs/privileges.md names for this module and run again")


def test_tests_cover_every_module_that_writes() -> None:
    cases = (*ON_HOSTS, *WITHOUT_FABRIC, *WITH_WINDOW, *WITH_WORKERS, *WITHOUT_WORKERS)
    here = {case.module for case in cases} | {"esxi_image"}
    readers = {name for name in NEEDS.modules() if name.endswith("_info")} | {"site", "gpu_usage"}
    writers = {name for name in NEEDS.modules() - readers if NEEDS.calls_of(name)}
    assert [f"add a Case for {name}" for name in sorted(writers - here)] == []


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"esxi_power": {"HostSystem.ShutdownHost_Task"}}, "and to CALLS\n    'HostSystem.ShutdownHost_Task': (Need("),
        ({"esxi_vib": {"Folder.CreateFolder"}}, "esxi_vib called Folder.CreateFolder: add to 'esxi_vib' in MODULES"),
        (
            {"esxi_vib": {"read HostProfileManager.profile"}},
            "esxi_vib called read HostProfileManager.profile: add to 'esxi_vib' in MODULES",
        ),
        ({"node_check": {"Folder.CreateFolder"}}, "node_check calls vCenter and is not in"),
    ],
)
def test_names_a_missing_call_and_its_table_line(found: dict[str, set[str]], words: str) -> None:
    (complaint,) = callers.lacking(found)
    assert words in complaint


def test_names_a_call_that_no_module_makes() -> None:
    made = {name: set(NEEDS.calls_of(name)) for name in NEEDS.modules()}
    assert callers.unused(made) == [] and callers.lacking(made) == []
    made["cluster_lock"].remove("Folder.Rename_Task")
    (complaint,) = callers.unused(made)
    assert "cluster_lock never called Folder.Rename_Task in any test: remove it from 'cluster_lock'" in complaint
