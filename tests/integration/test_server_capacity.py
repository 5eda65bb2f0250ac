"""Slots that vCenter reserves are not planned with from 9.0 on, and refusals name the reservation."""

from __future__ import annotations

import pytest

from lab.simulator import Simulator
from plugins.module_utils.vsphere.inventory import find_hosts
from plugins.module_utils.workers.capacity import host_capacity
from tests.integration.ansible import AnsibleFor, Start
from tests.integration.fabrics import opened
from tests.integration.workers import HOSTS, PROFILE, desired

COUNT = "DirectPathProfileManagerQueryCapacity"
CLUSTER = {"cluster": "gpu"}


@pytest.fixture
def site(start: Start) -> Simulator:
    """Five hosts with one T4 each, of which the fourth and fifth are reserved."""
    vcenter = start(text=HOSTS)
    for host in ("esx04.lab", "esx05.lab"):
        vcenter.set_host(host, vgpu_reservations={PROFILE: 1})
    return vcenter


@pytest.mark.release("9.1")
def test_does_not_use_a_reservation_and_names_it(site: Simulator, ansible_for: AnsibleFor) -> None:
    ansible = ansible_for(site)
    refused = ansible.module("worker_vm", **desired(4))
    assert refused.rc == 1 and site.writes() == []
    assert f"esx04.lab, esx05.lab: no free place for {PROFILE} (a reservation has {PROFILE}" in refused.msg
    assert site.calls()[COUNT] == 5
    done = ansible.module("worker_vm", **desired(3))
    assert done.rc == 0, done.out
    assert not ansible.module("worker_vm", check=True, **desired(3)).changed


@pytest.mark.release("9.1")
def test_counts_gpu_slots_like_vcenter(site: Simulator, ansible_for: AnsibleFor) -> None:
    ansible = ansible_for(site)
    (whole,) = (
        one
        for one in ansible.module("cluster_info", **CLUSTER).result["cluster"]["gpu_slots"]
        if one["profile"] == PROFILE
    )
    assert (whole["used"], whole["free"], whole["reserved"]) == (0, 3, 2)
    site.fault(COUNT, fault="NotSupported", count=5)
    by_names = ansible.module("cluster_info", **CLUSTER).result["cluster"]["gpu_slots"]
    assert [(one["free"], one["reserved"]) for one in by_names if one["profile"] == PROFILE] == [(5, 0)]


@pytest.mark.release("8.0 U3")
def test_does_not_ask_an_older_vcenter(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = start(text=HOSTS)
    assert ansible_for(vcenter).module("worker_vm", check=True, **desired(4)).rc == 0
    assert COUNT not in vcenter.calls()


@pytest.mark.release("9.1")
def test_host_bindings_name_the_gpu_of_each_vgpu(site: Simulator, ansible_for: AnsibleFor) -> None:
    assert ansible_for(site).module("worker_vm", **desired(3)).rc == 0
    with opened(site) as session:
        (path,) = host_capacity.binding_paths(session.api_version)
        found = find_hosts(session, CLUSTER, ("config.graphicsInfo", path))
        found.refresh()
        bindings = [host[path] or [] for host in found.hosts]
        used = [host_capacity.users(host.properties) for host in found.hosts]
    assert sorted(len(some) for some in bindings) == [0, 0, 1, 1, 1]
    assert {one.pciId for some in bindings for one in some} == {"0000:3b:00.0"}
    assert [len(users["0000:3b:00.0"]) for users in used] == [len(some) for some in bindings]
