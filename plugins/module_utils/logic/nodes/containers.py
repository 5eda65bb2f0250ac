# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""What Docker says of itself, and its settings with ours beside those that are there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


class SettingsError(ValueError):
    """A file of settings that cannot be read, so that nothing may be added to it."""


def report(said: str) -> dict[str, Any]:
    """What ``docker info`` tells as JSON, in our words.

    A daemon that does not answer has no version; the program's exit status does not tell it in all versions
    (https://github.com/docker/cli/issues/5900).
    """
    info = json.loads(said) if said.lstrip().startswith("{") else {}
    registries = info.get("RegistryConfig") or {}
    return {
        "version": info.get("ServerVersion") or "",
        "runtimes": {name: runtime.get("path", "") for name, runtime in (info.get("Runtimes") or {}).items()},
        "default_runtime": info.get("DefaultRuntime") or "",
        "mirrors": registries.get("Mirrors") or [],
        "running": info.get("ContainersRunning") or 0,
        "live_restore": bool(info.get("LiveRestoreEnabled")),
    }


def settings(text: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of ``daemon.json`` with ours in them; nothing that is there is lost, save the values we name."""
    try:
        there = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise SettingsError(f"/etc/docker/daemon.json is no JSON ({error}): mend it, or take it away.") from error
    if not isinstance(there, dict):
        raise SettingsError("/etc/docker/daemon.json holds no mapping: mend it, or take it away.")
    return _merged(there, wanted)


def _merged(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {**there, **{key: _both(there.get(key), value) for key, value in wanted.items()}}


def _both(there: object, wanted: Any) -> Any:
    """Mappings are merged; of lists ours come first, as Docker asks mirrors in turn."""
    if isinstance(there, Mapping) and isinstance(wanted, Mapping):
        return _merged(there, wanted)
    if isinstance(there, list) and isinstance(wanted, list):
        return [*wanted, *(one for one in there if one not in wanted)]
    return wanted


def misfits(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """A sentence for each thing that is not as it should be.

    Wanted are ``version``, and where they matter ``runtimes``, paths by name, ``default_runtime`` and ``mirrors``.
    """
    if not found["version"]:
        return ["The daemon of Docker does not answer."]
    sentences = []
    if found["version"].partition("+")[0] != wanted["version"]:  # Debian writes 20.10.24+dfsg1
        sentences.append(f"Docker says that it is {found['version']}, not {wanted['version']}.")
    for name, path in wanted.get("runtimes", {}).items():
        if found["runtimes"].get(name) != path:
            told = found["runtimes"].get(name, "none")
            sentences.append(f"Docker's runtime {name} is {told}, not {path}.")
    default = wanted.get("default_runtime")
    if default and found["default_runtime"] != default:
        sentences.append(f"Docker's default runtime is {found['default_runtime']}, not {default}.")
    missing = _places(wanted.get("mirrors", [])) - _places(found["mirrors"])
    if missing:
        sentences.append(f"Docker does not ask the mirror {' and '.join(sorted(missing))}.")
    return sentences


def _places(mirrors: Sequence[str]) -> set[str]:
    """Mirrors without the slash that Docker writes at their end."""
    return {mirror.rstrip("/") for mirror in mirrors}
