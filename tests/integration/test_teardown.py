"""playbooks/teardown.yml: what was built goes, in its order, and vCenter is as it was before."""

from __future__ import annotations

import pytest
from pyVmomi import vim

from lab import world
from plugins.module_utils.trials.steps.holding import RULE
from plugins.module_utils.vsphere import custom_fields
from plugins.module_utils.workers import worker_mark
from tests.integration.ansible import AnsibleFor, Start
from tests.integration.fabrics import connect, object_of, opened
from tests.integration.releases import NEWEST
from tests.integration.sites import Site, datacentre
from tests.integration.workers import do, machine

pytestmark = pytest.mark.release(NEWEST)

STRANGER = "vms: [{name: debian-12, template: true, cpus: 2, memory_mb: 4096, firmware: efi}, {name: theirs}]\n"


@pytest.fixture
def site(start: Start, ansible_for: AnsibleFor) -> Site:
    """Two hosts that share their GPUs and have no RDMA network yet."""
    vcenter = start(text=datacentre())
    return Site(vcenter, ansible_for(vcenter))


@pytest.mark.every_release
def test_removes_only_what_was_built_in_order(site: Site) -> None:
    before = world.state(site.vcenter)
    site.good("fabric")
    site.good("workers")
    tagged = site.ansible.module("esxi_pvrdma", cluster="gpu", vmk="vmk1")
    assert tagged.rc == 0 and world.differences(before, world.state(site.vcenter)), tagged.msg
    listed = site.quiet("teardown", "--check")
    unconfirmed = site.run("teardown")
    assert unconfirmed.rc == 0 and "changed=0" in unconfirmed.out and site.vcenter.writes() == [], unconfirmed.out
    message = " ".join(unconfirmed.out.split())
    assert "gpu: nothing was removed, because the removal is not confirmed: -e confirm=true would" in message
    for line in (
        "delete worker01, worker02 with their disks",
        "vmk1 of esx01.lab, esx02.lab",
        "restore the shared settings from",
    ):
        assert line in " ".join(listed.out.split()) and line in message, listed.out
    site.good("teardown", confirm=True, unreachable_is_idle=True)
    steps = ["Destroy_Task", "UpdateOptions", "RemoveVirtualNic", "ReconfigureDvs_Task", "RemoveCustomFieldDef"]
    methods = [method for method, name in site.written() if not name.startswith("dml.vsphere.lock ")]
    order = [methods.index(step) for step in steps]
    assert order == sorted(order), methods
    pvrdma = site.ansible.module("esxi_info", cluster="gpu", gather=["pvrdma"]).result["hosts"]
    assert [host["pvrdma"]["vmk"] for host in pvrdma] == ["", ""]
    assert world.differences(before, world.state(site.vcenter)) == {}
    assert list(site.evidence.iterdir()) == []
    site.quiet("teardown", confirm=True, unreachable_is_idle=True)


def test_refuses_missing_evidence_before_any_removal(site: Site) -> None:
    site.build(workers=1)
    missing = {"confirm": True, "rollback_evidence": str(site.evidence / "nosuch.json")}
    refused = site.run("teardown", **missing, unreachable_is_idle=True)
    assert refused.rc == 2 and "nosuch.json: could not read it as evidence" in refused.out, refused.out
    assert site.vcenter.writes() == []


@pytest.mark.slow
def test_continues_an_interrupted_teardown(site: Site) -> None:
    before = world.state(site.vcenter)
    site.build(workers=1)
    for method in ("RemoveVirtualNic", "RemoveCustomFieldDef"):
        site.vcenter.fault(method)
        stopped = site.run("teardown", confirm=True, unreachable_is_idle=True)
        assert stopped.rc == 2, stopped.out
        site.vcenter.heal()
        left = site.quiet("teardown", "--check").out
        assert "worker01" not in left and "custom attributes" in left
    site.good("teardown", confirm=True, unreachable_is_idle=True)
    assert world.differences(before, world.state(site.vcenter)) == {}


def test_refuses_removal_while_others_use_the_network(start: Start, ansible_for: AnsibleFor) -> None:
    text = datacentre().partition("vms:")[0] + STRANGER
    vcenter = start(text=text)
    site = Site(vcenter, ansible_for(vcenter), workers=1)
    site.build(workers=1)
    connect(vcenter, "theirs", "rdma-vm")
    refused = site.run("teardown", confirm=True, unreachable_is_idle=True)
    assert refused.rc == 2 and vcenter.writes() == [], refused.out
    assert "theirs stays and is connected to rdma-vm" in " ".join(refused.out.split())


@pytest.mark.slow
def test_removes_what_killed_runs_left_behind(site: Site) -> None:
    """A clone without a mark, and the override of a vMotion test."""
    other = {"name": "debian-12", "cluster": "elsewhere", "built": True}
    with opened(site.vcenter) as one:
        worker_mark.write(one, object_of(one, vim.VirtualMachine, "debian-12"), "debian-12", other)
    before = world.state(site.vcenter)
    site.build(workers=1)
    override = {"cluster": "gpu", "name": RULE, "workers": ["worker01"], "one_per_host": False}
    assert site.ansible.module("worker_rules", **override, drs_override="manual").changed
    with machine(site.vcenter, "debian-12") as vm:
        building = vim.option.OptionValue(key=worker_mark.BUILDING, value="worker02")
        host = object_of(vm.session, vim.HostSystem, "esx02.lab")
        pool = object_of(vm.session, vim.ClusterComputeResource, "gpu").resourcePool
        place = vim.vm.RelocateSpec(host=host, pool=pool)
        spec = vim.vm.CloneSpec(location=place, config=vim.vm.ConfigSpec(extraConfig=[building]))
        do(vm, vm.ref.CloneVM_Task(folder=vm.ref.parent, name="worker02", spec=spec))
    site.good("teardown", confirm=True, unreachable_is_idle=True)
    assert world.differences(before, world.state(site.vcenter)) == {}
    with machine(site.vcenter, "debian-12") as vm:
        assert worker_mark.read(custom_fields.definitions(vm.session), vm.ref.customValue) == other


@pytest.mark.slow
def test_teardown_removes_a_site_and_restores_its_hosts(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = start(text=datacentre(prepared=False))
    site = Site(vcenter, ansible_for(vcenter))
    before = world.state(vcenter)
    site.quiet("site", "--check", "--diff")
    site.good("site")
    site.quiet("site", unreachable_is_idle=True)
    (evidence,) = site.evidence.glob("gpu-2*.json")
    site.good("teardown", confirm=True, unreachable_is_idle=True, rollback_evidence=str(evidence))
    assert world.differences(before, world.state(vcenter)) == {}
