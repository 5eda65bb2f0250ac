# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The mark of workers: a custom attribute with name, instance UUID, cluster, role, tenant, and who built the VM."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..vsphere import custom_fields
from ..vsphere.escaped_names import plain
from ..vsphere.sdk import vim
from ..vsphere.session import Session

ATTRIBUTE = "dml.vsphere.worker"
# The clone operation sets this, to identify a VM whose run was killed before it set the mark.
BUILDING = "dml.vsphere.building"


def read(definitions: Sequence[Any], values: Sequence[Any] | None) -> dict[str, Any] | None:
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


def desired_mark(name: str, before: Mapping[str, Any] | None, **of: Any) -> dict[str, Any]:
    """Return the desired mark of a worker; keys from other sources stay."""
    return {"built": False, **(before or {}), "name": name, **of}


def write(session: Session, ref: object, target: str, mark: Mapping[str, Any] | None) -> None:
    """Set the mark, or clear it."""
    text = json.dumps(mark, sort_keys=True) if mark else ""
    custom_fields.store(session, ref, target, ATTRIBUTE, text, kind=vim.VirtualMachine)
