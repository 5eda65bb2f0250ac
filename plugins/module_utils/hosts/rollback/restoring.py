# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""How each part of a host's profile is restored from the evidence of the host: in the words of esxi_profile."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Callable

from .. import roce_settings
from ..pci_address import GPUS, pci_address
from .evidence import HIDDEN
from .rollback import Before, Data

# The kernel module that comes and goes with the vGPU manager.
OF_THE_MANAGER = "nvidia"
# esxi_info keeps no record of other packages.
_RECORDED = re.compile(r"^(nvidia|nvd)|nmlx|mlnx", re.IGNORECASE)


def passthrough(before: Before) -> Data:
    """Return one setting for all devices: a profile cannot pass some through and others not."""
    was = {address: gpu["passthrough"] for address, gpu in (before.entry["graphics"].get("gpus") or {}).items()}
    devices = before.wanted["passthrough"].get("devices") or [GPUS]
    named = [address for one in devices for address in (was if one == GPUS else [pci_address(one)])]
    states = {address: was.get(address) for address in named}
    by_state = {state: sorted(one for one in states if states[one] == state) for state in set(states.values())}
    if None in by_state:
        before.reasons.append(f"the evidence does not tell whether {', '.join(by_state[None])} was in passthrough")
    if "pending" in by_state:
        waiting = ", ".join(by_state["pending"])
        before.reasons.append(f"the passthrough of {waiting} was waiting for a boot: restore it with esxi_passthrough")
    if {"on", "off"} <= set(by_state):
        on = ", ".join(by_state["on"])
        before.reasons.append(f"only {on} was in passthrough: restore that by hand with esxi_passthrough")
    if not states or (set(by_state) - {"on"} and set(by_state) - {"off"}):
        return {}
    return {"passthrough": {"devices": list(states), "enabled": "on" in by_state}}


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
    """Return the type of host and GPUs, and the assignment policy; the vGPU mode if the change set it."""
    was, wanted = before.entry["graphics"], before.wanted["graphics"]
    restored = {"policy": was.get("policy")}
    kinds = {was.get("default_type"), *_settled(was, "types")}
    if len(kinds) == 1:
        restored["type"] = was.get("default_type")
    elif wanted.get("type"):
        said = "its GPUs were not shared alike: restore their graphics types by hand in the vSphere Client"
        before.reasons.append(said)
    if wanted.get("vgpu_mode"):
        restored["vgpu_mode"] = _vgpu_mode(before)
    return {"graphics": {key: value for key, value in restored.items() if value}}


def _vgpu_mode(before: Before) -> str | None:
    """Return the vGPU mode of all GPUs that the change can have touched; esxi_graphics leaves those in passthrough."""
    was = before.entry["graphics"]
    ends = (before.wanted.get("passthrough") or {}).get("enabled") is False
    gpus = [gpu for gpu, facts in was["gpus"].items() if ends or facts["passthrough"] == "off"]
    modes = {gpu: (was.get("modes") or {}).get(gpu) or "none" for gpu in gpus}
    mode = next(iter(modes.values()), None)
    if set(modes.values()) in ({"same_size"}, {"mixed_size"}):
        return mode
    if modes:
        shown = ", ".join(f"{gpu}: {mode}" for gpu, mode in sorted(modes.items()))
        said = f"its GPUs did not all have a vGPU mode, or not the same one ({shown}): restore that by hand"
        before.reasons.append(said)
    return None


def _settled(was: Data, key: str) -> list[str]:
    """The setting of each GPU that has one of its own."""
    return [value for value in (was.get(key) or {}).values() if value]


def kernel_modules(before: Before) -> Data:
    """All options of the modules that the change names."""
    return _all_options(before, [module["name"] for module in before.wanted["kernel_modules"]])


def roce(before: Before) -> Data:
    """All options of the RDMA drivers' modules that the host has."""
    modules = [module for driver in roce_settings.DRIVER_OPTIONS.values() for module in driver]
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
    """Return the adapter that was tagged, or none; the firewall is closed again if it was closed."""
    was, wanted = before.entry["pvrdma"], before.wanted["pvrdma"]
    if was.get("vmk") is None and was.get("firewall_open") is None:
        return {}
    if was.get("vmk") and was.get("firewall_open"):
        return {"pvrdma": {"state": "present", "vmk": was["vmk"]}}
    if was.get("vmk"):
        said = f"its adapter {was['vmk']} was tagged behind a closed firewall, which nothing can use: decide by hand"
        before.reasons.append(said)
        return {}
    if was.get("firewall_open") and wanted.get("state") == "absent" and wanted.get("close_firewall", True):
        said = "the change closed its firewall ruleset pvrdma, which was open without a tagged adapter: open it by hand"
        before.reasons.append(said)
        return {}
    return {"pvrdma": {"state": "absent", "close_firewall": not was.get("firewall_open")}}
