"""custom_attributes and the lock's state absent leave nothing of ours in vCenter, and take nothing of others'."""

from __future__ import annotations

from typing import Any

import pytest

from lab import world
from tests.integration.ansible import AnsibleFor, Outcome, Start
from tests.integration.booting import boot
from tests.integration.sites import Site, datacentre

PENDING = "dml.vsphere.pending"


@pytest.fixture
def site(start: Start, ansible_for: AnsibleFor) -> Site:
    vcenter = start(text=datacentre())
    return Site(vcenter, ansible_for(vcenter))


def good(site: Site, module: str, *, check: bool = False, **options: Any) -> Outcome:
    """Run a module that must succeed; afterwards the log holds its writes alone."""
    site.vcenter.clear()
    done = site.ansible.module(module, cluster="gpu", check=check, **options)
    assert done.rc == 0, done.msg
    return done


def test_removal_by_modules_restores_the_original_vcenter(site: Site) -> None:
    before = world.state(site.vcenter)
    site.build(workers=2)
    assert len(world.differences(before, world.state(site.vcenter))) > 100
    kept = good(site, "custom_attributes")
    assert not kept.changed and kept.result["why"] == [
        "dml.vsphere.fabric stays: esx01.lab, esx02.lab carry it",
        "dml.vsphere.worker stays: worker01, worker02 carry it",
    ]
    found = good(site, "worker_vm_info").result
    assert ([one["name"] for one in found["workers"]], found["unfinished"]) == (["worker01", "worker02"], [])
    workers = [{"name": one["name"]} for one in found["workers"]]
    good(site, "worker_vm", state="absent", power_cycle=True, workers=workers)
    good(site, "rdma_fabric", state="absent")
    for check, changes, writes in ((True, True, 0), (False, True, 2), (True, False, 0), (False, False, 0)):
        done = good(site, "custom_attributes", check=check)
        assert (done.changed, len(site.written())) == (changes, writes)
    assert world.differences(before, world.state(site.vcenter)) == {}


def test_removes_a_boot_note_after_the_host_boots(site: Site) -> None:
    options = {"max_vfs": 4}
    changed = site.ansible.module("esxi_kernel_module", hosts=["esx01.lab"], name="nmlx5_core", options=options)
    assert changed.rc == 0, changed.msg
    due = good(site, "custom_attributes")
    assert not due.changed and due.result["state"][PENDING] == "defined"
    boot(site.vcenter, "esx01.lab")
    assert good(site, "custom_attributes").changed
    assert [method for method, _name in site.written()] == ["SetField", "RemoveCustomFieldDef"]


def test_removes_the_lock_only_for_its_holder(site: Site) -> None:
    before = world.state(site.vcenter)
    good(site, "cluster_lock", run="one")
    refused = site.ansible.module("cluster_lock", cluster="gpu", run="other", state="absent")
    assert refused.rc == 1 and "could not remove its lock: it is held by" in refused.msg
    assert good(site, "cluster_lock", run="one", state="absent", check=True).changed and site.written() == []
    assert good(site, "cluster_lock", run="one", state="absent").changed
    assert world.differences(before, world.state(site.vcenter)) == {}
    assert not good(site, "cluster_lock", run="other", state="absent").changed and site.written() == []


def test_next_run_finishes_a_killed_removal(site: Site) -> None:
    before = world.state(site.vcenter)
    good(site, "cluster_lock", run="one")
    site.vcenter.fault("Destroy_Task")
    assert site.ansible.module("cluster_lock", cluster="gpu", run="one", state="absent").rc == 1
    site.vcenter.heal()
    assert good(site, "cluster_lock", run="two", state="absent").changed
    assert world.differences(before, world.state(site.vcenter)) == {}
