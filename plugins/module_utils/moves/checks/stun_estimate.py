"""The stun of a worker with virtual GPUs during a move, from the server's estimate or VMware's tables; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# The worst case of one machine at a time over 10 Gb/s: seconds by gigabytes of framebuffer and of the machine's memory.
# https://docs.vmware.com/en/VMware-vSphere/7.0/com.vmware.vsphere.vcenterhost.doc/GUID-8FE6A0DA-49E9-472B-815B-D630CF2014AD.html
TABLE_MEGABITS = 10_000
MEMORY_GB = (4, 8, 16, 32)
WORST: dict[int, Sequence[float]] = {
    1: (5, 6, 8, 12),
    2: (7, 9, 11, 15),
    4: (13, 14, 16, 21),
    8: (24, 25, 28, 32),
    16: (47, 48, 50, 54),
    32: (91, 92, 95, 99),
}


@dataclass(frozen=True)
class Vgpu:
    """A virtual GPU: its framebuffer, and the server's estimates of its stun for some bandwidths of the move."""

    gigabytes: int
    estimates: Sequence[Mapping[str, int]] = ()


@dataclass(frozen=True)
class Estimate:
    """The seconds, None if unknown; their source; whether the stun may be longer than the values in the table."""

    seconds: float | None
    source: str
    at_least: bool = False


def estimate(vgpus: Sequence[Vgpu], memory_gb: float, *, megabits: int | None = None) -> Estimate:
    """Return the stun of a machine: one virtual GPU after the other, with the memory that changes in the meantime."""
    bandwidth = megabits or TABLE_MEGABITS
    usable = [_usable(vgpu.estimates, bandwidth) for vgpu in vgpus]
    if usable and all(usable):
        slowest = min(entry["megabits"] for entry in usable)
        return Estimate(float(sum(entry["seconds"] for entry in usable)), f"the server's estimate at {slowest} Mb/s")
    framebuffer = sum(vgpu.gigabytes for vgpu in vgpus) if all(vgpu.gigabytes for vgpu in vgpus) else 0
    slower, at = max(1.0, TABLE_MEGABITS / bandwidth), f"at {bandwidth} Mb/s"
    size, column = _next(WORST, framebuffer), _next(MEMORY_GB, memory_gb) or MEMORY_GB[-1]
    if not size:
        return Estimate(None, "neither the server nor VMware's table has an estimate")
    source = f"VMware's worst case of vSphere 7 for {size} GB of framebuffer and {column} GB of memory {at}"
    seconds = WORST[size][MEMORY_GB.index(column)] * slower
    return Estimate(seconds, source, at_least=memory_gb > column)


def _usable(estimates: Sequence[Mapping[str, int]], bandwidth: int) -> Mapping[str, int]:
    """Return the server's estimate for the greatest available bandwidth; empty if it has none."""
    fitting = [entry for entry in estimates if entry["megabits"] <= bandwidth]
    return max(fitting, key=lambda entry: entry["megabits"]) if fitting else {}


def _next(sizes: Mapping[int, object] | Sequence[int], needed: float) -> int:
    """Return the smallest sufficient size, or 0 if no size suffices or is needed."""
    return min((size for size in sizes if 0 < needed <= size), default=0)
