"""Changes that others make to workers show in --check --diff and are repaired; one more worker touches no other."""

from __future__ import annotations

import pytest
import yaml
from pyVmomi import vim

from lab.person import lose_rdma_nic, power_off
from lab.simulator import DATACENTRES, Simulator
from tests.integration.ansible import AnsibleFor, Start
from tests.integration.sites import DRIVER, Site, worker
from tests.integration.workers import move, reconfigure, remove_device, switch

WORKERS = [worker(1), worker(2), worker(3, host="esx03.lab"), worker(4)]


def prepared() -> str:
    """The lab with its network, hosts that share their GPUs, and vMotion of vGPUs."""
    lab = yaml.safe_load((DATACENTRES / "ready.yml").read_text())
    lab["vcenter_options"] = {"vgpu.hotmigrate.enabled": True}
    lab["host_defaults"].update(graphics={"default": "sharedDirect"}, vibs=[DRIVER], vmotion_seconds=0.2)
    return yaml.safe_dump(lab)


def change_profile(vcenter: Simulator, name: str) -> None:
    """Switch a worker off, give it half a GPU instead of a whole one, and switch it on."""
    power_off(vcenter, name)
    remove_device(vcenter, name, vim.vm.device.VirtualPCIPassthrough)
    half = vim.vm.device.VirtualPCIPassthrough.VmiopBackingInfo(vgpu="grid_t4-8c")
    device = vim.vm.device.VirtualPCIPassthrough(key=-1, backing=half)
    reconfigure(vcenter, name, deviceChange=[vim.vm.device.VirtualDeviceSpec(operation="add", device=device)])
    switch(vcenter, name, on=True)


def touched(site: Site) -> set[str]:
    """Return what the writes of the last run name, but for the template and the cluster with its rules and its lock."""
    return {write["name"] for write in site.vcenter.writes() if write["type"] != "Folder"} - {"debian-12", "gpu"}


@pytest.mark.slow
def test_repairs_four_kinds_of_drift_and_adds_workers(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = start(text=prepared())
    site = Site(vcenter, ansible_for(vcenter), hosts=5)
    site.good("workers", worker_vms=WORKERS)
    lose_rdma_nic(vcenter, "worker01")
    change_profile(vcenter, "worker02")
    move(vcenter, "worker03", "esx05.lab")
    power_off(vcenter, "worker04")
    shown = site.quiet("workers", "--check", "--diff", worker_vms=WORKERS)
    message = " ".join(shown.out.split())
    assert "worker01: is shut down and changes" in message and "it differs in rdma_nics" in message
    assert "- - grid_t4-8c + - grid_t4-16c" in message
    assert "it is on esx05.lab and belongs on esx03.lab" in message
    assert "worker04: changes" in message and "+ power: 'on'" in message
    refused = site.run("workers", worker_vms=WORKERS)
    assert refused.rc == 2 and touched(site) == set() and "set power_cycle: true" in refused.out
    site.good("workers", power_cycle=True, unreachable_is_idle=True, worker_vms=WORKERS)
    assert touched(site) == {"worker01", "worker02", "worker03", "worker04"}, site.written()
    moves = [name for method, name in site.written() if method == "RelocateVM_Task"]
    assert moves == ["worker03"]
    five = [*WORKERS, worker(5)]
    more = site.good("workers", worker_vms=five)
    assert touched(site) == {"worker05"}, site.written()
    assert "worker01, worker02, worker03, worker04: as described, nothing to do" in " ".join(more.out.split())
    site.quiet("workers", worker_vms=five)
