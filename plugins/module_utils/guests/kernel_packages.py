"""The kernel packages of each distribution: headers and modules of the running kernel, and of later ones."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..core.json_values import JsonObject

Packages = list[dict[str, str]]
# Packages that depend on the newest kernel of a flavour, without headers: https://packages.ubuntu.com/linux-image
_NEWEST = re.compile(r"linux-image-(?=[a-z])(?!extra|unsigned)(.+)(?<!-dbg)$")
# virtual and generic are the same kernel; only generic has all modules, such as vmw_pvrdma and mlx5_ib:
# https://packages.ubuntu.com/jammy/linux-image-generic
_FEW_MODULES, _ALL_MODULES = "linux-image-virtual", "linux-image-generic"


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
