"""The packages of the stack bare-2019 with NVIDIA's names and versions, and newer ones that must not be installed."""

from __future__ import annotations

from dataclasses import dataclass

CUDA, LEARNING = "cuda", "machine-learning"


@dataclass(frozen=True)
class Package:
    """A package whose library or program reports a version as NVIDIA's does."""

    repository: str
    name: str
    version: str
    needs: str = ""
    # A library as (file, function, number), whose function returns the number; or a program as (path, text).
    library: tuple[str, str, int] | None = None
    program: tuple[str, str] | None = None


def nvcc(folder: str, release: str) -> tuple[str, str]:
    """Return a program that prints the version of that compiler release."""
    message = f"Cuda compilation tools, release {release}, V{release}.130"
    return (
        f"/usr/local/{folder}/bin/nvcc",
        f"#!/bin/sh\necho 'nvcc: NVIDIA (R) Cuda compiler driver'\necho '{message}'\n",
    )


def of_debian() -> list[Package]:
    """Return the packages of NVIDIA's repositories for Ubuntu."""
    return [
        Package(CUDA, "cuda-toolkit-10-0", "10.0.130-1", program=nvcc("cuda-10.0", "10.0")),
        Package(CUDA, "cuda-toolkit-10-0", "10.0.326-1", program=nvcc("cuda-10.0", "10.1")),
        *_libraries("7.6.0.64-1+cuda10.0", 7600, "2.4.7-1+cuda10.0", 2407, "-dev", "libnccl2"),
        *_libraries("7.6.5.32-1+cuda10.2", 7605, "2.8.4-1+cuda11.2", 2804, "-dev", "libnccl2"),
    ]


def of_redhat() -> list[Package]:
    """Return the packages of NVIDIA's repositories for RHEL."""
    return [
        Package(CUDA, "cuda-toolkit-10-0", "10.0.130-1", program=nvcc("cuda-10.0", "10.0")),
        Package(CUDA, "cuda-toolkit-10-0", "10.0.326-1", program=nvcc("cuda-10.0", "10.1")),
        *_libraries("7.6.0.64-1.cuda10.0", 7600, "2.4.7-1+cuda10.0", 2407, "-devel", "libnccl"),
        *_libraries("7.6.5.32-1.cuda10.2", 7605, "2.8.4-1+cuda11.2", 2804, "-devel", "libnccl"),
    ]


def _libraries(cudnn: str, cudnn_number: int, nccl: str, nccl_number: int, devel: str, runtime: str) -> list[Package]:
    """Return cuDNN and NCCL, each with its development package."""
    return [
        Package(LEARNING, "libcudnn7", cudnn, library=("libcudnn.so.7", "cudnnGetVersion", cudnn_number)),
        Package(LEARNING, f"libcudnn7{devel}", cudnn, needs="libcudnn7"),
        Package(LEARNING, runtime, nccl, library=("libnccl.so.2", "ncclGetVersion", nccl_number)),
        Package(LEARNING, f"libnccl{devel}", nccl, needs=runtime),
    ]
