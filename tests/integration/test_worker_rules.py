"""worker_rules against the simulated data centre: over the wire, with the marks of real workers, and interrupted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyVmomi import vim

from lab.simulator import Simulator
from plugins.module_utils.vsphere import properties, session, tasks
from tests.integration.ansible import Ansible, AnsibleFor
from tests.integration.workers import HOSTS, desired, machine

ON = HOSTS.replace("{name: gpu, hosts", "{name: gpu, drs: {enabled: true}, ha: {enabled: true}, hosts")
NAMES = ["worker01", "worker02", "worker03"]
DESIRED: dict[str, Any] = {
    "cluster": "gpu",
    "workers": NAMES,
    "hosts": ["esx01.lab", "esx02.lab", "esx03.lab"],
    "drs_override": "manual",
    "restart_priority": "high",
}
GONE = {"cluster": "gpu", "state": "absent"}
RECONFIGURE = "ReconfigureComputeResource_Task"


pytestmark = pytest.mark.datacentre(text=ON)


@pytest.fixture
def ansible(vcenter: Simulator, ansible_for: AnsibleFor) -> Ansible:
    made = ansible_for(vcenter)
    assert made.module("worker_vm", **desired(3)).rc == 0
    vcenter.clear()
    return made


def methods(vcenter: Simulator) -> list[str]:
    return [write["method"] for write in vcenter.writes()]


def config(vcenter: Simulator) -> Any:
    """The cluster's configuration as a person reads it."""
    with machine(vcenter, "worker01") as vm:
        ((_ref, values),) = properties.find_all(vm.session, vim.ClusterComputeResource, ("configurationEx",))
        return values["configurationEx"]


def by_hand(vcenter: Simulator, make: Callable[[dict[str, Any]], Any]) -> None:
    """A person reconfigures the cluster; ``make`` gets the virtual machines by name."""
    params = {"validate_certs": True, "timeout": 60, **vcenter.connection}
    with session.session(params) as opened:
        vms = {values["name"]: ref for ref, values in properties.find_all(opened, vim.VirtualMachine, ("name",))}
        ((cluster, _values),) = properties.find_all(opened, vim.ClusterComputeResource, ("name",))
        task = cluster.ReconfigureComputeResource_Task(spec=make(vms), modify=True)
        tasks.wait(opened, tasks.Started(task, "a person", "work"), 20)


def overrides(vms: dict[str, Any]) -> Any:
    info = vim.cluster.DrsVmConfigInfo(key=vms["worker01"], enabled=True, behavior="partiallyAutomated")
    settings = vim.cluster.DasVmSettings(restartPriority="low", isolationResponse="shutdown")
    ha = vim.cluster.DasVmConfigInfo(key=vms["worker02"], dasSettings=settings)
    return vim.cluster.ConfigSpecEx(
        drsVmConfigSpec=[vim.cluster.DrsVmConfigSpec(operation="add", info=info)],
        dasVmConfigSpec=[vim.cluster.DasVmConfigSpec(operation="add", info=ha)],
    )


def test_sets_and_removes_rules_with_one_reconfiguration(vcenter: Simulator, ansible: Ansible) -> None:
    by_hand(vcenter, overrides)
    assert config(vcenter).dasConfig.enabled
    ha = str(config(vcenter).dasConfig)
    vcenter.clear()
    planned = ansible.module("worker_rules", check=True, **DESIRED)
    assert planned.changed and vcenter.writes() == []
    done = ansible.module("worker_rules", **DESIRED)
    assert done.result["state"] == planned.result["state"], done.out
    assert methods(vcenter) == ["SetField"] * 3 + [RECONFIGURE]
    held = config(vcenter)
    assert {(one.name, one.enabled) for one in held.rule} == {
        ("dml.vsphere workers: one per host", True),
        ("dml.vsphere workers: on hosts", True),
    }
    assert {str(one.behavior) for one in held.drsVmConfig} == {"manual"}
    assert [one.dasSettings.isolationResponse for one in held.dasVmConfig].count("shutdown") == 1
    assert {one.dasSettings.restartPriority for one in held.dasVmConfig} == {"high"} and str(held.dasConfig) == ha
    vcenter.clear()
    again = ansible.module("worker_rules", **DESIRED)
    assert not again.changed and vcenter.writes() == []
    assert not ansible.module("worker_vm", **desired(3)).changed
    assert ansible.module("worker_rules", **GONE).changed
    held = config(vcenter)
    assert (list(held.rule), list(held.group), str(held.dasConfig)) == ([], [], ha)
    assert [str(one.behavior) for one in held.drsVmConfig] == ["partiallyAutomated"]
    assert [one.dasSettings.restartPriority for one in held.dasVmConfig] == ["low"]
    vcenter.clear()
    assert not ansible.module("worker_rules", **GONE).changed
    assert vcenter.writes() == []


def test_number_of_calls_does_not_grow_with_workers(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("worker_rules", **{**DESIRED, "workers": NAMES[:1]}).rc == 0
    vcenter.clear()
    ansible.module("worker_rules", check=True, **{**DESIRED, "workers": NAMES[:1]})
    one = sum(vcenter.calls().values())
    vcenter.clear()
    ansible.module("worker_rules", check=True, **DESIRED)
    assert sum(vcenter.calls().values()) == one


@pytest.mark.parametrize("kind", ["fault", "task_fails", "drop"])
def test_next_call_finishes_a_failed_one(vcenter: Simulator, ansible: Ansible, kind: str) -> None:
    by_hand(vcenter, overrides)
    vcenter.fault(RECONFIGURE, kind, **({} if kind == "drop" else {"fault": "NoPermission"}))
    failed = ansible.module("worker_rules", **DESIRED)
    assert "gpu: could not change the rules and overrides of its workers" in failed.msg
    assert ansible.module("worker_rules", **DESIRED).changed
    vcenter.fault(RECONFIGURE, "drop", after=True)
    assert ansible.module("worker_rules", **GONE).rc == 1
    assert ansible.module("worker_rules", **GONE).rc == 0
    assert [str(one.behavior) for one in config(vcenter).drsVmConfig] == ["partiallyAutomated"]
