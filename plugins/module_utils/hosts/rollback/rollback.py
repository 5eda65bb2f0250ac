"""From the evidence of hosts to the profiles that restore them.

A rollback restores only the subjects, VIBs and kernel modules that the profile of the change names. It restores them
completely: all options of such a module, and the assignment policy in addition to the graphics type.
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
    """Evidence cannot be restored: the reasons, each a part of a sentence, and the remedy."""

    def __init__(self, reasons: Sequence[str], remedy: str = "") -> None:
        super().__init__("; ".join(reasons))
        self.reasons, self.remedy = tuple(reasons), remedy


@dataclass
class Before:
    """One host as its evidence shows it, and the profile of the change.

    ``depots`` are the sources of older VIB versions: each has ``name``, ``version`` and ``source``. A part adds the
    settings that it cannot restore to ``reasons``, each as a part of a sentence.
    """

    entry: Data
    desired: Data
    depots: Sequence[Data] = ()
    reasons: list[str] = field(default_factory=list)


class Way(NamedTuple):
    """The restoration of one part: its function, and the keys of the host's entry that this function needs."""

    kept: tuple[str, ...]
    restore: Callable[[Before], Data]


Ways = Mapping[str, Way]


def restoring_profiles(
    document: Data, ways: Ways, depots: Sequence[Data] = (), hosts: Sequence[str] = ()
) -> dict[str, dict[str, object]]:
    """Return the restoring profile of each host, for all hosts of the evidence or only the named ones."""
    _require_known_parts(document, ways)
    entries = {entry["host"]: entry for entry in document["hosts"]}
    profiles, reasons = {}, []
    for host in hosts or entries:
        if host not in entries:
            reasons.append(f"{host}: the evidence does not contain it")
            continue
        try:
            profiles[host] = restoring_profile(Before(entries[host], _desired(document, host), depots), ways)
        except Irreversible as error:
            reasons += [f"{host}: {reason}" for reason in error.reasons]
    if reasons:
        raise Irreversible(reasons)
    return profiles


def restoring_profile(before: Before, ways: Ways) -> dict[str, object]:
    """Return the profile that restores one host, as an option of esxi_profile."""
    if before.entry.get("failed"):
        raise Irreversible([f"the evidence does not contain its state: {before.entry['msg']}"])
    parts: dict[str, Any] = {}
    for key, way in ways.items():
        if before.desired.get(key):
            lacking = [entry_key for entry_key in way.kept if entry_key not in before.entry]
            before.reasons += [f"the evidence lacks {entry_key}, which restoring {key} needs" for entry_key in lacking]
            for restored, value in ({} if lacking else way.restore(before)).items():
                parts[restored] = _joined(parts.get(restored), value)
    if before.reasons:
        raise Irreversible(before.reasons)
    return {key: value for key, value in parts.items() if value}


def restoring_settings(document: Data) -> dict[str, dict[str, object]]:
    """Return the options of shared_settings that restore the settings of vCenter and of the cluster's DRS.

    Only the DRS options for virtual GPUs are restored; an option that was not set is removed.
    """
    cluster = document["cluster"]
    options = {key: value for key, value in cluster["options"].items() if value is not None}
    return {
        "vcenter_options": options,
        "drs_options": {key: cluster["drs"]["options"].get(key) for key in (VGPU_BY_DRS, GPU_BALANCING)},
    }


def _desired(document: Data, host: str) -> Data:
    desired: Data = document["wanted"]["host_profiles"].get(host, document["wanted"]["profile"])
    return desired


def must_read(document: Data) -> None:
    """Refuse evidence of another format."""
    number = document.get("format")
    if number != FORMAT:
        raise Irreversible([f"it has format {number}, and this version of dml.vsphere reads format {FORMAT}"], NEWER)


def must_be_of(document: Data, identity: Data, hosts: Sequence[str] = ()) -> None:
    """Refuse evidence of another vCenter, and evidence of other machines with the same names.

    ``identity`` has ``instance_uuid``, which identifies the vCenter, and ``uuids`` of the cluster's hosts by name.
    """
    recorded, current = document["cluster"]["vcenter"]["instance_uuid"], identity["instance_uuid"]
    if recorded != current:
        reason = f"it was taken from the vCenter with the instance UUID {recorded}, and this one has {current}"
        raise Irreversible([reason], "name evidence of this vCenter, or connect to that one")
    reasons = []
    for entry in document["hosts"]:
        host, uuid = entry["host"], entry["uuid"]
        if hosts and host not in hosts:
            continue
        if host not in identity["uuids"]:
            reasons.append(f"{host}: the cluster no longer has such a host")
        elif uuid and identity["uuids"][host] != uuid:
            reasons.append(
                f"{host}: another machine has this name now, with the UUID {identity['uuids'][host]}, not {uuid}"
            )
    if reasons:
        raise Irreversible(reasons, "name the unchanged hosts in rollback_hosts")


def _require_known_parts(document: Data, ways: Ways) -> None:
    """Refuse evidence of another format, and evidence about parts that this version does not have."""
    must_read(document)
    desired = document["wanted"]
    touched = {key for profile in (desired["profile"], *desired["host_profiles"].values()) for key in profile}
    unknown = ", ".join(sorted(touched - set(ways)))
    if unknown:
        raise Irreversible([f"the change touched {unknown}, which this version of dml.vsphere cannot restore"], NEWER)


def _joined(first: Any, second: Any) -> object:
    """Return the values of two parts for the same key of the profile: lists are joined, each entry once."""
    return second if first is None else [*first, *(entry for entry in second if entry not in first)]
