# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The mark of our workers: a custom attribute with their cluster, role and tenant, and whether we built them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..vsphere import custom_fields
from ..vsphere.sdk import vim
from ..vsphere.session import Session

ATTRIBUTE = "dml.vsphere.worker"
# Written by the clone itself, so that a run that was killed before the mark is recognised.
BUILDING = "dml.vsphere.building"


def read(name: str, definitions: Sequence[Any], values: Sequence[Any] | None) -> dict[str, Any] | None:
    """The mark of a virtual machine; None where it has none, or that of another one from which it was cloned."""
    text = custom_fields.value_of(ATTRIBUTE, definitions, values)
    try:
        found = json.loads(text) if text else None
    except json.JSONDecodeError:
        return None
    return found if isinstance(found, dict) and found.get("name") == name else None


def wanted(name: str, before: Mapping[str, Any] | None, **of: Any) -> dict[str, Any]:
    """The mark that a worker is to carry; what others added stays."""
    return {"built": False, **(before or {}), "name": name, **of}


def write(session: Session, ref: Any, target: str, mark: Mapping[str, Any] | None) -> None:
    """Set the mark, or take it away."""
    text = json.dumps(mark, sort_keys=True) if mark else ""
    custom_fields.store(session, ref, target, ATTRIBUTE, text, kind=vim.VirtualMachine)
