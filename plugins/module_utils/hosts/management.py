# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The features that manage a host and undo changes by hand: cluster image, configuration profile, host profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import Failed
from ..vsphere import properties
from ..vsphere.sdk import vmodl
from ..vsphere.session import Session

PATHS = ("parent",)


@dataclass(frozen=True)
class HostRefs:
    """A host and the cluster it is in, by reference."""

    host: Any
    parent: Any


def managers_of(session: Session, places: Mapping[str, HostRefs]) -> dict[str, dict[str, Any]]:
    """By host: its cluster and what manages it, in a few reads for all; None where this server has no such feature."""
    parents = {place.parent._moId: place.parent for place in places.values() if place.parent}
    clusters = list(parents.values())
    names, images = _values(session, clusters, "name"), _values(session, clusters, "lifecycleManaged")
    configurations = _values(session, clusters, "configManagerEnabled")
    profiles = _host_profiles(session)
    found = {}
    for name, place in places.items():
        parent = place.parent._moId if place.parent else ""
        found[name] = {
            "cluster": names.get(parent),
            "image_managed": images.get(parent),
            "configuration_profile": configurations.get(parent),
            "host_profile": profiles.get(place.host._moId) or profiles.get(parent),
        }
    return found


def _values(session: Session, refs: Sequence[Any], path: str) -> dict[str, Any]:
    """One property of each object, read kind by kind."""
    kinds: dict[type, list[Any]] = {}
    for ref in refs:
        kinds.setdefault(type(ref), []).append(ref)
    found: dict[str, Any] = {}
    for alike in kinds.values():
        found.update(_values_of_kind(session, alike, path))
    return found


def _values_of_kind(session: Session, refs: Sequence[Any], path: str) -> dict[str, Any]:
    """One property of objects of one kind; nothing where this version of vCenter has no such property."""
    try:
        values = properties.read_many(session, refs, (path,))
    except Failed as error:
        if isinstance(error.__cause__, vmodl.query.InvalidProperty):
            return {}
        raise
    return {key: one.get(path) for key, one in values.items()}


def _host_profiles(session: Session) -> dict[str, str]:
    """By host or cluster: the name of the host profile that is attached to it."""
    manager = session.content.hostProfileManager
    if manager is None:
        return {}
    profiles = properties.read_many(session, [manager], ("profile",))[manager._moId].get("profile") or []
    found = properties.read_many(session, profiles, ("name", "entity")).values()
    return {entity._moId: one["name"] for one in found for entity in one.get("entity") or []}
