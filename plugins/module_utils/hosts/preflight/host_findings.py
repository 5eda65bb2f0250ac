"""Findings about one host: what its profile needs and the host lacks, and what prevents the profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.findings import NOTE, STOP, WARN, Finding, listed, without_object
from ...core.versions import numbers
from ...workers.placement.gpu_slots import is_of_model

Data = Mapping[str, Any]

MIXED_SIZES_SINCE = (8, 0, 3)
# The end of the reason why a change waits for a vmkernel adapter that the role fabric creates.
COMES_WITH_FABRIC = "it comes with the RDMA fabric"
# The states of RDMA devices that work, or would work with a peer; "activedefer" comes from the answer of esxcli.
READY = ("active", "armed", "activeDefer", "activedefer")


@dataclass(frozen=True)
class ExpectedHost:
    """The profile of one host, and the models that its GPUs may have; an empty list allows any model."""

    profile: Data
    gpu_models: Sequence[str] = ()

    @property
    def words(self) -> frozenset[str]:
        """Return the short names of the parts of the profile that need hardware."""
        graphics = self.profile.get("graphics") or {}
        needs = {
            "vgpu": graphics.get("type") == "shared_direct",
            "mixed_size": graphics.get("vgpu_mode") == "mixed_size",
            "passthrough": bool((self.profile.get("passthrough") or {}).get("enabled")),
            "vib": any(vib.get("state") != "absent" for vib in self.profile.get("vibs") or []),
            "pvrdma": _present(self.profile.get("pvrdma")),
            "roce": _present(self.profile.get("roce")),
        }
        return frozenset(word for word, is_needed in needs.items() if is_needed)


def _present(part: Any) -> bool:
    return bool(part) and part.get("state", "present") == "present"


def findings(host: Data, desired: ExpectedHost) -> Iterator[Finding]:
    """Yield all findings about one host; for an unreadable host only this finding."""
    if not host["reachable"]:
        text = f"vCenter shows it as {host['connection']}, so it can be neither read nor changed; bring it back"
        yield Finding(STOP, "disconnected", host["host"], text)
    elif host.get("failed"):
        yield Finding(STOP, "unreadable", host["host"], without_object(host["host"], host["msg"]))
    else:
        for check in (_pending_reboot, _version, _gpus, _rdma, _shared_cards, _owners):
            yield from check(host, desired)


def _pending_reboot(host: Data, _desired: ExpectedHost) -> Iterator[Finding]:
    if host["reboot_owed"]:
        text = f"it must boot for an earlier change ({listed(host['reboot_why'])}); hosts.yml reboots it"
        yield Finding(NOTE, "reboot_owed", host["host"], text)


def _version(host: Data, desired: ExpectedHost) -> Iterator[Finding]:
    if "mixed_size" in desired.words and numbers(host["version"]) < MIXED_SIZES_SINCE:
        text = f"ESXi {host['version']} does not support vGPUs of mixed sizes, which came with 8.0.3; update the host"
        yield Finding(STOP, "version", host["host"], text)


def _gpus(host: Data, desired: ExpectedHost) -> Iterator[Finding]:
    gpus, name = host["gpus"], host["host"]
    if not desired.words & {"vgpu", "passthrough"}:
        return
    if not gpus:
        text = "it reports no NVIDIA GPU; check the card, its power and the firmware settings, or leave the host out"
        yield Finding(STOP, "gpu", name, text)
        return
    wrong = [
        f"{gpu['name']} at {gpu['address']}"
        for gpu in gpus
        if desired.gpu_models and not any(is_of_model(gpu["name"], model) for model in desired.gpu_models)
    ]
    if wrong:
        text = f"it has {listed(wrong)}, but {' or '.join(desired.gpu_models)} is expected; correct either"
        yield Finding(STOP, "gpu", name, text)
    held = [gpu["address"] for gpu in gpus if gpu["passthrough"] != "off"]
    if held and "vgpu" in desired.words:
        yield _held(name, desired, held)
    mig = [gpu["address"] for gpu in gpus if gpu["mig"]]
    if mig:
        text = f"GPU {listed(mig)} is in MIG mode and offers MIG profiles only; nvidia-smi on the host changes that"
        yield Finding(NOTE, "mig", name, text)


def _held(name: str, desired: ExpectedHost, held: list[str]) -> Finding:
    if (desired.profile.get("passthrough") or {}).get("enabled") is False:
        text = (
            f"GPU {listed(held)} is in passthrough, so this host boots twice before it has vGPUs; allow time for that"
        )
        return Finding(NOTE, "passthrough", name, text)
    text = f"GPU {listed(held)} is in passthrough, which rules vGPUs out; set passthrough: {{enabled: false}} too"
    return Finding(STOP, "passthrough", name, text)


def _rdma(host: Data, desired: ExpectedHost) -> Iterator[Finding]:
    if not desired.words & {"pvrdma", "roce"}:
        return
    name, devices = host["host"], host["rdma_devices"]
    if not devices:
        text = "it has no RDMA device; check the card, its driver (nmlx5_core and nmlx5_rdma) and its firmware"
        yield Finding(STOP, "rdma", name, text)
        return
    links = {card["device"]: card["link"] for card in host["uplinks"]}
    idle = [device for device in devices if device["state"] not in READY or links.get(device["uplink"]) is False]
    for device in idle:
        link = f" and the link of {device['uplink']} is down" if links.get(device["uplink"]) is False else ""
        text = f"{device['device']} is {device['state']}{link}; check cable, transceiver and switch port"
        yield Finding(STOP if len(idle) == len(devices) else WARN, "rdma", name, text)


def _shared_cards(host: Data, desired: ExpectedHost) -> Iterator[Finding]:
    users = [f"{user['kind']} ({user['name']})" for user in host["rdma_users"]]
    if not users or "roce" not in desired.words:
        return
    text = f"{listed(users)} uses the RDMA cards too, and flow control applies to all their traffic"
    if desired.profile["roce"].get("acknowledge_shared_nic"):
        yield Finding(WARN, "shared_nic", host["host"], f"{text}; this is acknowledged, so inform its owners in time")
    else:
        remedy = "agree with its owners, then set acknowledge_shared_nic"
        yield Finding(STOP, "shared_nic", host["host"], f"{text}; {remedy}")


def _owners(host: Data, desired: ExpectedHost) -> Iterator[Finding]:
    """Yield findings about other owners of the host's settings, who would undo the change."""
    if host["host_profile"] and desired.profile:
        text = (
            f"the host profile {host['host_profile']} is attached and would undo the change; make it there or detach it"
        )
        yield Finding(STOP, "host_profile", host["host"], text)
