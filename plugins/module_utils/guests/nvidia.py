# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The driver of a node, its GPUs and their licences, and its CUDA, from the output of NVIDIA's programs."""

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
    """Driver and GPUs from the output of ``nvidia-smi -q``; the expiry of a licence, which changes, is left out."""
    head, *parts = GPU.split(said)
    fields = dict(FIELD.findall(head))
    gpus = [_gpu(address, text) for address, text in zip(parts[::2], parts[1::2])]
    return {"driver": fields.get("Driver Version", ""), "cuda_at_most": fields.get("CUDA Version", ""), "gpus": gpus}


def _gpu(address: str, text: str) -> dict[str, Any]:
    """One GPU; of a field that occurs twice the first one counts."""
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
    """The UUIDs of GPUs and of GPU instances in the output of ``nvidia-smi -L``."""
    return sorted(UUID.findall(said))


def driver_misfits(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """A sentence for each difference.

    Keys of ``wanted`` are ``driver``, and optionally ``gpus`` (how many), ``licensed`` and ``persistent``.
    """
    sentences = []
    if found["driver"] != wanted["driver"]:
        sentences.append(f"The running driver is {found['driver'] or 'unknown'}, not {wanted['driver']}.")
    count = len(found["gpus"])
    if count != wanted.get("gpus", count) or not count:
        sentences.append(f"nvidia-smi sees {count} GPUs, not {wanted.get('gpus', 'at least one')}.")
    for gpu in found["gpus"]:
        who = f"{gpu['name']} at {gpu['address']}"
        if wanted.get("licensed") and not LICENSED.match(gpu["licence"]):
            status = gpu["licence"] or "unknown"
            sentences.append(
                f"The licence status of {who} is {status}: the driver slows down a vGPU without a licence."
            )
        if wanted.get("persistent") and not gpu["persistent"]:
            sentences.append(f"The persistence mode of {who} is off: the GPU does not stay initialised.")
    return sentences


def cuda_misfits(found: Mapping[str, Any], wanted: Mapping[str, str]) -> list[str]:
    """A sentence for each of ``nvcc``, ``cudnn`` and ``nccl`` that does not report the wanted version.

    cuDNN and NCCL report three numbers, a stack may name a fourth.
    """
    sentences = []
    for part, version in wanted.items():
        reported = found.get(part)
        if not reported:
            sentences.append(f"{part} reports no version: {found.get(part + '_why') or 'it is not installed'}.")
        elif version.split(".")[:3] != str(reported).split(".")[: len(version.split(".")[:3])]:
            sentences.append(f"{part} reports version {reported}, not {version}.")
    return sentences


def device_misfits(devices: Sequence[Mapping[str, Any]], why: str, count: int) -> list[str]:
    """A sentence if CUDA sees another number of devices."""
    if len(devices) == count:
        return []
    return [f"CUDA sees {len(devices)} devices, not {count}{': ' + why if why else ''}."]
