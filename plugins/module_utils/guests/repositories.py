"""Package repositories: gaps in their configuration, and faults in the output of a package manager."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.json_values import JsonObject

# apt succeeds with a warning if it uses an old list of an archive that it no longer trusts.
FAULT = re.compile(
    r"^(?:E: .+|W: .*(?:GPG error|not signed|Failed to fetch|index files failed|are ignored).*)$", re.MULTILINE
)


def misfits(repositories: Sequence[Mapping[str, Any]], keys: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each repository without an address or a key, and each key that cannot be checked."""
    sentences = []
    for repository in repositories:
        if not repository.get("url"):
            sentences.append(f"The repository {repository['name']} has no url: set it to the base address.")
        named = repository.get("keys") or []
        if not named:
            sentences.append(
                f"The repository {repository['name']} names no key: a repository without a signature is refused."
            )
        sentences += [
            f"The repository {repository['name']} names the key {name}, which is not in repositories_keys."
            for name in named
            if name not in keys
        ]
    used = {name for repository in repositories for name in repository.get("keys") or []}
    for name in sorted(used & set(keys)):
        key = keys[name]
        if not key.get("keyring") and not (key.get("url") and key.get("fingerprint")):
            sentences.append(f"The key {name} has neither url and fingerprint nor a keyring on the node.")
    return sentences


def apt_misfits(found: JsonObject, repositories: Sequence[Mapping[str, Any]], only: bool) -> list[str]:
    """Return the faults of ``apt-get update``, or a sentence if apt does not read the desired archives."""
    update = found["update"]
    text = (update.get("stdout") or "") + "\n" + (update.get("stderr") or "")
    faults = update_faults(text)
    if faults or update["rc"] != 0:
        return faults or [update["stderr"]]
    urls = [repository["url"].rstrip("/") + "/" for repository in repositories]  # as apt prints them
    return _others(found["targets"], urls, only)


def dnf_misfits(found: JsonObject, repositories: Sequence[Mapping[str, object]], only: bool) -> list[str]:
    """Return the errors of ``dnf makecache``, or a sentence if dnf does not read the desired repositories."""
    update = found["update"]
    if update["rc"] != 0:
        lines = (update.get("stderr") or "").splitlines()
        return [line for line in lines if line.lower().startswith("error")] or [update["stderr"]]
    names = [line.split()[0] for line in found["enabled"][1:] if line.strip()]
    return _others(names, [f"dml-{repository['name']}" for repository in repositories], only)


def _others(there: Sequence[str], desired: Sequence[str], only: bool) -> list[str]:
    """Return a sentence if a repository is missing, or, if only these are allowed, if there is another one."""
    if not set(desired) - set(there) and not (only and set(there) - set(desired)):
        return []
    current = " and ".join(dict.fromkeys(there)) or "none"
    return [f"The node reads {current}, but should read {'only ' if only else ''}{' and '.join(desired)}."]


def update_faults(output: str) -> list[str]:
    """Return the unique lines of apt-get about archives that it cannot read or does not trust."""
    return list(dict.fromkeys(FAULT.findall(output)))
