"""The mark of workers: a custom attribute with name, instance UUID, cluster, role, tenant, and who built the VM."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..vsphere import custom_fields
from ..vsphere.escaped_names import plain
from ..vsphere.sdk import ApiObject, vim
from ..vsphere.session import Session
from .machine import Machine

ATTRIBUTE = "dml.vsphere.worker"
# The clone operation sets this, to identify a VM whose run was killed before it set the mark.
BUILDING = "dml.vsphere.building"
# An advanced setting of the machine that confirms its mark. Global.SetCustomField alone is enough to write a mark, also
# on a machine of another user; advanced settings need VirtualMachine.Config.AdvancedConfig on the machine.
CONFIRMATION = "dml.vsphere.confirmation"
UNCONFIRMED = (
    f"its advanced setting {CONFIRMATION} does not confirm its mark: another user wrote or changed the mark,"
    " it was restored from a backup, or an earlier release of this collection made it a worker"
)


def read(definitions: Sequence[ApiObject], values: Sequence[object] | None) -> dict[str, Any] | None:
    """Return the mark of a virtual machine, which may be a copy of another machine's mark; None without a mark."""
    text = custom_fields.value_of(ATTRIBUTE, definitions, values)
    try:
        mark = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(mark, dict) or not isinstance(mark.get("name"), str):
        return None
    # Older versions wrote the cluster's name with the user's escapes.
    return {**mark, "cluster": plain(str(mark["cluster"]))} if "cluster" in mark else mark


def desired_mark(name: str, before: Mapping[str, object] | None, **of: object) -> dict[str, object]:
    """Return the desired mark of a worker; keys from other sources stay."""
    return {"built": False, **(before or {}), "name": name, **of}


def confirmation(mark: Mapping[str, object], machine: Machine) -> str:
    """Return the setting that confirms a mark: it names the machine, because clones copy it."""
    return f"{'built' if mark.get('built') else 'adopted'} {machine['config.instanceUuid']} {mark['name']}"


def is_confirmed(mark: Mapping[str, object], machine: Machine) -> bool:
    """Return whether a machine itself confirms its mark; one that is still being built does so by the clone."""
    extra = machine.extra
    return mark["name"] == extra.get(BUILDING) or extra.get(CONFIRMATION) == confirmation(mark, machine)


def withdraw(machine: Machine) -> None:
    """Remove the confirmation from a machine that is no longer a worker."""
    if CONFIRMATION not in machine.extra:
        return
    spec = vim.vm.ConfigSpec(extraConfig=[vim.option.OptionValue(key=CONFIRMATION, value="")])
    machine.reconfigure(spec, "remove the confirmation of its mark")


def write(session: Session, ref: object, target: str, mark: Mapping[str, object] | None) -> None:
    """Set the mark, or clear it."""
    text = json.dumps(mark, sort_keys=True) if mark else ""
    custom_fields.store(session, ref, target, ATTRIBUTE, text, kind=vim.VirtualMachine)
