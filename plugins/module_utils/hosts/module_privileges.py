"""The privileges of every module, from the table of privileges and from the parts of a host's profile."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .host_info import GROUPS
from .privileges.privilege_table import CALLS, FREE, HOST_PROFILES, LOCK, MODULES, Need
from .profile_parts import PARTS


def _each_once(calls: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(calls))


def is_free(call: str) -> bool:
    """Return whether a call needs only the privileges that every role has."""
    return any(re.fullmatch(pattern, call.rsplit(".", maxsplit=1)[-1]) for pattern in FREE)


class PrivilegeTable:
    """The calls of each module, and the privileges that each call needs."""

    def __init__(self, modules: Mapping[str, tuple[str, ...]], calls: Mapping[str, tuple[Need, ...]]) -> None:
        self.by_module, self.by_call = dict(modules), dict(calls)

    def modules(self) -> set[str]:
        """Return every module that connects to vCenter, and the inventory plugin."""
        return set(self.by_module)

    def calls_of(self, module: str) -> tuple[str, ...]:
        """Return the calls of one module that need more privileges than every role has."""
        return self.by_module[module]

    def is_known(self, call: str) -> bool:
        return call in self.by_call

    def needs_of(self, call: str, module: str) -> tuple[Need, ...]:
        return tuple(need for need in self.by_call[call] if not need.only or module in need.only)

    def privileges_of(self, names: Iterable[str]) -> list[str]:
        """Return the privileges of a role for these modules, sorted, without those of every role."""
        return sorted({row[0] for row in self._rows_of(set(names))})

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Return privilege, object, module, call and source of each need, sorted."""
        return self._rows_of(self.modules())

    def table(self, names: Iterable[str]) -> list[dict[str, Any]]:
        """Return each privilege that these modules need, with the objects and the modules."""
        rows = self._rows_of(set(names))
        return [
            {
                "privilege": privilege,
                "objects": sorted({on for name, on, *_rest in rows if name == privilege}),
                "modules": sorted({module for name, _on, module, *_rest in rows if name == privilege}),
            }
            for privilege in sorted({row[0] for row in rows})
        ]

    def _rows_of(self, names: set[str]) -> list[tuple[str, str, str, str, str]]:
        return sorted(
            (need.privilege, need.on, name, call, need.source)
            for name in names
            for call in self.by_module[name]
            for need in self.needs_of(call, name)
        )


TABLE = PrivilegeTable(
    {
        **MODULES,
        **{part.module: part.calls for part in PARTS},
        "esxi_info": _each_once((HOST_PROFILES, *(call for group in GROUPS.values() for call in group.calls))),
        "esxi_profile": _each_once((*LOCK, *(call for part in PARTS for call in part.calls))),
    },
    {**CALLS, **{call: needs for part in PARTS for call, needs in part.needs.items()}},
)
