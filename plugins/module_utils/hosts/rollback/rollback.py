# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""From the evidence of hosts to the profiles that restore them.

Restored is what the change touched, no more: the subjects, VIBs and kernel modules that the change's own profile names.
What is within them is restored whole: all options of such a module, the assignment policy beside the graphics type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, NamedTuple

from ...maintenance.evacuation import VGPU_BY_DRS
from ..preflight.cluster_findings import GPU_BALANCING
from .evidence import FORMAT

Data = Mapping[str, Any]
NEWER = "use the version of dml.vsphere that took the evidence"


class Irreversible(ValueError):
    """Evidence cannot be restored: the reasons, each a part of a sentence, and what to do."""

    def __init__(self, reasons: Sequence[str], remedy: str = "") -> None:
        super().__init__("; ".join(reasons))
        self.reasons, self.remedy = tuple(reasons), remedy


@dataclass
class Before:
    """One host as its evidence shows it, and the profile that it was changed to.

    ``depots`` say where older versions of VIBs come from: each has ``name``, ``version`` and ``source``. What a part
    cannot restore it adds to ``reasons``, each a part of a sentence.
    """

    entry: Data
    wanted: Data
    depots: Sequence[Data] = ()
    reasons: list[str] = field(default_factory=list)


class Way(NamedTuple):
    """How one part is restored: the keys of the host's entry that this needs, and the function that does it."""

    kept: tuple[str, ...]
    restore: Callable[[Before], Data]


Ways = Mapping[str, Way]


def restoring_profiles(
    document: Data, ways: Ways, depots: Sequence[Data] = (), hosts: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """By host: the profile that restores it; all hosts of the evidence, or only the named ones."""
    _must_know(document, ways)
    known = {before["host"]: before for before in document["hosts"]}
    profiles, reasons = {}, []
    for host in hosts or known:
        if host not in known:
            reasons.append(f"{host}: the evidence does not know it")
            continue
        try:
            profiles[host] = restoring_profile(Before(known[host], _wanted(document, host), depots), ways)
        except Irreversible as error:
            reasons += [f"{host}: {reason}" for reason in error.reasons]
    if reasons:
        raise Irreversible(reasons)
    return profiles


def restoring_profile(before: Before, ways: Ways) -> dict[str, Any]:
    """The profile, in the words of esxi_profile, that restores one host."""
    if before.entry.get("failed"):
        raise Irreversible([f"the evidence knows nothing of it: {before.entry['msg']}"])
    parts: dict[str, Any] = {}
    for key, way in ways.items():
        if before.wanted.get(key):
            lacking = [one for one in way.kept if one not in before.entry]
            before.reasons += [f"the evidence holds no {one}, which restoring {key} needs" for one in lacking]
            for restored, value in ({} if lacking else way.restore(before)).items():
                parts[restored] = _joined(parts.get(restored), value)
    if before.reasons:
        raise Irreversible(before.reasons)
    return {key: value for key, value in parts.items() if value}


def restoring_settings(document: Data) -> dict[str, dict[str, Any]]:
    """The options of shared_settings that restore what the evidence holds of vCenter and of the cluster's DRS.

    Of DRS only the options that matter to virtual GPUs; one that was not set is removed.
    """
    cluster = document["cluster"]
    options = {key: value for key, value in cluster["options"].items() if value is not None}
    return {
        "vcenter_options": options,
        "drs_options": {key: cluster["drs"]["options"].get(key) for key in (VGPU_BY_DRS, GPU_BALANCING)},
    }


def _wanted(document: Data, host: str) -> Data:
    wanted: Data = document["wanted"]["host_profiles"].get(host, document["wanted"]["profile"])
    return wanted


def must_read(document: Data) -> None:
    """Refuse evidence of another format."""
    number = document.get("format")
    if number != FORMAT:
        raise Irreversible([f"it has format {number}, and this version of dml.vsphere reads format {FORMAT}"], NEWER)


def must_be_of(document: Data, place: Data, hosts: Sequence[str] = ()) -> None:
    """Refuse evidence of another vCenter or of other machines, though their names are the same.

    ``place`` has ``instance_uuid``, that of the vCenter, and ``uuids``, those of the cluster's hosts by name.
    """
    was, here = document["cluster"]["vcenter"]["instance_uuid"], place["instance_uuid"]
    if was != here:
        said = f"it was taken from the vCenter with the instance UUID {was}, and this one has {here}"
        raise Irreversible([said], "name evidence of this vCenter, or connect to that one")
    reasons = []
    for entry in document["hosts"]:
        host, uuid = entry["host"], entry["uuid"]
        if hosts and host not in hosts:
            continue
        if host not in place["uuids"]:
            reasons.append(f"{host}: the cluster has no such host any more")
        elif uuid and place["uuids"][host] != uuid:
            reasons.append(
                f"{host}: another machine has this name now, with the UUID {place['uuids'][host]}, not {uuid}"
            )
    if reasons:
        raise Irreversible(reasons, "name the hosts that are the same in rollback_hosts")


def _must_know(document: Data, ways: Ways) -> None:
    """Refuse evidence of another format, and evidence of parts that this version does not know."""
    must_read(document)
    wanted = document["wanted"]
    touched = {key for profile in (wanted["profile"], *wanted["host_profiles"].values()) for key in profile}
    unknown = ", ".join(sorted(touched - set(ways)))
    if unknown:
        raise Irreversible([f"the change touched {unknown}, which this version of dml.vsphere cannot restore"], NEWER)


def _joined(one: Any, other: Any) -> Any:
    """What two parts restore under the same key: lists are joined, each entry once."""
    return other if one is None else [*one, *(entry for entry in other if entry not in one)]
