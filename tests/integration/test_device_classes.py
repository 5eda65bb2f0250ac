"""Workers with devices of a class (Enhanced DirectPath I/O): placement by class, and moves where the class moves."""

from __future__ import annotations

from typing import Any

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible, AnsibleFor, Start
from tests.integration.workers import TEMPLATE, states

# Two hosts with both classes, one with a class that does not move there, and one without.
CLASSES = """
hardware:
  both: &both
    sockets: 2
    cores_per_socket: 16
    mhz: 2600
    memory_gb: 256
    nics: [{device: vmnic0, pci: "0000:18:00.0", driver: i40en, name: X710, vendor_id: 0x8086, device_id: 0x1572}]
    dvx_classes:
      - {name: nvidia-mover, devices: 1, checkpoint: true}
      - {name: amd-stayer, devices: 2}
      - {name: cx7-mover, devices: 1, checkpoint: true, sriov_nic: true}
      - {name: cx7-stayer, devices: 1, sriov_nic: true}
  old: {<<: *both, dvx_classes: [{name: nvidia-mover, devices: 1}]}
  plain: {<<: *both, dvx_classes: []}
host_defaults: {vmotion_seconds: 0.1}
switches:
  - {name: rdma, mtu: 9000, uplinks: [vmnic0], portgroups: [{name: rdma-vm, vlan: 216}]}
clusters:
  - name: gpu
    hosts:
      - {name: esx01.lab, hardware: both}
      - {name: esx02.lab, hardware: both}
      - {name: esx03.lab, hardware: old}
      - {name: esx04.lab, hardware: plain}
vms:
  - {name: debian-12, template: true, cpus: 2, memory_mb: 4096, firmware: efi}
"""
MOVER, STAYER = "nvidia-mover", "amd-stayer"
RDMA_MOVER, RDMA_STAYER = "cx7-mover", "cx7-stayer"
pytestmark = pytest.mark.datacentre("", "--release=9.0", text=CLASSES)


def worker_request(name: str, device_class: str, count: int = 1, **more: Any) -> dict[str, Any]:
    """One worker with devices of a class."""
    gpus = [{"device_class": device_class, "count": count, "memory_gb": 40}]
    defaults = {"template": TEMPLATE, "memory_mb": 16384, "gpus": gpus}
    return {
        "cluster": "gpu",
        "one_per_host": False,
        "wait_for_address": False,
        "defaults": defaults,
        "workers": [{"name": name, **more}],
    }


def move(ansible: Ansible, worker: str, target: str, **more: Any) -> Any:
    return ansible.module("vmotion", cluster="gpu", worker=worker, target=target, **more)


@pytest.fixture(params=["8.0 U3", "9.0"])
def place(start: Start, request: pytest.FixtureRequest) -> Simulator:
    return start("", f"--release={request.param}", text=CLASSES)


def test_places_and_moves_workers_by_device_class(place: Simulator, ansible_for: AnsibleFor) -> None:
    ansible = ansible_for(place)
    mover, stayer = worker_request("w1", MOVER, host="esx01.lab"), worker_request("w2", STAYER, count=2)
    for requested, host, gpus in ((mover, "esx01.lab", [MOVER]), (stayer, "esx01.lab", [STAYER] * 2)):
        done = ansible.module("worker_vm", **requested)
        assert done.rc == 0, done.out
        (state,) = states(done).values()
        assert (state["host"], state["gpus"]) == (host, gpus)
        again = ansible.module("worker_vm", **requested)
        assert (again.rc, again.changed) == (0, False), again.out
    place.clear()
    refused = {
        ("w1", "esx03.lab"): "esx03.lab reports no vMotion support for its devices of class nvidia-mover",
        ("w1", "esx04.lab"): "esx04.lab has no device of class nvidia-mover; it has none",
        ("w2", "esx02.lab"): "it uses a device of class amd-stayer, for which the host reports no vMotion support",
    }
    for (worker, target), words in refused.items():
        outcome = move(ansible, worker, target)
        assert outcome.rc != 0 and words in outcome.msg, outcome.out
    assert place.writes() == []
    moved = move(ansible, "w1", "esx02.lab")
    assert moved.rc == 0, moved.out
    assert moved.result["move"]["vsphere"]["host"] == {"before": "esx01.lab", "after": "esx02.lab"}


def test_refuses_a_class_without_free_device_before_writing(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("worker_vm", **worker_request("w1", MOVER, host="esx01.lab")).rc == 0
    vcenter.clear()
    refused = ansible.module("worker_vm", **worker_request("w2", MOVER, host="esx01.lab"))
    assert "not enough free devices of class nvidia-mover (w1 has nvidia-mover 1)" in refused.msg, refused.out
    unknown = ansible.module("worker_vm", **worker_request("w2", "nvidia-other"))
    assert "not enough free devices of class nvidia-other" in unknown.msg, unknown.out
    assert vcenter.writes() == []
    elsewhere = ansible.module("worker_vm", **worker_request("w2", MOVER))
    assert elsewhere.rc == 0, elsewhere.out
    full = move(ansible, "w1", states(elsewhere)["w2"]["host"])
    assert "has no free device of class nvidia-mover" in full.msg or "no vMotion support" in full.msg, full.out


def with_nic(name: str, device_class: str, host: str) -> dict[str, Any]:
    """One worker without GPUs, with an RDMA card of a class; without a class, with a PVRDMA card."""
    nic = {"portgroup": "rdma-vm", **({"device_class": device_class} if device_class else {})}
    return {
        **worker_request(name, MOVER, host=host, rdma_nics=[nic]),
        "defaults": {"template": TEMPLATE, "memory_mb": 16384},
    }


def test_places_and_moves_rdma_cards_by_device_class(place: Simulator, ansible_for: AnsibleFor) -> None:
    ansible = ansible_for(place)
    for name, device_class in (("w1", RDMA_MOVER), ("w2", RDMA_STAYER)):
        requested = with_nic(name, device_class, "esx01.lab")
        checked = ansible.module("worker_vm", check=True, **requested)
        done = ansible.module("worker_vm", **requested)
        assert (checked.rc, done.rc, done.changed) == (0, 0, True), done.out
        (state,) = states(done).values()
        nic = {"portgroup": "rdma-vm", "connected": True, "device_class": device_class}
        (made,) = state["rdma_nics"]
        assert {key: made[key] for key in nic} == nic
        assert state["memory_reserved"] is True
        again = ansible.module("worker_vm", **requested)
        assert (again.rc, again.changed) == (0, False), again.out
    place.clear()
    tied, absent = move(ansible, "w2", "esx02.lab"), move(ansible, "w1", "esx04.lab")
    assert f"it uses a device of class {RDMA_STAYER}, for which the host reports no vMotion support" in tied.msg
    assert f"esx04.lab has no device of class {RDMA_MOVER}" in absent.msg and place.writes() == [], absent.out
    moved = move(ansible, "w1", "esx02.lab")
    assert moved.rc == 0, moved.out


RAILS = [{"portgroup": "rdma-vm", "device_class": name} for name in (RDMA_STAYER, RDMA_MOVER)]
ADDRESSES = ["10.216.1.11/24", "10.216.2.11/24"]


def with_rails(first: int = 0) -> dict[str, Any]:
    """One worker with an RDMA card of each class, from a number on."""
    guest = {"rdma_addresses": ADDRESSES[first:]}
    nics = {"rdma_nics": RAILS[first:], "management_nic": {"portgroup": "VM Network"}}
    requested = with_nic("w1", RDMA_MOVER, "esx01.lab")
    return {**requested, "workers": [{**requested["workers"][0], **nics, "guest": guest}]}


def test_builds_several_rdma_cards_with_their_addresses(place: Simulator, ansible_for: AnsibleFor) -> None:
    ansible = ansible_for(place)
    checked = ansible.module("worker_vm", check=True, **with_rails())
    assert checked.changed and place.writes() == [], checked.out

    done = ansible.module("worker_vm", **with_rails())

    assert done.rc == 0, done.out
    nics = states(done)["w1"]["rdma_nics"]
    assert [nic["device_class"] for nic in nics] == [RDMA_STAYER, RDMA_MOVER]
    assert ansible.module("worker_vm", **with_rails()).changed is False
    (worker,) = ansible.module("worker_vm_info", cluster="gpu").result["workers"]
    assert worker["vm_rdma_macs"] == [nic["mac"] for nic in nics]
    assert worker["vm_rdma_classes"] == [RDMA_STAYER, RDMA_MOVER]
    assert worker["vm_rdma_addresses"] == ["10.216.1.11", "10.216.2.11"]


def test_removes_an_rdma_card_only_from_stopped_workers(vcenter: Simulator, ansible: Ansible) -> None:
    built = states(ansible.module("worker_vm", **with_rails()))["w1"]["rdma_nics"]
    vcenter.clear()

    running = ansible.module("worker_vm", **with_rails(1))
    assert "it runs, and rdma_nics, guest can change only while it is off" in running.msg, running.out
    assert vcenter.writes() == []

    removed = ansible.module("worker_vm", power_cycle=True, **with_rails(1))
    assert states(removed)["w1"]["rdma_nics"] == built[1:], removed.out
    assert ansible.module("worker_vm", power_cycle=True, **with_rails(1)).changed is False


def test_converts_a_pvrdma_card_to_class_and_back(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("worker_vm", **with_nic("w1", "", "esx01.lab")).rc == 0
    vcenter.clear()
    other = ansible.module("worker_vm", **with_nic("w1", STAYER, "esx01.lab"))
    assert "esx01.lab reports that devices of class amd-stayer are not SR-IOV network cards" in other.msg, other.out
    running = ansible.module("worker_vm", **with_nic("w1", RDMA_MOVER, "esx01.lab"))
    assert "set power_cycle: true" in running.msg and vcenter.writes() == [], running.out
    macs = set()
    for device_class, has in ((RDMA_MOVER, "device_class"), ("", "protocol")):
        done = ansible.module("worker_vm", power_cycle=True, **with_nic("w1", device_class, "esx01.lab"))
        assert done.rc == 0, done.out
        state = states(done)["w1"]
        (nic,) = state["rdma_nics"]
        assert has in nic
        macs.add(nic["mac"])
        found = ansible.module("worker_vm_info", cluster="gpu")
        (worker,) = found.result["workers"]
        assert worker["vm_rdma_classes"] == ([device_class] if device_class else [])
        assert worker["vm_rdma_macs"] == [nic["mac"]]
        assert worker["vm_rdma_protocol"] == (None if device_class else "rocev2")
    assert len(macs) == 1
    assert ansible.module("worker_vm", **with_nic("w2", RDMA_MOVER, "esx01.lab")).rc == 0
    full = ansible.module("worker_vm", **with_nic("w3", RDMA_MOVER, "esx01.lab"))
    assert f"not enough free devices of class {RDMA_MOVER} (w2 has {RDMA_MOVER} 1)" in full.msg, full.out
