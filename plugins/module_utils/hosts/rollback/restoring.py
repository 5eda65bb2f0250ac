# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""How each part of a host's profile is restored from the evidence of the host: in the words of esxi_profile."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Callable

from .. import roce_settings
from .evidence import HIDDEN
from .rollback import Before, Data

# The kernel module that comes and goes with the vGPU manager.
OF_THE_MANAGER = "nvidia"
# esxi_info keeps no record of other packages.
_RECORDED = re.compile(r"^(nvidia|nvd)|nmlx|mlnx", re.IGNORECASE)


def passthrough(before: Before) -> Data:
    """One setting for all devices: a profile cannot pass some through and others not."""
    was = {address: gpu["passthrough"] for address, gpu in (before.entry["graphics"].get("gpus") or {}).items()}
    devices = before.wanted["passthrough"].get("devices") or ["gpus"]
    named = list(was) if devices == ["gpus"] else devices
    states = {address: was.get(address) for address in named}
    unknown = sorted(address for address, state in states.items() if state is None)
    if unknown:
        before.reasons.append(f"the evidence does not tell whether {', '.join(unknown)} was in passthrough")
    elif len({state == "on" for state in states.values()}) > 1:
        on = ", ".join(sorted(address for address, state in states.items() if state == "on"))
        before.reasons.append(f"only {on} was in passthrough: restore that by hand with esxi_passthrough")
    elif states:
        return {"passthrough": {"devices": named, "enabled": set(states.values()) == {"on"}}}
    return {}


def vibs(before: Before) -> Data:
    """The VIBs of the change: removed where they were not installed, else in the version of before."""
    recorded = before.entry["vibs"]
    was = {vib["name"]: vib["version"] for vib in recorded.get("pending") or recorded.get("running") or []}
    restored: list[dict[str, Any]] = []
    for vib in before.wanted["vibs"]:
        name, version = vib["name"], was.get(vib["name"])
        if not version and not _RECORDED.search(name):
            said = f"the evidence does not tell whether VIB {name} was installed: restore it with esxi_vib"
            before.reasons.append(said)
        elif not version and vib.get("state") != "absent":
            restored.append({"name": name, "state": "absent"})
        elif version and not _left_as_it_was(version, vib):
            restored += _older(name, version, before)
    return {"vibs": restored}


def _left_as_it_was(version: str, vib: Data) -> bool:
    """Whether the change left this version as it was, because it is the desired one."""
    wanted = str(vib.get("version") or "")
    return vib.get("state") != "absent" and (version == wanted or version.startswith(f"{wanted}-"))


def _older(name: str, version: str, before: Before) -> list[dict[str, Any]]:
    for depot in before.depots:
        if depot["name"] == name and (version == depot["version"] or version.startswith(f"{depot['version']}-")):
            return [{"name": name, "version": version, "source": depot["source"], "state": "present"}]
    said = f"it had VIB {name} {version}: say in rollback_depots where that comes from (name, version, source)"
    before.reasons.append(said)
    return []


def graphics(before: Before) -> Data:
    """The type that host and GPUs shared, and the assignment policy; the vGPU mode where the change set it."""
    was = before.entry["graphics"]
    kinds = {was.get("default_type"), *_settled(was, "types")}
    if len(kinds) > 1:
        said = "its GPUs were not shared alike: restore their graphics types by hand in the vSphere Client"
        before.reasons.append(said)
        return {}
    restored = {"type": was.get("default_type"), "policy": was.get("policy")}
    modes = set(_settled(was, "modes")) & {"same_size", "mixed_size"}
    if before.wanted["graphics"].get("vgpu_mode") and len(modes) == 1:
        restored["vgpu_mode"] = modes.pop()
    return {"graphics": {key: value for key, value in restored.items() if value}}


def _settled(was: Data, key: str) -> list[str]:
    """The setting of each GPU that has one of its own."""
    return [value for value in (was.get(key) or {}).values() if value]


def kernel_modules(before: Before) -> Data:
    """All options of the modules that the change names."""
    return _all_options(before, [module["name"] for module in before.wanted["kernel_modules"]])


def roce(before: Before) -> Data:
    """All options of the RDMA drivers' modules that the host has."""
    modules = [module for driver in roce_settings.OURS.values() for module in driver]
    return _all_options(before, [module for module in modules if module in before.entry["kernel_modules"]])


def _all_options(before: Before, names: Iterable[str]) -> Data:
    """All options of these modules; a module that is not recorded had none, or was not there."""
    was = before.entry["kernel_modules"]
    restored: list[dict[str, Any]] = []
    for name in dict.fromkeys(names):
        options = was.get(name, {"options": {}})["options"]
        if options is None:
            before.reasons.append(f"kernel module {name} had the options {was[name]['text']!r}: restore them by hand")
        elif name in was or name != OF_THE_MANAGER:
            restored.append({"name": name, "options": dict(options), "exact": True})
    return {"kernel_modules": restored}


def values(key: str) -> Callable[[Before], Data]:
    """The way back of a part that is a dictionary of values: all that the change named, and the host had."""

    def restore(before: Before) -> Data:
        was, wanted = before.entry[key], before.wanted[key]
        lost = [one for one in wanted if one not in was or was[one] == HIDDEN]
        before.reasons += [f"the evidence does not hold the value of {one}: restore it by hand" for one in lost]
        return {key: {one: was[one] for one in wanted if was.get(one) is not None}}

    return restore


def pvrdma(before: Before) -> Data:
    """The adapter that was tagged, or none; the firewall is closed again if it was closed."""
    was = before.entry["pvrdma"]
    if was.get("vmk") is None and was.get("firewall_open") is None:
        return {}
    if not was.get("vmk"):
        return {"pvrdma": {"state": "absent", "close_firewall": not was.get("firewall_open")}}
    if not was.get("firewall_open"):
        said = f"its adapter {was['vmk']} was tagged behind a closed firewall, which nothing can use: decide by hand"
        before.reasons.append(said)
        return {}
    return {"pvrdma": {"state": "present", "vmk": was["vmk"]}}
