"""Whether a node can send from the memory of its GPUs over RDMA (GPUDirect): with nvidia_peermem, or with DMA-BUF.

NCCL needs one of the two: the module of NVIDIA's driver, or a driver and a kernel that export memory as DMA-BUF, which
needs NVIDIA's open kernel modules: https://docs.nvidia.com/cuda/gpudirect-rdma/.
"""

from __future__ import annotations

from typing import Any

from ..core.json_values import JsonObject

AUTO, OFF = "auto", "off"
# The largest distance between a GPU and a card at which NCCL uses it; LOC, "never", is OFF.
LEVELS = ("PIX", "PXB", "PHB", "SYS")
CHOICES = (AUTO, OFF, *LEVELS)
# NCCL before 2.5 has numbers instead of the names of levels.
NAMES_SINCE = (2, 5)
# The drivers of RDMA devices that can read the memory of a GPU; a paravirtual card or Soft-RoCE cannot.
CAPABLE = ("mlx5_core",)
# Two measurements can differ by this share without a cause.
SAME = 0.05
PEERMEM = ("nvidia_peermem", "nv_peer_mem")
_REMEDY = "run 'modprobe nvidia_peermem' on it, or install NVIDIA's open kernel modules, or set training_gdr=off"
_UNKNOWN = "whether it supports GPUDirect RDMA is unknown, because its driver did not answer"


def is_possible(found: JsonObject) -> bool | None:
    """Return whether the GPUs of a node support GPUDirect RDMA; None if unknown.

    ``found`` has ``gpudirect`` and ``dma_buf``, CUDA's attributes 116 and 124 of each GPU, and ``modules``, those of
    the kernel that matter.
    """
    supported, exported = found.get("gpudirect"), found.get("dma_buf")
    if not isinstance(supported, list) or not supported or None in supported:
        return None
    has_module = any(name in PEERMEM for name in found.get("modules") or [])
    has_export = isinstance(exported, list) and all(value == 1 for value in exported)
    return all(value == 1 for value in supported) and (has_module or has_export)


def misfit(found: JsonObject) -> str:
    """Return why a node does not support GPUDirect RDMA, with the remedy; empty if it does."""
    possible = is_possible(found)
    if possible:
        return ""
    if possible is None:
        return _UNKNOWN
    if any(value != 1 for value in found["gpudirect"]):
        return "its GPUs do not support GPUDirect RDMA, as is the case for some vGPUs: set training_gdr=off"
    return f"it has neither the kernel module nvidia_peermem nor DMA-BUF for GPUDirect RDMA: {_REMEDY}"


def facts(found: JsonObject) -> dict[str, Any]:
    """Return the facts about a node's support of GPUDirect RDMA."""
    modules = [name for name in found.get("modules") or [] if name in PEERMEM]
    return {"gpudirect": is_possible(found), "dma_buf": found.get("dma_buf"), "peer_memory_modules": modules}


def difference(with_it: float | None, without: float | None, level: str) -> str:
    """Return a sentence about two bandwidths in Gbit/s, with the setting of the faster one."""
    if not with_it or not without:
        return "GPUDirect RDMA was not compared: one of the two measurements has no bandwidth."
    measured = f"GPUDirect RDMA: {with_it:.2f} Gbit/s with it (training_gdr={level}), {without:.2f} without"
    if abs(with_it - without) < SAME * max(with_it, without):
        return f"{measured}: the difference is too small to matter."
    return f"{measured}: set training_gdr={level if with_it > without else OFF}."
