# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The evidence of a cluster before a change, for a rollback and for a reader, without passwords."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

FORMAT = 1
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
    return {
        "format": FORMAT,
        "taken": when,
        "wanted": without_secrets(wanted),
        **without_secrets(seen),
        "hosts": without_secrets(hosts["hosts"]),
    }


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
