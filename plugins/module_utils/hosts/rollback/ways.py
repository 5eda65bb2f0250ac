"""From a file of evidence to the profiles that restore the hosts, using the parts of this version."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import Refused
from ..profile_parts import PARTS
from . import evidence, restoring, rollback

WAYS = {part.key: rollback.Way(part.kept, part.restore) for part in PARTS}
WRITTEN = "name a file that dml.vsphere.evidence wrote, as it wrote it"


def evidence_of(file: str, cluster: str) -> dict[str, object]:
    """Return the evidence from a file, which must be complete and of this cluster."""
    read = _read(file)
    try:
        rollback.must_read(read)
    except rollback.Irreversible as error:
        raise _refused(file, cluster, error) from error
    faults = evidence.faults(read)
    if faults:
        raise Refused(file, "read it as evidence", "; ".join(faults), WRITTEN)
    recorded = read["cluster"]["name"]
    if recorded != cluster:
        remedy = f"take the evidence of {cluster}, or run with --limit {recorded}"
        raise Refused(file, f"restore cluster {cluster} from it", f"that is evidence of {recorded}", remedy)
    return read


def plan(
    file: str,
    read: Mapping[str, Any],
    identity: Mapping[str, Any],
    depots: Sequence[Mapping[str, Any]] = (),
    hosts: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the restoring profile of each host, and the options that restore the image and the shared settings."""
    try:
        rollback.must_be_of(read, identity, hosts)
        profiles = rollback.restoring_profiles(read, WAYS, depots, hosts)
        options, reasons = restoring.restoring_image(read)
        if reasons:
            raise rollback.Irreversible(reasons)
    except rollback.Irreversible as error:
        raise _refused(file, read["cluster"]["name"], error) from error
    return {"profiles": profiles, "image": options, "shared_settings": rollback.restoring_settings(read)}


def _read(file: str) -> dict[str, Any]:
    tried = "read it as evidence"
    try:
        read = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise Refused(file, tried, str(error), WRITTEN) from error
    if not isinstance(read, dict):
        raise Refused(file, tried, "it does not contain a JSON object", WRITTEN)
    return read


def _refused(file: str, cluster: str, error: rollback.Irreversible) -> Refused:
    return Refused(file, f"restore cluster {cluster} from it", str(error), error.remedy)
