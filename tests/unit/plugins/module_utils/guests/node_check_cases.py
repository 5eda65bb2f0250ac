"""Cases of the checks of GPUs: kind, found and desired without a misfit; then changes, and words of the misfit."""

from __future__ import annotations

from typing import Any

from .test_gpu_report import dump

HEALTHY = dump("blackwell-v13")
OF_GPUS: list[tuple[str, Any, Any, dict[str, Any], dict[str, Any], str]] = [
    (
        "gpu_health",
        {"smi": HEALTHY, "failure": None, "log": []},
        {"idle": False},
        {"smi": None, "failure": "No devices were found"},
        {},
        "nvidia-smi fails (No devices were found): drain the node",
    ),
    (
        "gpu_health",
        {"smi": None, "failure": None, "log": None},
        {"idle": True},
        {"smi": HEALTHY.replace("<gpu_recovery_action>None", "<gpu_recovery_action>Reset")},
        {},
        "(NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition): its driver asks for the recovery 'Reset'",
    ),
    (
        "gpudirect",
        {"gpudirect": [1], "dma_buf": [0], "modules": ["nvidia_peermem"]},
        {},
        {"modules": []},
        {},
        "It has neither the kernel module nvidia_peermem nor DMA-BUF for GPUDirect RDMA: run 'modprobe nvidia_peermem'",
    ),
    (
        "memory_pools",
        {"pools": [1, 1], "nccl": 23007},
        {},
        {"pools": [1, 0]},
        {},
        "NCCL 2.30.7 of the job needs CUDA's memory pools, and GPU 1 has none",
    ),
]
