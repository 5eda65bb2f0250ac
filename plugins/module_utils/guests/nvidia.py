"""The driver, GPUs, licences and CUDA of a node, from the output of NVIDIA's programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..core.json_values import JsonObject
from .gpu_report import GONE

GPU = re.compile(r"^GPU ([0-9A-Fa-f:.]+)$", re.MULTILINE)
# The title of this section was "GRID Licensed Product" in drivers up to 2020.
LICENCE_TITLES = ("vGPU Software Licensed Product", "GRID Licensed Product")
LICENSED = re.compile(r"Licensed\b")
UUID = re.compile(r"\(UUID: ([^)\s]+)\)")


def report(output: str) -> dict[str, Any]:
    """Return the driver and the GPUs from the output of ``nvidia-smi -q``, without the expiry of licences."""
    head, *parts = GPU.split(output)
    fields = dict(_fields(head.split("\n")))
    gpus = [_gpu(address, text.split("\n")) for address, text in zip(parts[::2], parts[1::2])]
    return {"driver": fields.get("Driver Version", ""), "cuda_at_most": fields.get("CUDA Version", ""), "gpus": gpus}


def _fields(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield name and value of each line with both, without a regular expression, which is quadratic in blanks."""
    for line in lines:
        name, _colon, value = line.partition(":")
        if name.strip() and value.startswith(" "):
            yield name.strip(), value.strip()


def _gpu(address: str, lines: Sequence[str]) -> dict[str, Any]:
    """Return one GPU; if a field occurs twice, the first value counts."""
    fields: dict[str, str] = {}
    for name, value in _fields(lines):
        fields.setdefault(name, value)
    title = next((at for at, line in enumerate(lines) if line.strip() in LICENCE_TITLES), len(lines))
    licence = dict(_fields(lines[title + 1 : title + 3]))
    return {
        "address": address.lower(),
        "name": fields.get("Product Name", ""),
        "uuid": fields.get("GPU UUID", ""),
        "mode": fields.get("Virtualization Mode", fields.get("Virtualization mode", "")),
        "persistent": fields.get("Persistence Mode") == "Enabled",
        "licensed_product": licence.get("Product Name", ""),
        "licence": _without_expiry(licence.get("License Status", "")),
        "error": next((text for text in GONE if text in fields.values()), ""),
    }


def _without_expiry(status: str) -> str:
    """Return a licence status without its expiry, which changes."""
    before, _expiry, after = status.partition("(Expiry:")
    return before.rstrip() + after.rpartition(")")[2] if ")" in after else status


def uuids(output: str) -> list[str]:
    """Return the UUIDs of GPUs and of GPU instances in the output of ``nvidia-smi -L``."""
    return sorted(UUID.findall(output))


def driver_misfits(found: JsonObject, desired: JsonObject) -> list[str]:
    """Return a sentence for each difference.

    The keys of ``desired`` are ``driver``, and optionally ``gpus`` (their number), ``licensed`` and ``persistent``.
    """
    sentences = []
    if found["driver"] != desired["driver"]:
        sentences.append(f"The running driver is {found['driver'] or 'unknown'}, not {desired['driver']}.")
    count = len(found["gpus"])
    if count != desired.get("gpus", count) or not count:
        sentences.append(f"nvidia-smi sees {count} GPUs, not {desired.get('gpus', 'at least one')}.")
    for gpu in found["gpus"]:
        who = f"{gpu['name']} at {gpu['address']}"
        if gpu["error"]:
            sentences.append(f"nvidia-smi reports {gpu['error']!r} for {who}: reset the GPU, or restart the worker.")
        if desired.get("licensed") and not LICENSED.match(gpu["licence"]):
            status = gpu["licence"] or "unknown"
            sentences.append(
                f"The licence status of {who} is {status}: the driver slows down a vGPU without a licence."
            )
        if desired.get("persistent") and not gpu["persistent"]:
            sentences.append(f"The persistence mode of {who} is off: the GPU does not stay initialised.")
    return sentences


def cuda_misfits(found: JsonObject, desired: Mapping[str, str]) -> list[str]:
    """Return a sentence for each of ``nvcc``, ``cudnn`` and ``nccl`` that does not report the desired version.

    cuDNN and NCCL report three numbers; the version in a stack may have a fourth.
    """
    sentences = []
    for part, version in desired.items():
        reported = found.get(part)
        if not reported:
            sentences.append(f"{part} reports no version: {found.get(part + '_why') or 'it is not installed'}.")
        elif version.split(".")[:3] != str(reported).split(".")[: len(version.split(".")[:3])]:
            sentences.append(f"{part} reports version {reported}, not {version}.")
    return sentences


def device_misfits(devices: Sequence[Mapping[str, object]], why: str, count: int) -> list[str]:
    """Return a sentence if CUDA sees another number of devices."""
    if len(devices) == count:
        return []
    return [f"CUDA sees {len(devices)} devices, not {count}{': ' + why if why else ''}."]
