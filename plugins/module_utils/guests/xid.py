# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""GPU errors in the kernel log: Xid numbers of NVIDIA's driver, and their remedies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# [1843.308145] NVRM: Xid (PCI:0000:b3:00): 79, pid=1234, name=python3, GPU has fallen off the bus.
# The number is in seconds of the kernel's clock with dmesg, and since 1970 with journalctl -o short-unix.
_LINE = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]{4,20})\): (\d{1,4})(?:, )?(.*)", re.ASCII)
_SECONDS = re.compile(r"\[?\s*(\d{1,12}(?:\.\d{1,9})?)\]?\s", re.ASCII)
# Newer drivers report a lost GPU in several lines, without a number: https://github.com/NVIDIA/NVSentinel/issues/155
_GPU, _GONE, GONE = re.compile(r"NVRM: The NVIDIA GPU ([0-9A-Fa-f:.]{4,20})"), "NVRM: fallen off the bus", 79
# https://docs.nvidia.com/deploy/xid-errors/: errors of the GPU, its memory, links and firmware, by their remedy.
RESET = "drain the node, then reset the GPU or restart the worker"
REPLACE = "take the GPU out of service, and have the host's vendor check it"
_REMEDIES = {
    **dict.fromkeys((46, 48, 61, 62, 63, 94, 95, 109, 110, 119, 120, 136, 140, 143, 154, 171, 172), RESET),
    **dict.fromkeys((64, 74, 79, 121, 144, 145, 146, 147, 148, 149, 150, 155, 156, 158), REPLACE),
}
# A program caused these: a wrong address, an illegal instruction, the end of a process.
_OF_PROGRAMS = (8, 13, 31, 43, 45, 68, 69)


class Xid(NamedTuple):
    """One error: its time as the log has it, the PCI address of its GPU, its number and its text."""

    at: float
    address: str
    number: int
    text: str

    @property
    def remedy(self) -> str | None:
        """Return the remedy of an error of the GPU; None for one that a program caused or the link has repaired."""
        return None if "Nonfatal" in self.text else _REMEDIES.get(self.number)

    @property
    def is_of_program(self) -> bool:
        """Return whether a program causes such an error, and not the GPU."""
        return self.number in _OF_PROGRAMS


def xids(lines: Iterable[str], since: float = 0.0) -> Iterator[Xid]:
    """Yield the errors since a time in lines of the kernel log; a line without a time belongs to the one before."""
    at, gpu = 0.0, ""
    for line in lines:
        seconds = _SECONDS.match(line)
        at = float(seconds[1]) if seconds else at
        match, named = _LINE.search(line), _GPU.search(line)
        gpu = named[1] if named else gpu
        if at >= since and match:
            yield Xid(at, short(match[1]), int(match[2]), match[3].strip())
        elif at >= since and _GONE in line:
            yield Xid(at, short(gpu), GONE, "GPU has fallen off the bus")


def short(address: str) -> str:
    """Return a PCI address as DOMAIN:BUS:DEVICE, with four digits of the domain; the kernel names no function."""
    parts = address.lower().partition(".")[0].split(":")
    domain = parts[0] if len(parts) > 2 else "0"
    return ":".join([f"{int(domain or '0', 16):04x}", *parts[-2:]])
