"""GPUs of workers against the simulated data centre: refusals, passthrough, sharing, several, MIG, groups."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim

from lab.simulator import Simulator
from tests.integration.ansible import AnsibleFor, Outcome, Start
from tests.integration.fabrics import object_of, opened
from tests.integration.workers import HOSTS, desired, machine, states

PCI = vim.vm.device.VirtualPCIPassthrough
GPU = "0000:ca:00.0"
GROUP = "Nvidia:2@grid_a100-40c%NVLink"
BIG = """
hardware:
  pair:
    sockets: 2
    cores_per_socket: 24
    mhz: 2400
    memory_gb: 768
    device_groups: ["Nvidia:2@grid_a100-40c%NVLink"]
    gpus:
      - {pci: "0000:3b:00.0", model: a100, numa: 0}
      - {pci: "0000:ca:00.0", model: a100, numa: 1}
    nics:
      - {device: vmnic0, pci: "0000:18:00.0", driver: i40en, name: X710, vendor_id: 0x8086, device_id: 0x1572,
         speed_mb: 10000, numa: 0}
      - {device: vmnic2, pci: "0000:98:00.0", driver: nmlx5_core, name: CX6, vendor_id: 0x15b3, device_id: 0x101b,
         speed_mb: 200000, numa: 1, rdma: vmrdma0}
  mig:
    sockets: 2
    cores_per_socket: 24
    mhz: 2400
    memory_gb: 512
    gpus: [{pci: "0000:ca:00.0", model: a100, mig: true, numa: 1}]
    nics: []
host_defaults:
  graphics: {default: sharedDirect}
  vibs: [{name: NVD-AIE_ESXi_8.0.0_Driver, version: "550.90.05-1", vendor: NVIDIA}]
clusters:
  - name: gpu
    hosts:
      - {name: esx01.lab, hardware: pair, passthrough: [all]}
      - {name: esx02.lab, hardware: pair}
      - {name: esx03.lab, hardware: mig}
vms:
  - {name: debian-12, template: true, cpus: 2, memory_mb: 4096, firmware: efi, snapshot: clean}
  - {name: ubuntu-bios, template: true, cpus: 2, memory_mb: 4096, firmware: bios}
"""
BASE = {"cluster": "gpu", "wait_for_address": False}


@pytest.fixture
def t4(start: Start) -> Simulator:
    return start(text=HOSTS)


@pytest.fixture
def big(start: Start) -> Simulator:
    return start(text=BIG)


def run(ansible_for: AnsibleFor, place: Simulator, gpus: list[dict[str, Any]], **more: Any) -> Outcome:
    """Workers with these GPUs; a second run must find nothing to do."""
    names = more.pop("names", ["w1"])
    options = {key: more.pop(key) for key in ("one_per_host", "same_numa_node", "power_cycle") if key in more}
    defaults = {"template": "debian-12", "gpus": gpus, **more}
    requested = {**BASE, **options, "defaults": defaults, "workers": [{"name": name} for name in names]}
    done = ansible_for(place).module("worker_vm", **requested)
    if done.rc == 0:
        place.clear()
        again = ansible_for(place).module("worker_vm", **requested)
        assert (again.rc, again.changed, place.writes()) == (0, False, []), again.out
    return done


def backings(place: Simulator, name: str) -> list[Any]:
    with machine(place, name) as vm:
        return [one.backing for one in vm.ref.config.hardware.device if isinstance(one, PCI)]


def test_pinned_worker_displaces_a_running_one_if_allowed(t4: Simulator, ansible_for: AnsibleFor) -> None:
    ansible = ansible_for(t4)
    first = ansible.module("worker_vm", **desired(3))
    assert first.rc == 0, first.out
    there = {name: state["host"] for name, state in states(first).items()}
    pinned = {**desired(4), "workers": [*desired(4)["workers"][:3], {"name": "worker04", "host": there["worker02"]}]}
    t4.clear()
    refused = ansible.module("worker_vm", **pinned)
    assert refused.rc == 1 and t4.writes() == []
    assert f"(worker02 from {there['worker02']} to esx0" in refused.msg and "allow_moves: true permits" in refused.msg
    shown = ansible.module("worker_vm", check=True, **pinned, allow_moves=True)
    assert "to make room for worker04" in shown.out and t4.writes() == []
    done = ansible.module("worker_vm", **pinned, allow_moves=True)
    assert done.rc == 0, done.out
    now = {name: state["host"] for name, state in states(done).items()}
    assert [name for name in there if now[name] != there[name]] == ["worker02"]
    assert now["worker04"] == there["worker02"]


def test_worker_takes_two_vgpus_and_gpu_two_workers(t4: Simulator, big: Simulator, ansible_for: AnsibleFor) -> None:
    double = run(ansible_for, big, [{"profile": "grid_a100-40c", "count": 2}])
    assert double.rc == 0, double.out
    assert states(double)["w1"]["gpus"] == ["grid_a100-40c"] * 2
    assert states(double)["w1"]["mmio_gb"] == 256
    shared = run(ansible_for, t4, [{"profile": "grid_t4-8c"}], names=["a", "b"], one_per_host=False, host="esx01.lab")
    assert shared.rc == 0, shared.out
    third = run(ansible_for, t4, [{"profile": "grid_t4-8c"}], names=["c"], one_per_host=False, host="esx01.lab")
    assert "a has grid_t4-8c, b has grid_t4-8c" in third.msg


def test_passthrough_by_device_takes_the_matching_gpu(big: Simulator, ansible_for: AnsibleFor) -> None:
    done = run(ansible_for, big, [{"device": "10de:20f1"}], latency_sensitivity="high", cpus=8)
    assert done.rc == 0, done.out
    state = states(done)["w1"]
    assert (state["host"], state["gpus"], state["mmio_gb"]) == ("esx01.lab", ["10de:20f1"], 128)
    assert (state["latency_sensitivity"], state["cpu_reserved_mhz"]) == ("high", 8 * 2400)
    (backing,) = backings(big, "w1")
    assert [(one.vendorId, one.deviceId) for one in backing.allowedDevice] == [(0x10DE, 0x20F1)]
    full = run(ansible_for, big, [{"device": "10de:20f1", "count": 2}], names=["w2"], one_per_host=False)
    assert "esx01.lab: not enough free PCI devices 10de:20f1 (w1 has 0000:" in full.msg


def test_passthrough_by_address_requires_a_host(big: Simulator, ansible_for: AnsibleFor) -> None:
    assert "a PCI address identifies a different device on each host" in run(ansible_for, big, [{"address": GPU}]).msg
    done = run(ansible_for, big, [{"address": GPU}], host="esx01.lab")
    assert done.rc == 0, done.out
    (backing,) = backings(big, "w1")
    assert (backing.id, backing.deviceId, backing.systemId != "") == (GPU, "20f1", True)
    swapped = run(ansible_for, big, [{"address": "0000:3b:00.0"}], host="esx01.lab", power_cycle=True)
    assert swapped.rc == 0, swapped.out
    assert [one.id for one in backings(big, "w1")] == ["0000:3b:00.0"]


def test_passthrough_by_label_takes_only_labelled_devices(big: Simulator, ansible_for: AnsibleFor) -> None:
    none = run(ansible_for, big, [{"label": "gold"}])
    assert "not enough free PCI devices" in none.msg and big.writes() == [], none.msg
    with opened(big) as one:
        gold = vim.host.PciPassthruConfig(id=GPU, passthruEnabled=True, hardwareLabel="gold")
        object_of(one, vim.HostSystem, "esx01.lab").configManager.pciPassthruSystem.UpdatePassthruConfig([gold])
    done = run(ansible_for, big, [{"label": "gold"}])
    assert done.rc == 0, done.out
    (backing,) = backings(big, "w1")
    assert (backing.customLabel, backing.assignedId) == ("gold", GPU)
    second = run(ansible_for, big, [{"label": "gold"}], names=["w2"], one_per_host=False)
    assert "not enough free PCI devices" in second.msg and GPU in second.msg, second.msg


def test_adds_and_removes_linked_gpus_as_a_group(big: Simulator, ansible_for: AnsibleFor) -> None:
    done = run(ansible_for, big, [{"group": GROUP}], host="esx02.lab")
    assert done.rc == 0, done.out
    assert states(done)["w1"]["gpus"] == [GROUP]
    assert [one.vgpu for one in backings(big, "w1")] == ["grid_a100-40c"] * 2
    moved = ansible_for(big).module("vmotion", check=True, cluster="gpu", worker="w1", target="esx03.lab")
    assert f"esx03.lab does not offer its linked vGPUs, the device group {GROUP}; it offers none" in moved.out
    single = run(ansible_for, big, [{"profile": "grid_a100-40c"}], host="esx02.lab", power_cycle=True)
    assert single.rc == 0, single.out
    assert [one.vgpu for one in backings(big, "w1")] == ["grid_a100-40c"]
    unlinked = run(ansible_for, big, [{"group": GROUP}], names=["w2"], host="esx03.lab")
    assert f"no device group {GROUP} (offered: none)" in unlinked.msg


def test_linked_clone_requires_snapshot_and_matching_firmware(big: Simulator, ansible_for: AnsibleFor) -> None:
    linked = run(ansible_for, big, [], clone="linked")
    assert linked.rc == 0, linked.out
    named = run(ansible_for, big, [], names=["w3"], clone="linked", snapshot="clean")
    assert named.rc == 0, named.out
    refused = run(ansible_for, big, [], names=["w2"], clone="linked", template="ubuntu-bios")
    assert "ubuntu-bios has no snapshot" in refused.msg
    other = run(ansible_for, big, [], names=["w2"], firmware="efi", template="ubuntu-bios")
    assert "an installed system does not boot with another firmware" in other.msg
    warned = run(ansible_for, big, [{"device": "10de:20f1"}], names=["w2"], template="ubuntu-bios", one_per_host=False)
    assert "need EFI" in str(warned.result["workers"][0]["warnings"]), warned.out


@pytest.mark.parametrize(
    ("gpus", "more", "words"),
    [
        ([], {"datastore": "nowhere"}, "could not find one datastore named 'nowhere'"),
        ([], {"resource_pool": "nowhere"}, "could not find one resource pool named 'nowhere'"),
        ([], {"rdma_nics": [{"portgroup": "VM Network"}]}, "where PVRDMA does not work"),
    ],
)
def test_refuses_impossible_requests_before_any_write(
    t4: Simulator, ansible_for: AnsibleFor, gpus: list[dict[str, Any]], more: dict[str, Any], words: str
) -> None:
    refused = run(ansible_for, t4, gpus, names=["good", "bad"], **more)
    assert refused.rc == 1
    assert words in refused.msg
    assert t4.writes() == []


MOCK = """
gpu_models:
  mock:
    {name: Mockup GPU, vendor_id: 0x15ad, device_id: 0x1, memory_mb: 16384,
     profiles: [{name: mockup-vmiop-8c, memory_gb: 8, class: compute, sharing: timeSliced}]}
hardware:
  nested: {sockets: 1, cores_per_socket: 16, mhz: 2400, memory_gb: 256, nics: [],
           gpus: [{pci: "0000:3b:00.0", model: mock}]}
host_defaults:
  hardware: nested
  graphics: {default: sharedDirect}
  vibs: [{name: NVD-AIE_ESXi_8.0.0_Driver, version: "550.90.05-1", vendor: NVIDIA}]
clusters: [{name: gpu, hosts: [{name: esx01.lab}]}]
vms: [{name: debian-12, template: true, cpus: 2, memory_mb: 4096, firmware: efi}]
"""


def test_profile_with_unknown_name_is_counted_as_described(start: Start, ansible_for: AnsibleFor) -> None:
    place = start(text=MOCK)
    gpus = [{"profile": "mockup-vmiop-8c"}]

    built = run(ansible_for, place, gpus, names=["w1", "w2"], one_per_host=False)
    assert built.rc == 0, built.out
    (slots,) = ansible_for(place).module("cluster_info", cluster="gpu").result["cluster"]["gpu_slots"]
    third = run(ansible_for, place, gpus, names=["w3"], one_per_host=False)

    assert (slots["profile"], slots["used"], slots["free"]) == ("mockup-vmiop-8c", 2, 0)
    assert third.rc == 1 and "mockup-vmiop-8c" in third.msg, third.msg
