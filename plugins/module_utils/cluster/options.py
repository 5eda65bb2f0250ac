# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The settings of vCenter that reach beyond one cluster and matter to this collection."""

from __future__ import annotations

from typing import Any

from ..logic.evacuation import HOT_MIGRATE
from ..vsphere.faults import speaking
from ..vsphere.sdk import vim
from ..vsphere.session import Session


def vcenter_options(session: Session) -> dict[str, Any]:
    """What concerns moves of virtual GPUs; None for an option that this vCenter does not know."""
    return {HOT_MIGRATE: vcenter_option(session, HOT_MIGRATE)}


def vcenter_option(session: Session, key: str) -> Any:
    """One option of vCenter as it is typed there; None where it is not set or not known."""
    with speaking(session.server, f"read its option {key}"):
        try:
            found = session.content.setting.QueryOptions(key)
        except vim.fault.InvalidName:
            return None
    return next((one.value for one in found if one.key == key), None)
