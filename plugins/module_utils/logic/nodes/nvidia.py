# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""What NVIDIA's programs say of a node: its driver, its GPUs and their licence, and its CUDA."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

GPU = re.compile(r"^GPU ([0-9A-Fa-f:.]+)$", re.MULTILINE)
FIELD = re.compile(r"^ *([^:\n]+?) *: (.*?)\s*$", re.MULTILINE)
# Its title was another one up to the drivers of 2020.
LICENCE = re.compile(r"^ *(?:vGPU Software|GRID) Licensed Product *\n((?: +[^:\n]+? *: .*\n?){1,2})", re.MULTILINE)
LICENSED = re.compile(r"Licensed\b")
UUID = re.compile(r"\(UUID: ([^)\s]+)\)")


def report(said: str) -> dict[str, Any]:
    """What ``nvidia-smi -q`` tells, in our words; its expiry is left out, as it changes all the time."""
    head, *parts = GPU.split(said)
    fields = dict(FIELD.findall(head))
    gpus = [_gpu(address, text) for address, text in zip(parts[::2], parts[1::2])]
    return {"driver": fields.get("Driver Version", ""), "cuda_at_most": fields.get("CUDA Version", ""), "gpus": gpus}


def _gpu(address: str, text: str) -> dict[str, Any]:
    """One GPU; a field that stands twice counts where it stands first."""
    fields: dict[str, str] = {}
    for name, value in FIELD.findall(text):
        fields.setdefault(name, value)
    found = LICENCE.search(text)
    licence = dict(FIELD.findall(found.group(1))) if found else {}
    return {
        "address": address.lower(),
        "name": fields.get("Product Name", ""),
        "uuid": fields.get("GPU UUID", ""),
        "mode": fields.get("Virtualization Mode", fields.get("Virtualization mode", "")),
        "persistent": fields.get("Persistence Mode") == "Enabled",
        "licensed_product": licence.get("Product Name", ""),
        "licence": re.sub(r" *\(Expiry:.*\)", "", licence.get("License Status", "")),
    }


def uuids(said: str) -> list[str]:
    """The GPUs, and the parts of them, that ``nvidia-smi -L`` lists."""
    return sorted(UUID.findall(said))


def driver_misfits(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """A sentence for each thing that is not as it should be.

    Wanted are ``driver``, and where they are named ``gpus``, their number, ``licensed`` and ``persistent``.
    """
    sentences = []
    if found["driver"] != wanted["driver"]:
        sentences.append(f"The driver that runs is {found['driver'] or 'unknown'}, not {wanted['driver']}.")
    count = len(found["gpus"])
    if count != wanted.get("gpus", count) or not count:
        sentences.append(f"nvidia-smi sees {count} GPUs, not {wanted.get('gpus', 'at least one')}.")
    for gpu in found["gpus"]:
        who = f"{gpu['name']} at {gpu['address']}"
        if wanted.get("licensed") and not LICENSED.match(gpu["licence"]):
            told = gpu["licence"] or "not told"
            sentences.append(f"The licence of {who} is {told}: without one it is slowed down after some minutes.")
        if wanted.get("persistent") and not gpu["persistent"]:
            sentences.append(f"{who} does not stay initialised: its persistence mode is off.")
    return sentences


def cuda_misfits(found: Mapping[str, Any], wanted: Mapping[str, str]) -> list[str]:
    """A sentence for each of ``nvcc``, ``cudnn`` and ``nccl`` whose own word is not the wanted version.

    cuDNN and NCCL tell three numbers, a stack may name a fourth.
    """
    sentences = []
    for part, version in wanted.items():
        told = found.get(part)
        if not told:
            sentences.append(f"{part} does not answer: {found.get(part + '_why') or 'it is not there'}.")
        elif version.split(".")[:3] != str(told).split(".")[: len(version.split(".")[:3])]:
            sentences.append(f"{part} says that it is {told}, not {version}.")
    return sentences


def device_misfits(devices: Sequence[Mapping[str, Any]], why: str, count: int) -> list[str]:
    """A sentence if CUDA does not see as many devices as there should be."""
    if len(devices) == count:
        return []
    return [f"CUDA sees {len(devices)} devices, not {count}{': ' + why if why else ''}."]
