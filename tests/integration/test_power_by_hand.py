"""esxi_power on hosts that a person takes out of service and returns with a client of vCenter."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from pyVmomi import vim

from lab.simulator import Simulator
from plugins.module_utils.maintenance import service_note
from plugins.module_utils.maintenance.lock.cluster_lock import ClusterLock
from plugins.module_utils.maintenance.lock.lock_rules import LockRequest
from plugins.module_utils.vsphere import inventory, properties, session, tasks
from tests.integration.ansible import Ansible, AnsibleFor, this_run
from tests.integration.killing import has_waited, wait_for

ONE = {"hosts": ["esx01.lab"]}
# DRS of the lab says that it is fully automated, and moves nothing: a person powers the machines off.
TWO_MACHINES = """
version: 8.0.3
datacenter: dc1
datastores: [shared]
clusters: [{name: gpu, drs: {enabled: true, behaviour: fullyAutomated}, hosts: [{name: "esx%02d.lab", count: 2}]}]
vms: [{name: "build%02d", count: 2, host: esx01.lab, powered_on: true, memory_mb: 4096}]
"""


def test_leaves_a_host_that_a_person_took_out(vcenter: Simulator, ansible: Ansible) -> None:
    """The note of the first time stays on the host: a person in a client does not remove it."""
    entered = ansible.module("esxi_power", state="maintenance", **ONE)
    since = entered.host("esx01.lab")["state"]["by"].rpartition(" ")[2]
    assert ansible.module("esxi_power", check=True, state="in_service", **ONE).changed, "it is ours"
    wait_for(lambda: datetime.now(UTC).strftime(service_note.FORMAT) > since, 5)
    with session.session({"validate_certs": True, "timeout": 60, **vcenter.connection}) as opened:
        (host,) = inventory.find_hosts(opened, ONE).hosts
        for method in ("ExitMaintenanceMode_Task", "EnterMaintenanceMode_Task"):
            tasks.wait(opened, tasks.Started(getattr(host.ref, method)(timeout=30), host.name, method), 30)
    vcenter.clear()
    left = ansible.module("esxi_power", state="in_service", **ONE)
    assert not left.changed and vcenter.writes() == [], left.out
    assert "did not put it there" in left.host("esx01.lab")["warnings"][0]
    stops = ansible.module("cluster_info", cluster="gpu", leaving=["esx01.lab"]).result["stops"]
    assert [stop["object"] for stop in stops if stop["rule"] == "taken_out"] == ["esx01.lab"], stops


@pytest.mark.datacentre(text=TWO_MACHINES)
def test_evacuation_continues_after_a_user_deletes_a_machine(vcenter: Simulator, ansible: Ansible) -> None:
    """The server goes on: a module that ended here would leave its host in maintenance mode without a note."""
    options = {"validate_certs": True, "timeout": 60, **vcenter.connection}
    with ThreadPoolExecutor() as pool, session.session(options) as opened:
        emptying = pool.submit(ansible.module, "esxi_power", state="maintenance", maintenance_timeout=60, **ONE)
        wait_for(has_waited(vcenter), 60)
        machines = {values["name"]: ref for ref, values in properties.find_all(opened, vim.VirtualMachine, ("name",))}
        for name, method in (
            ("build01", "PowerOffVM_Task"),
            ("build01", "Destroy_Task"),
            ("build02", "PowerOffVM_Task"),
        ):
            tasks.wait(opened, tasks.Started(getattr(machines[name], method)(), name, method), 30)
        emptied = emptying.result()
    assert emptied.rc == 0, emptied.out
    assert emptied.host("esx01.lab")["state"]["maintenance"] and emptied.host("esx01.lab")["state"]["ours"]


@pytest.mark.parametrize("state", ["maintenance", "rebooted", "in_service"])
def test_refuses_to_act_under_another_runs_lock(vcenter: Simulator, ansible_for: AnsibleFor, state: str) -> None:
    ansible = ansible_for(vcenter, **this_run())
    if state != "maintenance":
        ansible.module("esxi_power", state="maintenance", **ONE)
    with session.session({"validate_certs": True, "timeout": 60, **vcenter.connection}) as opened:
        lock = ClusterLock(opened, "gpu", "held", LockRequest("alice@ctl01", "window", 600))
        lock.apply(lock.plan(lock.read()))
        vcenter.clear()

        refused = ansible.module("esxi_power", state=state, **ONE)

        assert refused.rc == 1 and vcenter.writes() == [], refused.out
        assert "the lock of its cluster is held by alice@ctl01 (run window) since" in refused.msg
        assert ansible.module("esxi_power", check=True, state=state, **ONE).rc == 0
        free = ClusterLock(opened, "gpu", "free", LockRequest("alice@ctl01", "window", 600))
        free.apply(free.plan(free.read()))
    assert ansible.module("esxi_power", state=state, **ONE).changed


@pytest.mark.parametrize("state", ["rebooted", "in_service"])
def test_waits_for_another_users_task_in_maintenance_mode(vcenter: Simulator, ansible: Ansible, state: str) -> None:
    """It may install a patch or a firmware, which a reboot would interrupt."""
    ansible.module("esxi_power", state="maintenance", **ONE)
    vcenter.clear()
    with session.session({"validate_certs": True, "timeout": 60, **vcenter.connection}) as opened:
        (host,) = inventory.find_hosts(opened, ONE).hosts
        kind = "com.vmware.govmomi.simulator.test"
        task = opened.content.taskManager.CreateTask(obj=host.ref, taskTypeId=kind, cancelable=False).task
        task.SetTaskState("running")

        late = ansible.module("esxi_power", state=state, maintenance_timeout=1, reboot_timeout=1, **ONE)
        methods = [write["method"] for write in vcenter.writes()]
        task.SetTaskState("success")

    assert (
        late.rc == 1
        and "the task test of " in late.msg
        and "still runs on it; it stays in maintenance mode" in late.msg
    )
    assert not {"RebootHost_Task", "ExitMaintenanceMode_Task", "SetField"} & set(methods)
    assert ansible.module("esxi_power", state=state, **ONE).changed
