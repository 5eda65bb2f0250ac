"""Unplanned changes to virtual machines of a simulated data centre, made with the vSphere API."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from lab.simulator import Centre
from plugins.module_utils.vsphere import properties, tasks
from plugins.module_utils.vsphere.sdk import vim
from plugins.module_utils.vsphere.session import Session, session

SECONDS = 60


def opened(vcenter: Centre) -> AbstractContextManager[Session]:
    """Open a session with the simulator."""
    return session({"validate_certs": True, "timeout": SECONDS, **vcenter.connection})


def power_off(vcenter: Centre, name: str) -> None:
    """Power off a virtual machine."""
    _do(vcenter, name, "power it off", lambda machine: machine.PowerOffVM_Task())


def lose_rdma_nic(vcenter: Centre, name: str) -> None:
    """Power off a virtual machine, remove its PVRDMA adapter, and power it on again."""

    def lose(machine: Any) -> Any:
        devices = machine.config.hardware.device
        card = next(device for device in devices if isinstance(device, vim.vm.device.VirtualVmxnet3Vrdma))
        change = vim.vm.device.VirtualDeviceSpec(operation="remove", device=card)
        return machine.ReconfigVM_Task(vim.vm.ConfigSpec(deviceChange=[change]))

    power_off(vcenter, name)
    _do(vcenter, name, "remove its PVRDMA adapter", lose)
    _do(vcenter, name, "power it on", lambda machine: machine.PowerOnVM_Task())


def encrypt_template(vcenter: Centre, name: str) -> None:
    """Give vCenter a key provider, and encrypt a template, and thereby its clones."""
    native = vim.encryption.KeyProviderId(id="native")
    key = vim.encryption.CryptoKeyId(keyId="1", providerId=native)
    spec = vim.vm.ConfigSpec(crypto=vim.encryption.CryptoSpecEncrypt(cryptoKeyId=key))
    with opened(vcenter) as client:
        client.content.cryptoManager.RegisterKmsCluster(native, "nativeProvider")
        template = _found(client, name)
        template.MarkAsVirtualMachine(template.runtime.host.parent.resourcePool, template.runtime.host)
    _do(vcenter, name, "encrypt it", lambda machine: machine.ReconfigVM_Task(spec))
    with opened(vcenter) as client:
        _found(client, name).MarkAsTemplate()


def _do(vcenter: Centre, name: str, attempt: str, start: Callable[[Any], Any]) -> None:
    with opened(vcenter) as client:
        tasks.wait(client, tasks.Started(start(_found(client, name)), name, attempt), SECONDS)


def _found(client: Session, name: str) -> Any:
    found = properties.find_all(client, vim.VirtualMachine, ("name",))
    return next(ref for ref, values in found if values["name"] == name)
