"""Packages of a stack in the notation of apt, dnf and pip, a node's packages that differ, and those of its kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..core.json_values import JsonObject, parse_json

# Packages that dnf installs next to other versions by default (installonlypkgs of dnf.conf):
# https://dnf.readthedocs.io/en/latest/conf_ref.html
BESIDE = ("kernel", "kernel-core", "kernel-devel", "kernel-modules", "kernel-modules-core")
PIP = "pip"
JOINTS = {"apt": "=", "dnf": "-", "dnf5": "-", "yum": "-"}
Packages = list[dict[str, str]]
# Packages that depend on the newest kernel of a flavour, without headers: https://packages.ubuntu.com/linux-image
_NEWEST = re.compile(r"linux-image-(?=[a-z])(?!extra|unsigned)(.+)(?<!-dbg)$")
# virtual and generic are the same kernel; only generic has all modules, such as vmw_pvrdma and mlx5_ib:
# https://packages.ubuntu.com/jammy/linux-image-generic
_FEW_MODULES, _ALL_MODULES = "linux-image-virtual", "linux-image-generic"


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


def packages(installed: Sequence[str], facts: JsonObject) -> dict[str, Packages]:
    """Return the packages of a kernel: ``headers`` and ``modules`` to install, and ``held`` to keep at their version.

    Lines of ``installed`` are "NAME VERSION installed"; ``facts`` are Ansible's facts.
    """
    there = [row[:2] for row in (line.split() for line in installed) if row[2:] == ["installed"]]
    if facts["os_family"] == "Debian":
        return _debian(there, facts)
    running = str(facts["kernel"]).rpartition(".")[0]
    return {
        "headers": [{"name": "kernel-devel", "version": running}],
        "modules": [{"name": "kernel-modules", "version": running}],
        "held": [{"name": name, "version": running} for name, version in there if version == running],
    }


def _debian(there: Sequence[Sequence[str]], facts: JsonObject) -> dict[str, Packages]:
    kernel = facts["kernel"]
    newest = [(name, version) for name, version in there if _NEWEST.match(name)]
    # Only Ubuntu has a second package of modules, and none for Linux 7.0 and later:
    # https://discourse.ubuntu.com/t/kernel-development-release-cadence-and-deprecation-of-linux-modules-extra/65176
    two = facts["distribution"] == "Ubuntu" and re.match(r"[1-6]\.", kernel)
    extra = [{"name": f"linux-modules-extra-{kernel}"}] if two else []
    whole = [
        {"name": name.replace(_FEW_MODULES, _ALL_MODULES)} for name, _version in newest if name.startswith(_FEW_MODULES)
    ]
    return {
        "headers": [
            {"name": f"linux-headers-{kernel}"},
            *({"name": name.replace("linux-image-", "linux-headers-")} for name, _version in newest),
        ],
        "modules": [*extra, *whole],
        "held": [{"name": name, "version": version} for name, version in newest],
    }
