"""Workers on datastore clusters, with storage policies, and with a virtual TPM, against the simulated data centre."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim

from lab.simulator import Simulator
from plugins.module_utils.vsphere import properties, session, tasks
from tests.govc import output
from tests.integration.ansible import Ansible
from tests.integration.workers import DEFAULTS, HOSTS, TEMPLATE, desired, do, host_of, machine, states

TWO = HOSTS.replace("datastores: [shared]", "datastores: [fast1, fast2, shared]")

POLICY, OTHER = "vSAN Default Storage Policy", "VM Encryption Policy"
LIMITED = f"storage_policies: {{{POLICY}: [fast1, fast2]}}\n{TWO}"


def pod_of(simulator: Simulator, name: str, *stores: str) -> None:
    """Create a datastore cluster and move datastores into it, as a person does."""
    params = {"validate_certs": True, "timeout": 60, **simulator.connection}
    with session.session(params) as opened:
        (centre,) = [ref for ref, _values in properties.find_all(opened, vim.Datacenter, ("name",))]
        pod = centre.datastoreFolder.CreateStoragePod(name)
        found = properties.find_all(opened, vim.Datastore, ("name",))
        task = pod.MoveIntoFolder_Task([ref for ref, values in found if values["name"] in stores])
        tasks.wait(opened, tasks.Started(task, name, "move datastores"), 20)


@pytest.mark.datacentre(text=TWO)
def test_a_worker_lies_on_a_datastore_that_vcenter_recommends(vcenter: Simulator, ansible: Ansible) -> None:
    pod_of(vcenter, "fast", "fast1", "fast2")
    call = {**desired(1), "defaults": {**DEFAULTS, "datastore": "fast"}}
    vcenter.clear()
    planned = ansible.module("worker_vm", check=True, **call)
    assert (planned.rc, planned.changed, vcenter.writes()) == (0, True, []), planned.out
    done = ansible.module("worker_vm", **call)
    assert done.rc == 0, done.out
    with machine(vcenter, "worker01") as vm:
        assert [store.name for store in vm.ref.datastore] == ["fast1"]
    vcenter.clear()
    again = ansible.module("worker_vm", **call)
    assert (again.changed, vcenter.writes()) == (False, []), again.out
    unknown = ansible.module("worker_vm", **{**desired(2), "defaults": {**DEFAULTS, "datastore": "slow"}})
    assert unknown.rc == 1 and "find one datastore named 'slow'" in unknown.msg and vcenter.writes() == []


def call(policy: str, **more: Any) -> dict[str, Any]:
    """Return the options for two workers with a policy."""
    return {**desired(2), "defaults": {**DEFAULTS, "storage_policy": policy, "datastore": "fast1", **more}}


@pytest.mark.datacentre(text=LIMITED)
def test_home_and_disks_of_workers_have_the_named_policy(vcenter: Simulator, ansible: Ansible) -> None:
    assert POLICY in output(vcenter, "storage.policy.ls")
    planned = ansible.module("worker_vm", check=True, **call(POLICY, disks_gb=[16, 40]))
    assert (planned.rc, planned.changed, vcenter.writes()) == (0, True, []), planned.out
    done = ansible.module("worker_vm", **call(POLICY, disks_gb=[16, 40]))
    assert done.rc == 0, done.out
    assert {(one["storage_policy"], one["storage_compliance"]) for one in states(done).values()} == {
        (POLICY, "COMPLIANT")
    }
    vcenter.clear()
    again = ansible.module("worker_vm", **call(POLICY, disks_gb=[16, 40]))
    assert (again.rc, again.changed, vcenter.writes()) == (0, False, []), again.out
    changed = ansible.module("worker_vm", **call(OTHER))
    assert [write["method"].partition(" ")[0] for write in vcenter.writes()] == ["PATCH", "PATCH"], changed.out
    assert {one["storage_policy"] for one in states(changed).values()} == {OTHER}
    gone = {"cluster": "gpu", "state": "absent", "power_cycle": True}
    assert ansible.module("worker_vm", **gone, workers=[{"name": "worker01"}, {"name": "worker02"}]).rc == 0


@pytest.mark.datacentre(text=LIMITED)
def test_refuses_a_datastore_that_the_policy_excludes(vcenter: Simulator, ansible: Ansible) -> None:
    for options, words in (
        (call(POLICY, datastore="shared"), "does not allow it; it allows 2 datastores of the cluster"),
        (call("gold"), f"could not use the storage policy 'gold': {vcenter.facts['hostname']}"),
    ):
        for check in (True, False):
            refused = ansible.module("worker_vm", check=check, **options)
            assert refused.rc == 1 and words in refused.msg, refused.out
    assert vcenter.writes() == []
    assert ansible.module("worker_vm", **call(OTHER, datastore="shared")).rc == 0
    drifted = ansible.module("worker_vm", **call(POLICY, datastore="shared"))
    assert (
        drifted.rc == 0
        and "does not comply with the storage policy"
        in ansible.module("worker_vm", check=True, **call(POLICY, datastore="shared")).out
    )


@pytest.mark.datacentre(text=HOSTS)
def test_a_virtual_tpm_needs_a_key_provider(vcenter: Simulator, ansible: Ansible) -> None:
    with machine(vcenter, TEMPLATE) as vm:
        on = host_of(vm, "esx01.lab")
        vm.ref.MarkAsVirtualMachine(on.parent.resourcePool, on)
        tpm = vim.vm.device.VirtualDeviceSpec(operation="add", device=vim.vm.device.VirtualTPM(key=-1))
        do(vm, vm.ref.ReconfigVM_Task(vim.vm.ConfigSpec(deviceChange=[tpm])))
    vcenter.clear()
    for check in (True, False):
        refused = ansible.module("worker_vm", check=check, **desired(1))
        assert refused.rc == 1 and "has a virtual TPM" in refused.msg and "no key provider" in refused.msg, refused.out
    assert vcenter.writes() == []
    with machine(vcenter, TEMPLATE) as vm:
        keys = vm.session.content.cryptoManager
        keys.RegisterKmsCluster(vim.encryption.KeyProviderId(id="native"), "nativeProvider")
    done = ansible.module("worker_vm", **desired(1))
    assert done.rc == 0 and states(done)["worker01"]["vtpm"] is True, done.out
    assert not ansible.module("worker_vm", **desired(1)).changed
    gone = {"cluster": "gpu", "state": "absent", "power_cycle": True, "workers": [{"name": "worker01"}]}
    assert ansible.module("worker_vm", **gone).rc == 0
