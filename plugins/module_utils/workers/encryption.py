# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Encrypted workers, and workers with a virtual TPM: a clone has what its template has, if vCenter has a key for it."""

from __future__ import annotations

from typing import Any

from ..errors import Refused
from ..vsphere import properties
from ..vsphere.sdk import vim
from .machine import Machine
from .worker_cluster import WorkerCluster

KEYS = ("encrypted", "vtpm")
_PROVIDERS, _HOST = "kmipServers", "runtime.cryptoState"
# The host loses its key at the next boot, and starts no encrypted machine until then.
_PENDING = "pendingIncapable"
# Before this version, a clone has the secrets of the virtual TPM of its template.
_REPLACED_SINCE = (8, 0, 0, 1)


def facts(machine: Machine) -> dict[str, Any]:
    """Return whether a machine has an encrypted disk, and whether it has a virtual TPM, which encrypts its home."""
    disks = machine.devices(vim.vm.device.VirtualDisk)
    is_encrypted = any(getattr(disk.backing, "keyId", None) for disk in disks)
    return {"encrypted": is_encrypted, "vtpm": bool(machine.devices(vim.vm.device.VirtualTPM))}


def tpm_policy(template: Machine) -> dict[str, str]:
    """Return the option of a clone with which it gets a new virtual TPM; empty without one."""
    return {"tpmProvisionPolicy": "replace"} if facts(template)["vtpm"] else {}


def refuse_unable(cluster: WorkerCluster, worker: str, template: Machine, host: str) -> None:
    """Refuse a clone of an encrypted template that vCenter or the host could not start."""
    has = facts(template)
    if not any(has.values()):
        return
    tried = f"clone it from {template.name}, which {'has a virtual TPM' if has['vtpm'] else 'is encrypted'}"
    manager = cluster.session.content.cryptoManager
    read = properties.read_many(cluster.session, [manager], (_PROVIDERS,)) if manager else {}
    if not any(values.get(_PROVIDERS) for values in read.values()):
        reason = f"{cluster.session.server} shows this account no key provider"
        raise Refused(worker, tried, reason, "add one in vCenter and make it the default, or use another template")
    if has["vtpm"] and cluster.session.api_version < _REPLACED_SINCE:
        reason = "before vCenter 8.0, it would have the secrets of the template's TPM"
        raise Refused(worker, tried, reason, "use a template without a virtual TPM")
    state = properties.read_many(cluster.session, [cluster.host_named(host)], (_HOST,))
    if any(str(values.get(_HOST)) == _PENDING for values in state.values()):
        raise Refused(worker, tried, f"{host} gives up its key at the next boot", f"reboot {host}, or exclude it")
