"""Playbooks and modules hold the lock of the cluster while they change it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible
from tests.integration.releases import NEWEST
from tests.integration.sites import Site, datacentre

pytestmark = pytest.mark.release(NEWEST)
LOCK = "dml.vsphere.lock "


@pytest.fixture
def site(start: Callable[..., Simulator], ansible_for: Callable[[Simulator], Ansible]) -> Site:
    """The network of two hosts, without workers."""
    vcenter = start(text=datacentre())
    made = Site(vcenter, ansible_for(vcenter))
    made.build(workers=0)
    return made


def holder(site: Site) -> str | None:
    """Return the run that holds the lock."""
    read = site.ansible.module("cluster_info", cluster="gpu").result["cluster"]["lock"]
    return read["run"] if read["held"] else None


def test_the_lock_of_another_run_is_respected_and_taken_over_only_with_the_option(site: Site) -> None:
    taken = site.ansible.module("cluster_lock", cluster="gpu", run="other", owner="anna@elsewhere")
    assert taken.rc == 0, taken.out
    assert site.run("workers", "--check").rc == 0 and site.written() == []

    refused = site.run("workers")
    assert refused.rc == 2 and site.written() == [] and holder(site) == "other", refused.out
    assert "could not take its lock" in refused.out and "anna@elsewhere" in refused.out, refused.out

    site.good("workers", force_unlock=True)
    names = [name for _method, name in site.written()]
    clone, rules = names.index("debian-12"), len(names) - 1 - names[::-1].index("gpu")
    locks = [place for place, name in enumerate(names) if name.startswith(LOCK)]
    assert min(locks) < clone < rules < max(locks) and holder(site) is None, names

    site.quiet("workers")


def test_the_lock_is_free_after_a_failed_run_and_after_a_deletion(site: Site) -> None:
    site.vcenter.fault("PowerOnVM_Task")
    failed = site.run("workers")
    assert failed.rc == 2 and holder(site) is None, failed.out

    site.vcenter.heal()
    site.good("workers")
    taken = site.ansible.module("cluster_lock", cluster="gpu", run="other")
    assert taken.rc == 0, taken.out
    absent = {"worker_state": "absent", "power_cycle": True, "unreachable_is_idle": True}
    refused = site.run("workers", **absent)
    assert refused.rc == 2 and site.written() == [] and "could not take its lock" in refused.out, refused.out

    site.good("workers", **absent, force_unlock=True)
    assert holder(site) is None and ("Destroy_Task", "worker01") in site.written()
    site.quiet("workers", **absent)


def test_teardown_takes_the_lock_over_only_with_the_option(site: Site) -> None:
    site.build(workers=1)
    taken = site.ansible.module("cluster_lock", cluster="gpu", run="other")
    assert taken.rc == 0, taken.out
    options = {"confirm": True, "unreachable_is_idle": True}

    refused = site.run("teardown", **options)
    assert refused.rc == 2 and site.written() == [] and holder(site) == "other", refused.out
    assert "could not take its lock" in refused.out, refused.out
    site.good("teardown", **options, force_unlock=True)
    assert ("Destroy_Task", "worker01") in site.written() and holder(site) is None


def test_fabric_takes_the_lock_over_only_with_the_option_and_only_for_a_change(
    start: Callable[..., Simulator], ansible_for: Callable[[Simulator], Ansible]
) -> None:
    vcenter = start(text=datacentre())
    site = Site(vcenter, ansible_for(vcenter))
    taken = site.ansible.module("cluster_lock", cluster="gpu", run="other", owner="anna@elsewhere")
    assert taken.rc == 0, taken.out
    assert site.run("fabric", "--check").rc == 0 and site.written() == []

    refused = site.run("fabric")
    assert refused.rc == 2 and site.written() == [] and holder(site) == "other", refused.out
    assert "could not take its lock" in refused.out and "anna@elsewhere" in refused.out, refused.out

    site.good("fabric", force_unlock=True)
    names = [name for _method, name in site.written()]
    locks = [place for place, name in enumerate(names) if name.startswith(LOCK)]
    assert min(locks) < names.index("rdma") < max(locks) and holder(site) is None, names
    assert site.ansible.module("cluster_lock", cluster="gpu", run="other").rc == 0
    site.quiet("fabric")
    assert holder(site) == "other", "a run that changes nothing takes no lock"


DRS = {
    "cluster": "gpu",
    "drs_options": {"LBMaxVmotionPerHost": "1"},
    "vcenter_options": {"vgpu.hotmigrate.enabled": True},
    "allow_shared_settings": True,
}


def test_shared_settings_and_moves_are_refused_under_the_lock_of_another_run(site: Site) -> None:
    site.build(workers=1)
    (move,) = site.ansible.module("vmotion_plan", cluster="gpu").result["moves"]
    moved = {"cluster": "gpu", "worker": move["worker"], "target": move["target"], "accept": ["pvrdma"]}
    for module, options in (("shared_settings", DRS), ("vmotion", moved)):
        assert site.ansible.module("cluster_lock", cluster="gpu", run="other").rc == 0
        site.vcenter.clear()
        refused = site.ansible.adhoc(module, **options)
        assert refused.rc != 0 and "gpu: could not take its lock" in refused.out, refused.out
        assert site.written() == [] and holder(site) == "other"
        done = site.ansible.adhoc(module, **options, force_unlock=True)
        assert done.changed and holder(site) is None, done.out
