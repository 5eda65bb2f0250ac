"""Playbooks and modules hold the lock of the cluster while they change it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.ansible import AnsibleFor, Start
from tests.integration.releases import NEWEST
from tests.integration.sites import Site, datacentre

pytestmark = pytest.mark.release(NEWEST)
LOCK = "dml.vsphere.lock "


@pytest.fixture
def site(start: Start, ansible_for: AnsibleFor) -> Site:
    """Two hosts without a network or workers."""
    vcenter = start(text=datacentre())
    return Site(vcenter, ansible_for(vcenter))


def holder(site: Site) -> str | None:
    """Return the run that holds the lock."""
    read = site.ansible.module("cluster_info", cluster="gpu").result["cluster"]["lock"]
    return read["run"] if read["held"] else None


def refused(site: Site, playbook: str, **options: Any) -> None:
    """Run a playbook that must end at the lock of another run."""
    outcome = site.run(playbook, **options)
    assert outcome.rc == 2 and site.written() == [] and holder(site) == "other", outcome.out
    assert "could not take its lock" in outcome.out and "anna@elsewhere" in outcome.out, outcome.out


@pytest.mark.breaks("lock")
def test_takes_over_another_lock_only_on_request(site: Site) -> None:
    site.build(workers=1)
    taken = site.ansible.module("cluster_lock", cluster="gpu", run="other", owner="anna@elsewhere")
    assert taken.rc == 0, taken.out
    refused(site, "workers")
    refused(site, "teardown", confirm=True, unreachable_is_idle=True)

    site.good("workers", force_unlock=True, worker_vms=site.variables["worker_vms"][1:])

    names = [name for _method, name in site.written()]
    locks = [place for place, name in enumerate(names) if name.startswith(LOCK)]
    assert min(locks) < names.index("debian-12") < max(locks) and holder(site) is None, names


def test_frees_the_lock_after_a_failed_run(site: Site) -> None:
    site.build(workers=0)
    site.vcenter.fault("PowerOnVM_Task")
    failed = site.run("workers")
    assert failed.rc == 2 and holder(site) is None, failed.out
    assert site.ansible.module("cluster_lock", cluster="gpu", run="other").rc == 0
    site.vcenter.clear()
    assert site.run("workers", "--check").rc == 0 and site.written() == [] and holder(site) == "other"


HOT = {"vcenter_options": {"vgpu.hotmigrate.enabled": True}, "allow_shared_settings": True}
DRS = {"cluster": "gpu", "drs_options": {"LBMaxVmotionPerHost": "1"}, "allow_shared_settings": True}


def test_refuses_modules_under_another_runs_lock(site: Site) -> None:
    site.build(workers=1)
    assert site.ansible.module("shared_settings", **HOT).changed
    (move,) = site.ansible.module("vmotion_plan", cluster="gpu").result["moves"]
    moved = {"cluster": "gpu", "worker": move["worker"], "target": move["target"], "accept": ["pvrdma"]}
    fabric = {"cluster": "gpu", "port_groups": [{"name": "new"}], "adapters": []}
    for module, options in (("shared_settings", DRS), ("vmotion", moved), ("rdma_fabric", fabric)):
        assert site.ansible.module("cluster_lock", cluster="gpu", run="other").rc == 0
        site.vcenter.clear()
        ended = site.ansible.adhoc(module, **options)
        assert ended.rc != 0 and "gpu: could not take its lock" in ended.out, ended.out
        assert site.written() == [] and holder(site) == "other"
