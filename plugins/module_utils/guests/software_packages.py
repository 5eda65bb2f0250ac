"""Packages of a stack in the notation of apt, dnf and pip, and a node's packages that differ from them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..core.json_values import parse_json

# Packages that dnf installs next to other versions by default (installonlypkgs of dnf.conf):
# https://dnf.readthedocs.io/en/latest/conf_ref.html
BESIDE = ("kernel", "kernel-core", "kernel-devel", "kernel-modules", "kernel-modules-core")
PIP = "pip"
JOINTS = {"apt": "=", "dnf": "-", "dnf5": "-", "yum": "-"}


def specs(packages: Sequence[Mapping[str, str]], manager: str) -> list[str]:
    """Return names with versions in the notation of a package manager; only the name if there is no version.

    For pip, they are the lines of a requirements file, with checksums.
    """
    if manager == PIP:
        return [f"{_requirement(package)} --hash=sha256:{package['sha256']}" for package in packages]
    joint = JOINTS[manager]
    return [
        f"{package['name']}{joint}{package['version']}" if package.get("version") else package["name"]
        for package in packages
    ]


def python_requirements(packages: Sequence[Mapping[str, str]]) -> str:
    """Return the text of a requirements file for pip: each package with its version or address, and a checksum."""
    return "".join(f"{line}\n" for line in specs(packages, PIP))


def _requirement(package: Mapping[str, str]) -> str:
    """Return a package with the address of its file, if it has one, else with its version in the package index."""
    return f"{package['name']} @ {package['url']}" if package.get("url") else f"{package['name']}=={package['version']}"


def pip_list(output: object) -> list[dict[str, str]]:
    """Return the packages in the output of ``pip list --format json``; empty if there is no environment."""
    return list(parse_json(output) or [])


def python_misfits(installed: Sequence[Mapping[str, str]], packages: Sequence[Mapping[str, str]]) -> list[str]:
    """Return a sentence for each package that pip does not list, or lists with another version."""
    there = {_normal(package["name"]): package["version"] for package in installed}
    pairs = [(package, there.get(_normal(package["name"]), "missing")) for package in packages]
    return [
        f"The Python package {package['name']} is {version}, not {package['version']}."
        for package, version in pairs
        if version != package["version"]
    ]


def misfits(
    installed: Sequence[str], packages: Sequence[Mapping[str, str]], held: Sequence[str] | None = None
) -> list[str]:
    """Return a sentence for each package that is missing, has another version, or is pinned and not among ``held``.

    Lines of ``installed`` are "NAME VERSION installed"; dpkg also lists removed packages with remaining settings.
    """
    there = _versions(installed)
    sentences = []
    for package in packages:
        name, versions, version = package["name"], there.get(package["name"], []), package.get("version")
        if not versions or (version and version not in versions):
            named = " and ".join(versions) or "missing"
            sentences.append(f"The package {name} is {named}{f', not {version}' if version else ''}.")
        elif version and held is not None and not any(_holds(line, name, version) for line in held):
            sentences.append(f"The package {name} is not held at {version}.")
    return sentences


def replacements(installed: Sequence[str], packages: Sequence[Mapping[str, str]]) -> list[str]:
    """Return each package whose installed version differs from the pinned one, as "NAME VERSION by VERSION"."""
    there = _versions(installed)
    return [
        f"{package['name']} {' and '.join(there[package['name']])} by {package['version']}"
        for package in packages
        if package.get("version")
        and package["version"] not in there.get(package["name"], [package["version"]])
        # dnf installs these next to the existing versions.
        and not package["name"].startswith(BESIDE)
    ]


def _versions(installed: Sequence[str]) -> dict[str, list[str]]:
    """Return the versions of each installed package; a kernel may have several."""
    versions: dict[str, list[str]] = {}
    for row in (line.split() for line in installed):
        if row[2:] == ["installed"]:
            versions.setdefault(row[0], []).append(row[1])
    return versions


def _holds(line: str, name: str, version: str) -> bool:
    """Return whether a line of apt (NAME) or dnf (NAME-EPOCH:VERSION) holds a package at a version."""
    return line == name or re.match(rf"{re.escape(name)}-\d+:{re.escape(version)}(\.|$)", line) is not None


def _normal(name: str) -> str:
    """Return the name as the package index normalizes it."""
    return re.sub(r"[-_.]+", "-", name).lower()
