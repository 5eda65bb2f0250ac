# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""From the evidence of a host to the profile that restores it.

Restored is what the change touched, no more: the subjects, VIBs and kernel modules that the change's own profile names.
What is within them is restored whole: all options of such a module, the assignment policy beside the graphics type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import roce
from .evacuation import VGPU_BY_DRS
from .preflight_cluster import GPU_BALANCING

Data = Mapping[str, Any]
# Comes and goes with the vGPU manager.
OF_THE_MANAGER = "nvidia"
# Of other packages esxi_info keeps no record.
_RECORDED = re.compile(r"^(nvidia|nvd)|nmlx|mlnx", re.IGNORECASE)


class Irreversible(ValueError):
    """What was cannot be restored from this evidence: one sentence for each reason."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = tuple(reasons)


def restoring_profiles(
    document: Data, depots: Sequence[Data] = (), hosts: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """By host: the profile that restores it; all hosts of the evidence, or only the named ones."""
    known = {before["host"]: before for before in document["hosts"]}
    wanted, reasons, profiles = document["wanted"], [], {}
    for host in hosts or known:
        if host not in known:
            reasons.append(f"{host}: the evidence does not know it")
            continue
        own = wanted["host_profiles"].get(host, wanted["profile"])
        try:
            profiles[host] = restoring_profile(known[host], own, depots)
        except Irreversible as error:
            reasons += [f"{host}: {reason}" for reason in error.reasons]
    if reasons:
        raise Irreversible(reasons)
    return profiles


def restoring_profile(before: Data, wanted: Data, depots: Sequence[Data] = ()) -> dict[str, Any]:
    """The profile, in the words of esxi_profile, that restores a host: ``wanted`` is the profile it was changed to.

    ``depots`` say where older versions of VIBs come from: each has ``name``, ``version`` and ``source``.
    """
    if before.get("failed"):
        raise Irreversible([f"the evidence knows nothing of it: {before['msg']}"])
    reasons: list[str] = []
    parts: dict[str, Any] = {
        "passthrough": _passthrough(before, wanted, reasons),
        "vibs": _vibs(before, wanted, depots, reasons),
        "graphics": _graphics(before, wanted, reasons),
        "kernel_modules": _kernel_modules(before, wanted, reasons),
        "pvrdma": _pvrdma(before, wanted, reasons),
    }
    if reasons:
        raise Irreversible(reasons)
    return {subject: part for subject, part in parts.items() if part}


def restoring_settings(document: Data) -> dict[str, dict[str, Any]]:
    """The options of shared_settings that restore what the evidence holds of vCenter and of the cluster's DRS.

    Of DRS only the options that matter to virtual GPUs; one that was not set is removed.
    """
    cluster = document["cluster"]
    options = {key: value for key, value in cluster["options"].items() if value is not None}
    return {
        "vcenter_options": options,
        "drs_options": {key: cluster["drs"]["options"].get(key) for key in (VGPU_BY_DRS, GPU_BALANCING)},
    }


def _passthrough(before: Data, wanted: Data, reasons: list[str]) -> dict[str, Any] | None:
    """One wish for all devices: a profile cannot give some and take others."""
    if not wanted.get("passthrough"):
        return None
    was = {address: gpu["passthrough"] for address, gpu in _gpus(before).items()}
    devices = wanted["passthrough"].get("devices") or ["gpus"]
    named = list(was) if devices == ["gpus"] else devices
    states = {address: was.get(address) for address in named}
    unknown = sorted(address for address, state in states.items() if state is None)
    if unknown:
        reasons.append(f"the evidence does not tell whether {', '.join(unknown)} was in passthrough")
    elif len({state == "on" for state in states.values()}) > 1:
        on = sorted(address for address, state in states.items() if state == "on")
        reasons.append(f"only {', '.join(on)} was in passthrough: restore that by hand with esxi_passthrough")
    elif states:
        return {"devices": named, "enabled": set(states.values()) == {"on"}}
    return None


def _vibs(before: Data, wanted: Data, depots: Sequence[Data], reasons: list[str]) -> list[dict[str, Any]]:
    recorded = before.get("vibs") or {}
    was = {vib["name"]: vib["version"] for vib in recorded.get("pending") or recorded.get("running") or []}
    restored = []
    for vib in wanted.get("vibs") or []:
        name, version = vib["name"], was.get(vib["name"])
        if not version and not _RECORDED.search(name):
            reasons.append(f"the evidence does not tell whether VIB {name} was installed: restore it with esxi_vib")
        elif not version and vib.get("state") != "absent":
            restored.append({"name": name, "state": "absent"})
        elif version and not _granted(version, vib):
            restored += _older(name, version, depots, reasons)
    return restored


def _granted(version: str, vib: Data) -> bool:
    """Whether the change left this version as it was, because it is the wanted one."""
    wanted = str(vib.get("version") or "")
    return vib.get("state") != "absent" and (version == wanted or version.startswith(f"{wanted}-"))


def _older(name: str, version: str, depots: Iterable[Data], reasons: list[str]) -> list[dict[str, Any]]:
    for depot in depots:
        if depot["name"] == name and (version == depot["version"] or version.startswith(f"{depot['version']}-")):
            return [{"name": name, "version": version, "source": depot["source"], "state": "present"}]
    reasons.append(f"it had VIB {name} {version}: say in rollback_depots where that comes from (name, version, source)")
    return []


def _graphics(before: Data, wanted: Data, reasons: list[str]) -> dict[str, Any] | None:
    if not wanted.get("graphics"):
        return None
    was = before.get("graphics") or {}
    kinds = {was.get("default_type"), *_settled(was, "types")}
    if len(kinds) > 1:
        reasons.append("its GPUs were not shared alike: restore their graphics types by hand in the vSphere Client")
        return None
    restored = {"type": was.get("default_type"), "policy": was.get("policy")}
    modes = set(_settled(was, "modes")) & {"same_size", "mixed_size"}
    if wanted["graphics"].get("vgpu_mode") and len(modes) == 1:
        restored["vgpu_mode"] = modes.pop()
    return {key: value for key, value in restored.items() if value}


def _settled(was: Data, key: str) -> list[str]:
    """What each GPU was configured to, where it was configured at all."""
    return [value for value in (was.get(key) or {}).values() if value]


def _kernel_modules(before: Data, wanted: Data, reasons: list[str]) -> list[dict[str, Any]]:
    """All options of the modules that were touched; a module that is not recorded had none, or was not there."""
    was = before.get("kernel_modules") or {}
    touched = [module["name"] for module in wanted.get("kernel_modules") or []]
    if wanted.get("roce"):
        touched += [module for driver in roce.OURS.values() for module in driver if module in was]
    restored = []
    for name in dict.fromkeys(touched):
        options = was.get(name, {"options": {}})["options"]
        if options is None:
            reasons.append(f"kernel module {name} had the options {was[name]['text']!r}: restore them by hand")
        elif name in was or name != OF_THE_MANAGER:
            restored.append({"name": name, "options": dict(options), "exact": True})
    return restored


def _pvrdma(before: Data, wanted: Data, reasons: list[str]) -> dict[str, Any] | None:
    was = before.get("pvrdma") or {}
    if not wanted.get("pvrdma") or (was.get("vmk") is None and was.get("firewall_open") is None):
        return None
    if not was.get("vmk"):
        return {"state": "absent", "close_firewall": not was.get("firewall_open")}
    if not was.get("firewall_open"):
        reasons.append(
            f"its adapter {was['vmk']} was tagged behind a closed firewall, which nothing can use: decide by hand"
        )
        return None
    return {"state": "present", "vmk": was["vmk"]}


def _gpus(before: Data) -> Data:
    return (before.get("graphics") or {}).get("gpus") or {}
