"""Encrypted workers, and workers with a virtual TPM: their clones and moves need a key of vCenter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import Refused
from ..vsphere import properties
from ..vsphere.sdk import vim
from ..vsphere.session import Session
from .machine import Machine
from .worker_cluster import WorkerCluster
from .worker_spec import WorkerSpec

KEYS = ("encrypted", "vtpm")
_PROVIDERS, HOST, MOVES = "kmipServers", "runtime.cryptoState", "capability.encryptedVMotionSupported"
# The host loses its key at the next boot, and starts no encrypted machine until then.
PENDING = "pendingIncapable"
# Before this version, a clone has the secrets of the virtual TPM of its template.
_REPLACED_SINCE = (8, 0, 0, 1)


def facts(machine: Machine) -> dict[str, Any]:
    """Return whether the home or a disk of a machine is encrypted, and whether it has a virtual TPM."""
    return {"encrypted": bool(providers_of(machine)), "vtpm": bool(machine.devices(vim.vm.device.VirtualTPM))}


def refuse_plain_moves(desired: WorkerSpec, has: Mapping[str, object]) -> None:
    """Refuse other moves than encrypted ones for an encrypted worker, for which vSphere allows no others."""
    requested = desired["vmotion_encryption"]
    if requested in (None, "required") or not (has["encrypted"] or has["vtpm"]):
        return
    reason = f"it {'has a virtual TPM' if has['vtpm'] else 'is encrypted'}, and vSphere always encrypts its moves"
    raise Refused(desired.name, f"set vmotion_encryption to {requested}", reason, "leave it out, or set it to required")


def providers(session: Session) -> set[str]:
    """Return the key providers that vCenter shows this account."""
    manager = session.content.cryptoManager
    read = properties.read_many(session, [manager], (_PROVIDERS,)) if manager else {}
    return {str(each.clusterId.id) for values in read.values() for each in values.get(_PROVIDERS) or []}


def providers_of(machine: Machine) -> list[str]:
    """Return the key providers of an encrypted machine: those of its home, which a virtual TPM encrypts, and disks."""
    disks = (getattr(disk.backing, "keyId", None) for disk in machine.devices(vim.vm.device.VirtualDisk))
    keys = [key for key in (machine["config.keyId"], *disks) if key]
    return sorted({str(key.providerId.id) if key.providerId else "" for key in keys})


def tpm_policy(template: Machine) -> dict[str, str]:
    """Return the option of a clone with which it gets a new virtual TPM; empty without one."""
    return {"tpmProvisionPolicy": "replace"} if facts(template)["vtpm"] else {}


def refuse_unable(cluster: WorkerCluster, worker: str, template: Machine, host: str) -> None:
    """Refuse a clone of an encrypted template that vCenter or the host could not start."""
    has = facts(template)
    if not any(has.values()):
        return
    tried = f"clone it from {template.name}, which {'has a virtual TPM' if has['vtpm'] else 'is encrypted'}"
    if not providers(cluster.session):
        reason = f"{cluster.session.server} shows this account no key provider"
        raise Refused(worker, tried, reason, "add one in vCenter and make it the default, or use another template")
    if has["vtpm"] and cluster.session.api_version < _REPLACED_SINCE:
        reason = "before vCenter 8.0, it would have the secrets of the template's TPM"
        raise Refused(worker, tried, reason, "use a template without a virtual TPM")
    state = properties.read_many(cluster.session, [cluster.host_named(host)], (HOST,))
    if any(str(values.get(HOST)) == PENDING for values in state.values()):
        raise Refused(worker, tried, f"{host} gives up its key at the next boot", f"reboot {host}, or exclude it")
