# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""From a host's profile to its members, the properties that they read, and the options of esxi_profile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..vsphere.inventory import Host
from .part import PlannedSubject, ProfileContext
from .registry import PARTS

Profile = Mapping[str, Any]

OPTIONS: dict[str, Any] = {part.key: part.spec for part in PARTS}
ARGUMENTS: dict[str, Any] = {
    "profile": {"type": "dict", "default": {}, "options": OPTIONS, "apply_defaults": True},
    "host_profiles": {"type": "dict", "default": {}},
}


def paths(profiles: Iterable[Profile]) -> tuple[str, ...]:
    """The properties that these profiles read of every host, each once."""
    fixed = [path for part in PARTS for path in part.paths]
    asked = [(part, profile[part.key]) for profile in profiles for part in PARTS if profile.get(part.key)]
    return tuple(dict.fromkeys((*fixed, *(path for part, value in asked for path in part.paths_of(value)))))


def members_of(host: Host, context: ProfileContext) -> list[PlannedSubject]:
    """The members of one host's profile, in the order in which they are applied."""
    profile = context.profile
    return [
        member for part in PARTS if profile.get(part.key) for member in part.members(host, profile[part.key], context)
    ]
