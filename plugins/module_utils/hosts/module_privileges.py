# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The privileges of every module, from the table of privileges and from the parts of a host's profile."""

from __future__ import annotations

from collections.abc import Iterable

from .host_info import GROUPS
from .privileges.needs import PrivilegeTable
from .privileges.privilege_table import CALLS, HOST_PROFILES, LOCK, MODULES
from .profile_parts import PARTS


def _each_once(calls: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(calls))


TABLE = PrivilegeTable(
    {
        **MODULES,
        **{part.module: part.calls for part in PARTS},
        "esxi_info": _each_once((HOST_PROFILES, *(call for group in GROUPS.values() for call in group.calls))),
        "esxi_profile": _each_once((*LOCK, *(call for part in PARTS for call in part.calls))),
    },
    {**CALLS, **{call: needs for part in PARTS for call, needs in part.needs.items()}},
)
