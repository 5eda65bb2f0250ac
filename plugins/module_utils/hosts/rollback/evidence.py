# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The evidence of a cluster before a change, for a rollback and for a reader, without passwords."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from ...core import schema

FORMAT = 2
DIGEST = "digest"
HIDDEN = "HIDDEN"
_ACCOUNT_IN_URL = re.compile(r"(\w+://)[^/@\s]+@")
_SECRET_KEY = re.compile(r"pass(word|wd|phrase)|secret|token|community|private_?key", re.IGNORECASE)


def document(
    hosts: Mapping[str, Any], cluster: Mapping[str, Any], wanted: Mapping[str, Any], when: str
) -> dict[str, Any]:
    """The evidence as plain data: results of esxi_info and cluster_info, and the profiles of the change.

    ``wanted`` holds ``profile``, for all hosts, and ``host_profiles``, for hosts with one of their own.
    """
    seen = {key: value for key, value in cluster.items() if key not in _ABOUT_THE_CALL}
    kept = {
        "format": FORMAT,
        "taken": when,
        "wanted": without_secrets(wanted),
        **without_secrets(seen),
        "hosts": without_secrets(hosts["hosts"]),
    }
    return {**kept, DIGEST: digest(kept)}


def digest(kept: Mapping[str, Any]) -> str:
    """The SHA-256 of the evidence but the digest itself, the same for the file however it is indented and ordered."""
    plain = {key: value for key, value in kept.items() if key != DIGEST}
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def faults(read: Mapping[str, Any]) -> list[str]:
    """What is wrong with a file of evidence of this format, in parts of a sentence."""
    found = [fault.rstrip(".") for fault in schema.faults(read, _SCHEMA)]
    if not found and read[DIGEST] != digest(read):
        found.append("it was changed after it was written: its digest is another one")
    return found


_TEXT, _MAPPING = {"type": "string", "pattern": ".", "title": "a text"}, {"type": "object"}


def _object(**properties: Any) -> dict[str, Any]:
    """A mapping that has these keys, and maybe more."""
    return {"type": "object", "required": list(properties), "properties": properties}


# What restoring relies on for every change; what it needs for a part, the part says (see Way.kept).
_SCHEMA: dict[str, Any] = _object(
    format={"type": "integer"},
    taken=_TEXT,
    wanted=_object(profile=_MAPPING, host_profiles=_MAPPING),
    cluster=_object(
        name=_TEXT,
        vcenter=_object(instance_uuid=_TEXT),
        options=_MAPPING,
        drs=_object(options=_MAPPING),
    ),
    hosts={"type": "array", "minItems": 1, "items": _object(host=_TEXT, uuid={"type": ["string", "null"]})},
    digest=_TEXT,
)
_ABOUT_THE_CALL = frozenset({"changed", "failed", "diff", "invocation", "warnings", "deprecations", "stops", "msg"})


def without_secrets(data: Any) -> Any:
    """The same data with accounts in URLs removed, and the values of keys that sound like secrets."""
    if isinstance(data, Mapping):
        return {key: _of_key(str(key), value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [without_secrets(one) for one in data]
    return _ACCOUNT_IN_URL.sub(rf"\g<1>{HIDDEN}@", data) if isinstance(data, str) else data


def _of_key(key: str, value: Any) -> Any:
    return HIDDEN if isinstance(value, str) and value and _SECRET_KEY.search(key) else without_secrets(value)
