"""The restoration of a host's profile and a cluster's image from evidence, as options of their modules."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Callable

from .. import roce_settings
from ..pci_address import GPUS, pci_address
from .evidence import HIDDEN
from .rollback import Before, Data

# The kernel module that the vGPU manager installs and removes.
VGPU_MANAGER_MODULE = "nvidia"
# esxi_info does not record other packages.
_RECORDED = re.compile(r"^(nvidia|nvd)|nmlx|mlnx", re.IGNORECASE)
KEPT = ("base_image", "add_on", "components")


def passthrough(before: Before) -> Data:
    """Return one setting for all devices, because a profile passes through either all devices or none."""
    recorded = {address: gpu["passthrough"] for address, gpu in (before.entry["graphics"].get("gpus") or {}).items()}
    devices = before.desired["passthrough"].get("devices") or [GPUS]
    addresses = [address for device in devices for address in (recorded if device == GPUS else [pci_address(device)])]
    states = {address: recorded.get(address) for address in addresses}
    by_state = {state: sorted(key for key, value in states.items() if value == state) for state in set(states.values())}
    if None in by_state:
        before.reasons.append(f"the evidence does not show whether {', '.join(by_state[None])} was in passthrough")
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
    """Return the VIBs of the change: absent if they were not installed, otherwise in the previous version."""
    entry = before.entry["vibs"]
    versions = {vib["name"]: vib["version"] for vib in entry.get("pending") or entry.get("running") or []}
    restored: list[dict[str, Any]] = []
    for vib in before.desired["vibs"]:
        name, version = vib["name"], versions.get(vib["name"])
        if not version and not _RECORDED.search(name):
            reason = f"the evidence does not show whether VIB {name} was installed: restore it with esxi_vib"
            before.reasons.append(reason)
        elif not version and vib.get("state") != "absent":
            restored.append({"name": name, "state": "absent"})
        elif version and not _is_unchanged(version, vib):
            restored += _previous_vib(name, version, before)
    return {"vibs": restored}


def _is_unchanged(version: str, vib: Data) -> bool:
    """Return whether the change kept this version, because it is the desired one."""
    desired = str(vib.get("version") or "")
    return vib.get("state") != "absent" and (version == desired or version.startswith(f"{desired}-"))


def _previous_vib(name: str, version: str, before: Before) -> list[dict[str, object]]:
    for depot in before.depots:
        if depot["name"] == name and (version == depot["version"] or version.startswith(f"{depot['version']}-")):
            return [{"name": name, "version": version, "source": depot["source"], "state": "present"}]
    reason = f"it had VIB {name} {version}: specify its source in rollback_depots (name, version, source)"
    before.reasons.append(reason)
    return []


def graphics(before: Before) -> Data:
    """Return the type of host and GPUs, and the assignment policy; the vGPU mode if the change set it."""
    entry, desired = before.entry["graphics"], before.desired["graphics"]
    restored = {"policy": entry.get("policy")}
    kinds = {entry.get("default_type"), *_types_of_gpus(entry)}
    if len(kinds) == 1:
        restored["type"] = entry.get("default_type")
    elif desired.get("type"):
        reason = "its GPUs had different graphics types: restore them by hand in the vSphere Client"
        before.reasons.append(reason)
    if desired.get("vgpu_mode"):
        restored["vgpu_mode"] = _vgpu_mode(before)
    return {"graphics": {key: value for key, value in restored.items() if value}}


def _vgpu_mode(before: Before) -> str | None:
    """Return the vGPU mode of all GPUs that the change may have changed; esxi_graphics skips those in passthrough."""
    entry = before.entry["graphics"]
    ends = (before.desired.get("passthrough") or {}).get("enabled") is False
    gpus = [address for address, gpu in entry["gpus"].items() if ends or gpu["passthrough"] == "off"]
    modes = {gpu: (entry.get("modes") or {}).get(gpu) or "none" for gpu in gpus}
    mode = next(iter(modes.values()), None)
    if set(modes.values()) in ({"same_size"}, {"mixed_size"}):
        return mode
    if modes:
        shown = ", ".join(f"{gpu}: {mode}" for gpu, mode in sorted(modes.items()))
        reason = f"its GPUs did not all have a vGPU mode, or not the same one ({shown}): restore that by hand"
        before.reasons.append(reason)
    return None


def _types_of_gpus(entry: Data) -> list[str]:
    """Return the graphics types of the GPUs that have their own type."""
    return [kind for kind in (entry.get("types") or {}).values() if kind]


def kernel_modules(before: Before) -> Data:
    """Return all options of the modules that the change names."""
    return _all_options(before, [module["name"] for module in before.desired["kernel_modules"]])


def roce(before: Before) -> Data:
    """Return all options of the host's RDMA driver modules."""
    modules = [module for driver in roce_settings.DRIVER_OPTIONS.values() for module in driver]
    return _all_options(before, [module for module in modules if module in before.entry["kernel_modules"]])


def _all_options(before: Before, names: Iterable[str]) -> Data:
    """Return all options of these modules; a module without a record had no options, or was not installed."""
    entry = before.entry["kernel_modules"]
    restored: list[dict[str, Any]] = []
    for name in dict.fromkeys(names):
        options = entry.get(name, {"options": {}})["options"]
        if options is None:
            before.reasons.append(f"kernel module {name} had the options {entry[name]['text']!r}: restore them by hand")
        elif name in entry or name != VGPU_MANAGER_MODULE:
            restored.append({"name": name, "options": dict(options), "exact": True})
    return {"kernel_modules": restored}


def values(key: str) -> Callable[[Before], Data]:
    """Return the function that restores a dictionary of values: those that the change named and the host had."""

    def restore(before: Before) -> Data:
        entry, desired = before.entry[key], before.desired[key]
        lost = [option for option in desired if option not in entry or entry[option] == HIDDEN]
        before.reasons += [
            f"the evidence does not contain the value of {option}: restore it by hand" for option in lost
        ]
        return {key: {option: entry[option] for option in desired if entry.get(option) is not None}}

    return restore


def pvrdma(before: Before) -> Data:
    """Return the adapter that was tagged, or the absence of a tag; the firewall is closed again if it was closed."""
    entry, desired = before.entry["pvrdma"], before.desired["pvrdma"]
    if entry.get("vmk") is None and entry.get("firewall_open") is None:
        return {}
    if entry.get("vmk") and entry.get("firewall_open"):
        return {"pvrdma": {"state": "present", "vmk": entry["vmk"]}}
    if entry.get("vmk"):
        before.reasons.append(
            f"its adapter {entry['vmk']} was tagged while the firewall was closed, so PVRDMA did not work: set the tag "
            "or the firewall by hand"
        )
        return {}
    if entry.get("firewall_open") and desired.get("state") == "absent" and desired.get("close_firewall", True):
        before.reasons.append(
            "the change closed its firewall ruleset pvrdma, which was open without a tagged adapter: open it by hand"
        )
        return {}
    return {"pvrdma": {"state": "absent", "close_firewall": not entry.get("firewall_open")}}


def kept(state: Data) -> dict[str, Any]:
    """Return what evidence keeps of an image, from the state that esxi_image returns."""
    return {key: state[key] for key in KEPT}


def restoring_image(document: Data) -> tuple[dict[str, object], list[str]]:
    """Return the options that restore the image, empty if the change did not touch it, and why it cannot be restored.

    The versions of the evidence replace those of the change; a component that the image did not contain is removed.
    """
    desired, before = document["wanted"].get("image") or {}, document.get("image")
    if not desired:
        return {}, []
    if not before:
        return {}, ["the evidence lacks the image of the cluster, which the change touched: restore it with esxi_image"]
    named = [*(desired.get("components") or {}), *(desired.get("absent") or [])]
    options: dict[str, Any] = {
        "components": {name: before["components"][name] for name in named if name in before["components"]},
        "absent": [name for name in named if name not in before["components"]],
    }
    reasons = list[str]()
    if desired.get("base_image") and desired["base_image"] != before["base_image"]:
        reasons.append(
            f"the change set the base image of the cluster to {desired['base_image']}, and vLCM does not downgrade "
            f"ESXi: to return to {before['base_image']}, reinstall it on the hosts"
        )
    if desired.get("add_on"):
        if before["add_on"]:
            options["add_on"] = dict(before["add_on"])
        else:
            name = desired["add_on"].get("name")
            reasons.append(f"the image had no add-on: remove {name} in the cluster's Updates > Image")
    return {key: value for key, value in options.items() if value}, reasons
