"""The utilization of a node's GPUs, from the output of nvidia-smi; a value that it does not report is unknown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...core.names import printable
from ...guests.gpu_report import GONE

# A watch reads the GPUs every five seconds; an older reading is out of date.
VALID_SECONDS = 30.0
MOST_GPUS, MOST_CHARACTERS = 64, 200
# A row of: index, name, utilization in percent, used and total memory in MiB. Instead of a number, the program prints
# [N/A] (also as [n/a]), [Not Supported], [Unknown Error], [GPU is lost], ERR! and others:
# https://github.com/utkuozdemir/nvidia_gpu_exporter/issues/68, https://github.com/Quake4/MindMiner/issues/627.
FIELDS, _INDEX = 5, re.compile(r"\d{1,3}", re.ASCII)
_NUMBER = re.compile(r"\d{1,9}(?:\.\d{1,9})?", re.ASCII)
MIB = 1 << 20


class GpuUse(NamedTuple):
    """One GPU: its utilization in percent, and its memory in bytes; None is unknown."""

    number: int
    name: str
    busy: float | None
    used: int | None
    total: int | None


class NodeGpus(NamedTuple):
    """The GPUs of one node, and the reason why some are missing; empty if complete."""

    node: str
    gpus: Sequence[GpuUse]
    why: str


def gpus_of(views: Mapping[str, object], now: float) -> list[NodeGpus]:
    """Return the GPUs of the nodes that have nvidia-smi, from the view that a watch keeps of each node."""
    read = (
        (node, view["gpus"]) for node, view in sorted(views.items()) if isinstance(view, Mapping) and "gpus" in view
    )
    return [_node(node, reading, now) for node, reading in read]


def _node(node: str, reading: Any, now: float) -> NodeGpus:
    try:
        at, text, code = float(reading[0]), str(reading[1]["text"]), reading[1].get("code")
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError):
        return NodeGpus(node, (), "the reading is not valid")
    if not now - at <= VALID_SECONDS:
        return NodeGpus(node, (), f"no reading for {now - at:.0f} s")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    gpus = [(line, _gpu(line.split(","))) for line in lines]
    known, others = [gpu for _line, gpu in gpus if gpu], [line for line, gpu in gpus if not gpu]
    others += [f"GPU {gpu.number}: {text}" for line, gpu in gpus for text in GONE if gpu and f"[{text}]" in line]
    why = others[0] if others else "" if code == 0 and known else f"nvidia-smi ended with exit code {code}"
    return NodeGpus(node, tuple(known[:MOST_GPUS]), printable(why[:MOST_CHARACTERS]))


def _gpu(fields: Sequence[str]) -> GpuUse | None:
    """Return the GPU of a row, or None for another line, such as an error."""
    if len(fields) < FIELDS or not _INDEX.fullmatch(fields[0]):
        return None
    name, (busy, used, total) = ",".join(fields[1:-3]).strip(), fields[-3:]
    share = _number(busy)
    share = share if share is None or share <= 100 else None
    return GpuUse(int(fields[0]), printable(name[:MOST_CHARACTERS]), share, _bytes(used), _bytes(total))


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text.strip()) else None


def _bytes(text: str) -> int | None:
    number = _number(text)
    return None if number is None else int(number * MIB)


def mean_use(nodes: Sequence[NodeGpus]) -> float | None:
    """Return the mean utilization of the GPUs that report it; None if none does."""
    known = [gpu.busy for node in nodes for gpu in node.gpus if gpu.busy is not None]
    return sum(known) / len(known) if known else None
