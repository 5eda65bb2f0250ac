# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""From a file of evidence to the profiles that restore the hosts, by the parts that this version knows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import Refused
from ..logic.hosts import rollback
from .registry import PARTS

WAYS = {part.key: rollback.Way(part.kept, part.restore) for part in PARTS}


def plan(
    file: str, cluster: str, depots: Sequence[Mapping[str, Any]] = (), hosts: Sequence[str] = ()
) -> dict[str, Any]:
    """By host the profile that restores it, and the options of shared_settings that restore what others share."""
    tried, document = f"restore cluster {cluster} from it", _document(file)
    found = (document.get("cluster") or {}).get("name")
    if found != cluster:
        said, remedy = f"that is evidence of {found}", f"take the evidence of {cluster}, or run with --limit {found}"
        raise Refused(file, tried, said, remedy)
    try:
        profiles = rollback.restoring_profiles(document, WAYS, depots, hosts)
    except rollback.Irreversible as error:
        raise Refused(file, tried, str(error), error.remedy) from error
    return {"profiles": profiles, "shared_settings": rollback.restoring_settings(document)}


def _document(file: str) -> dict[str, Any]:
    try:
        read = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Refused(file, "read it as evidence", str(error), "name a file that dml.vsphere.evidence wrote") from error
    return read if isinstance(read, dict) else {}
