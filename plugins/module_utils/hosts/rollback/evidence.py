"""The evidence of a cluster before a change, for a rollback and for users, without passwords."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from ...core import masked, schema
from ...plan import State

FORMAT = 2
DIGEST = "digest"
HIDDEN = "HIDDEN"
_ACCOUNT_IN_URL = re.compile(r"(?<!\w)(\w+://)[^/@\s]+@")
_SECRET_KEY = re.compile(r"pass(word|wd|phrase)|secret|token|community|private_?key", re.IGNORECASE)


def document(hosts: Mapping[str, object], cluster: Mapping[str, object], desired: State, when: str) -> dict[str, Any]:
    """Return the evidence as plain data: results of esxi_info and cluster_info, and the profiles of the change.

    ``desired`` contains ``profile``, for all hosts, and ``host_profiles``, for hosts with a separate profile; if the
    change sets the image of the cluster, ``image`` too, and ``cluster`` contains the ``image`` before.
    """
    state = {key: value for key, value in cluster.items() if key not in _ABOUT_THE_CALL}
    masked.refuse([hosts["hosts"], state], "the evidence", "write it")
    kept = {
        "format": FORMAT,
        "taken": when,
        "wanted": without_secrets(desired),
        **without_secrets(state),
        "hosts": without_secrets(hosts["hosts"]),
    }
    return {**kept, DIGEST: digest(kept)}


def digest(kept: Mapping[str, object]) -> str:
    """Return the SHA-256 of the evidence without its digest; it does not depend on indentation or order of the file."""
    plain = {key: value for key, value in kept.items() if key != DIGEST}
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def faults(read: Mapping[str, object]) -> list[str]:
    """Return the faults of a file of evidence of this format, each as a part of a sentence."""
    errors = [fault.rstrip(".") for fault in schema.faults(read, _SCHEMA)]
    if not errors and read[DIGEST] != digest(read):
        errors.append("it was changed after it was written: its digest does not match")
    return errors


_TEXT, _MAPPING = {"type": "string", "pattern": ".", "title": "a text"}, {"type": "object"}


def _object(**properties: object) -> dict[str, object]:
    """Return the schema of a mapping with these keys; it may have others."""
    return {"type": "object", "required": list(properties), "properties": properties}


# The keys that every restoration needs. Those for a part are defined by the part (see Way.kept).
_SCHEMA: dict[str, Any] = _object(
    format={"type": "integer"},
    taken=_TEXT,
    wanted=_object(profile=_MAPPING, host_profiles=_MAPPING),
    cluster=_object(name=_TEXT, vcenter=_object(instance_uuid=_TEXT), options=_MAPPING, drs=_object(options=_MAPPING)),
    hosts={"type": "array", "minItems": 1, "items": _object(host=_TEXT, uuid={"type": ["string", "null"]})},
    digest=_TEXT,
)
_ABOUT_THE_CALL = frozenset({"changed", "failed", "diff", "invocation", "warnings", "deprecations", "stops", "msg"})


def without_secrets(data: object) -> Any:
    """Return the data without accounts in URLs, and without the values of keys that are named like secrets."""
    if isinstance(data, Mapping):
        return {key: _without_secret(str(key), value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [without_secrets(item) for item in data]
    return _ACCOUNT_IN_URL.sub(rf"\g<1>{HIDDEN}@", data) if isinstance(data, str) else data


def _without_secret(key: str, value: object) -> object:
    return HIDDEN if isinstance(value, str) and value and _SECRET_KEY.search(key) else without_secrets(value)
