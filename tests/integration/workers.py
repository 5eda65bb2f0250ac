"""A data centre in which workers can be built, the wish for four of them, and what a person might do to them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lab.simulator import Simulator
from plugins.module_utils.vsphere import properties, session, tasks
from plugins.module_utils.vsphere.sdk import vim
from plugins.module_utils.workers import worker_mark
from plugins.module_utils.workers.machine import Machine

HOSTS = """
datastores: [shared]
vcenter_options: {vgpu.hotmigrate.enabled: true}
switches:
  - {name: rdma, mtu: 9000, uplinks: [vmnic2], portgroups: [{name: rdma-vm, vlan: 216}]}
host_defaults:
  hardware: t4_cx5
  vmotion_seconds: 0.1
  graphics: {default: sharedDirect}
  vibs: [{name: NVD-AIE_ESXi_8.0.0_Driver, version: "550.90.05-1", vendor: NVIDIA}]
clusters:
  - {name: gpu, hosts: [{name: "esx%02d.lab", count: 5}]}
vms:
  - {name: debian-12, template: true, cpus: 2, memory_mb: 4096, firmware: efi}
"""
TEMPLATE = "debian-12"
PROFILE = "grid_t4-16c"
DEFAULTS: dict[str, Any] = {
    "template": TEMPLATE,
    "cpus": 8,
    "cores_per_socket": 4,
    "memory_mb": 16384,
    "gpus": [{"profile": PROFILE}],
    "rdma_nics": [{"portgroup": "rdma-vm"}],
    "management_nic": {"portgroup": "VM Network"},
    "guest": {"gateway": "10.0.1.1", "user": "ubuntu", "ssh_keys": ["ssh-ed25519 AAAA somebody"]},
}


def worker(number: int, **more: Any) -> dict[str, Any]:
    """One worker with its own addresses."""
    guest = {"address": f"10.0.1.{number}/24", "rdma_addresses": [f"10.216.1.{number}/24"]}
    return {"name": f"worker{number:02}", "guest": guest, **more}


def desired(count: int = 4, **more: Any) -> dict[str, Any]:
    """Workers that are alike."""
    workers = [worker(number) for number in range(1, count + 1)]
    return {"cluster": "gpu", "defaults": DEFAULTS, "workers": workers, "address_timeout": 20, **more}


def states(outcome: Any) -> dict[str, dict[str, Any]]:
    """The workers of a result by name."""
    return {entry["name"]: entry["state"] for entry in outcome.result["workers"]}


@contextmanager
def machine(simulator: Simulator, name: str) -> Iterator[Machine]:
    """A virtual machine in the hands of a person with the API."""
    params = {"validate_certs": True, "timeout": 60, **simulator.connection}
    with session.session(params) as opened:
        found = properties.find_all(opened, vim.VirtualMachine, ("name",))
        (ref,) = [ref for ref, values in found if values["name"] == name]
        yield Machine(opened, ref)


def do(machine_: Machine, task: Any) -> Any:
    """Wait for a task of a person."""
    return tasks.wait(machine_.session, tasks.Started(task, "a person", "work"), 20)


def reconfigure(simulator: Simulator, name: str, **spec: Any) -> None:
    """Change a machine by hand."""
    with machine(simulator, name) as vm:
        do(vm, vm.ref.ReconfigVM_Task(vim.vm.ConfigSpec(**spec)))


def confirm(simulator: Simulator, name: str, *, built: bool = False) -> None:
    """Have a machine confirm the mark that it has, as worker_vm does."""
    with machine(simulator, name) as vm:
        vm.refresh()
        text = worker_mark.confirmation({"name": name, "built": built}, vm)
    option = vim.option.OptionValue(key=worker_mark.CONFIRMATION, value=text)
    reconfigure(simulator, name, extraConfig=[option])


def remove_device(simulator: Simulator, name: str, kind: Any) -> None:
    """Take a device away."""
    with machine(simulator, name) as vm:
        device = next(one for one in vm.ref.config.hardware.device if isinstance(one, kind))
        change = vim.vm.device.VirtualDeviceSpec(operation="remove", device=device)
        do(vm, vm.ref.ReconfigVM_Task(vim.vm.ConfigSpec(deviceChange=[change])))


def switch(simulator: Simulator, name: str, *, on: bool) -> None:
    """Power a machine on or off."""
    with machine(simulator, name) as vm:
        do(vm, vm.ref.PowerOnVM_Task() if on else vm.ref.PowerOffVM_Task())


def host_of(vm: Any, name: str) -> Any:
    """The host of that name, as the session of a machine sees it."""
    found = properties.find_all(vm.session, vim.HostSystem, ("name",))
    return next(ref for ref, values in found if values["name"] == name)


def move(simulator: Simulator, name: str, host: str) -> None:
    """Move a machine to another host, as a person does in the vSphere Client."""
    with machine(simulator, name) as vm:
        do(vm, vm.ref.RelocateVM_Task(vim.vm.RelocateSpec(host=host_of(vm, host))))


def host(simulator: Simulator, name: str) -> str:
    """The host on which a machine is."""
    with machine(simulator, name) as vm:
        return str(vm.ref.runtime.host.name)
