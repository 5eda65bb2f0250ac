# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Repositories of packages: whether they are told in full, and what a package manager says of reading them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

# apt ends well where it goes on with an old list of an archive that it does not trust any more, and warns.
FAULT = re.compile(
    r"^(?:E: .+|W: .*(?:GPG error|not signed|Failed to fetch|index files failed|are ignored).*)$", re.MULTILINE
)


def misfits(repositories: Sequence[Mapping[str, Any]], keys: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A sentence for each repository without an address or a key, and each key that cannot be checked."""
    sentences = []
    for one in repositories:
        if not one.get("url"):
            sentences.append(f"The repository {one['name']} has no url: give the address of its base.")
        named = one.get("keys") or []
        if not named:
            sentences.append(f"The repository {one['name']} names no key: one that is not signed is not used.")
        sentences += [
            f"The repository {one['name']} names the key {name}, which nobody told."
            for name in named
            if name not in keys
        ]
    used = {name for one in repositories for name in one.get("keys") or []}
    for name in sorted(used & set(keys)):
        key = keys[name]
        if not key.get("keyring") and not (key.get("url") and key.get("fingerprint")):
            sentences.append(f"The key {name} has neither url and fingerprint nor a keyring on the node.")
    return sentences


def update_faults(said: str) -> list[str]:
    """What apt-get says of archives that it cannot read or does not trust, each once."""
    return list(dict.fromkeys(FAULT.findall(said)))
