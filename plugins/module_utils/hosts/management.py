"""The features that manage a host and undo manual changes: cluster image, configuration profile, host profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from ..errors import Failed
from ..vsphere import properties
from ..vsphere.sdk import ApiObject, vmodl
from ..vsphere.session import Session

PATHS = ("parent",)


@dataclass(frozen=True)
class HostRefs:
    """The references of a host and of its cluster."""

    host: Any
    parent: Any


class HostManagers(TypedDict):
    """The cluster of a host and the features that manage it; a feature that the server does not have is None."""

    cluster: str | None
    image_managed: bool | None
    configuration_profile: bool | None
    host_profile: str | None


def managers_of(session: Session, hosts: Mapping[str, HostRefs]) -> dict[str, HostManagers]:
    """Return the cluster and the managing features of each host, which are read with a few calls for all hosts."""
    parents = {refs.parent._moId: refs.parent for refs in hosts.values() if refs.parent}
    clusters = list(parents.values())
    names, images = _values(session, clusters, "name"), _values(session, clusters, "lifecycleManaged")
    configurations = _values(session, clusters, "configManagerEnabled")
    profiles = _host_profiles(session)
    managers: dict[str, HostManagers] = {}
    for name, refs in hosts.items():
        parent = refs.parent._moId if refs.parent else ""
        managers[name] = {
            "cluster": names.get(parent),
            "image_managed": images.get(parent),
            "configuration_profile": configurations.get(parent),
            "host_profile": profiles.get(refs.host._moId) or profiles.get(parent),
        }
    return managers


def _values(session: Session, refs: Sequence[ApiObject], path: str) -> dict[str, Any]:
    """Return one property of each object, read type by type."""
    values: dict[str, Any] = {}
    for alike in properties.by_type(refs):
        values.update(_values_of_type(session, alike, path))
    return values


def _values_of_type(session: Session, refs: Sequence[ApiObject], path: str) -> dict[str, object]:
    """Return one property of objects of one type; empty if this version of vCenter does not have the property."""
    try:
        values = properties.read_many(session, refs, (path,))
    except Failed as error:
        if isinstance(error.__cause__, vmodl.query.InvalidProperty):
            return {}
        raise
    return {key: entry.get(path) for key, entry in values.items()}


def _host_profiles(session: Session) -> dict[str, str]:
    """Return the name of the attached host profile by host or cluster."""
    manager = session.content.hostProfileManager
    if manager is None:
        return {}
    refs = properties.read_many(session, [manager], ("profile",))[manager._moId].get("profile") or []
    profiles = properties.read_many(session, refs, ("name", "entity")).values()
    return {entity._moId: profile["name"] for profile in profiles for entity in profile.get("entity") or []}
