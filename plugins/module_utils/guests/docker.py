"""Docker on a node: its report, its merged settings, and whether a change would stop containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.json_values import JsonObject, parse_json


class SettingsError(ValueError):
    """A settings file that cannot be parsed, so that nothing can be merged into it."""


def report(output: object) -> dict[str, Any]:
    """Return Docker's version, runtimes, mirrors and running containers from the JSON of ``docker info``.

    A daemon that does not answer has no version; some versions of the program do not report that in their exit status
    (https://github.com/docker/cli/issues/5900).
    """
    info = (parse_json(output) if not isinstance(output, str) or output.lstrip().startswith("{") else None) or {}
    registries = info.get("RegistryConfig") or {}
    return {
        "version": info.get("ServerVersion") or "",
        "runtimes": {name: runtime.get("path", "") for name, runtime in (info.get("Runtimes") or {}).items()},
        "default_runtime": info.get("DefaultRuntime") or "",
        "mirrors": registries.get("Mirrors") or [],
        "running": info.get("ContainersRunning") or 0,
        "live_restore": bool(info.get("LiveRestoreEnabled")),
    }


def settings(text: object, desired: JsonObject) -> dict[str, Any]:
    """Return the settings of ``daemon.json`` merged with the ``desired`` ones; other settings stay."""
    try:
        there = parse_json(text)
    except ValueError as error:
        raise SettingsError(
            f"/etc/docker/daemon.json is not valid JSON ({error}): correct the file, or remove it."
        ) from error
    there = {} if there is None else there
    if not isinstance(there, dict):
        raise SettingsError("/etc/docker/daemon.json does not contain a mapping: correct the file, or remove it.")
    return _merged(there, desired)


def _merged(there: Mapping[str, object], desired: JsonObject) -> dict[str, object]:
    return {**there, **{key: _both(there.get(key), value) for key, value in desired.items()}}


def _both(there: object, desired: object) -> object:
    """Merge mappings; in lists, desired entries come first, because Docker tries mirrors in order."""
    if isinstance(there, Mapping) and isinstance(desired, Mapping):
        return _merged(there, desired)
    if isinstance(there, list) and isinstance(desired, list):
        return [*desired, *(entry for entry in there if entry not in desired)]
    return desired


def own_settings(desired: JsonObject) -> dict[str, object]:
    """Return the settings of ``daemon.json`` for NVIDIA's runtime, mirrors and further ``settings``."""
    path = desired.get("nvidia")
    nvidia = {"runtimes": {"nvidia": {"path": path, "runtimeArgs": []}}} if path else {}
    default = {"default-runtime": "nvidia"} if desired.get("nvidia_default") else {}
    mirrors = {"registry-mirrors": list(desired["mirrors"])} if desired.get("mirrors") else {}
    return {**_merged(desired.get("settings") or {}, nvidia), **default, **mirrors}


def stops(found: JsonObject, version: str, restarts: bool) -> list[str]:
    """Return a sentence if the change to a version, or a restart, would stop running containers.

    With live-restore, containers survive a restart, but not every change of version:
    https://docs.docker.com/engine/daemon/live-restore/
    """
    other = found["version"].partition("+")[0] not in ("", version)
    if not found["running"] or not (other or (restarts and not found["live_restore"])):
        return []
    cause = "another version of Docker" if other else "a restart of Docker with other settings"
    return [f"It runs {found['running']} containers, which {cause} would stop."]


def misfits(found: JsonObject, desired: JsonObject) -> list[str]:
    """Return a sentence for each difference.

    The keys of ``desired`` are ``version``, and optionally ``nvidia`` (the path of NVIDIA's runtime),
    ``nvidia_default`` and ``mirrors``.
    """
    if not found["version"]:
        return ["The Docker daemon does not answer."]
    sentences = []
    if found["version"].partition("+")[0] != desired["version"]:  # Debian writes 20.10.24+dfsg1
        sentences.append(f"Docker reports version {found['version']}, not {desired['version']}.")
    path, there = desired.get("nvidia"), found["runtimes"].get("nvidia")
    if path and there != path:
        sentences.append(f"Docker's runtime nvidia is {there or 'missing'}, not {path}.")
    if desired.get("nvidia_default") and found["default_runtime"] != "nvidia":
        sentences.append(f"Docker's default runtime is {found['default_runtime']}, not nvidia.")
    missing = _without_slash(desired.get("mirrors", [])) - _without_slash(found["mirrors"])
    if missing:
        sentences.append(f"Docker does not use the mirror {' and '.join(sorted(missing))}.")
    return sentences


def _without_slash(mirrors: Sequence[str]) -> set[str]:
    """Return the mirrors without the trailing slash that Docker adds."""
    return {mirror.rstrip("/") for mirror in mirrors}
