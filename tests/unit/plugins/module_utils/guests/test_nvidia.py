"""The output of nvidia-smi and CUDA on a node.

The outputs are put together from public ones, shortened: heads and GPUs as in NVIDIA's documentation on the licensing
of vGPUs (docs.nvidia.com/ai-enterprise, release 8, infra-software/vgpu/licensing), the states of licences as in
NVIDIA/gpu-operator#628 (restricted), gpu-operator#220 (without a word in brackets) and the documentation of the NREC
cloud (with expiry), and the older title of the section as in the documentation of Amazon EC2 on GRID drivers.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from plugins.module_utils.guests.nvidia import cuda_misfits, device_misfits, driver_misfits, report, uuids

HEAD = """
==============NVSMI LOG==============

Timestamp                                 : Tue Jun 17 16:49:09 2025
Driver Version                            : {driver}
CUDA Version                              : {cuda}

Attached GPUs                             : {count}
"""
GPU = """GPU 00000000:02:0{number}.0
    Product Name                          : {name}
    Product Brand                         : NVIDIA Virtual Compute Server
    Display Mode                          : Disabled
    Persistence Mode                      : {persistence}
    MIG Mode
        Current                           : N/A
        Pending                           : N/A
    GPU UUID                              : GPU-b3ce1f12-0000-11f0-9d1c-0123456789a{number}
    GPU Virtualization Mode
        Virtualization Mode               : VGPU
        Host VGPU Mode                    : N/A
{licence}    IBMNPU
        Relaxed Ordering Mode             : N/A
    Processes                             : None
"""
LICENCE = """    {title}
        Product Name                      : NVIDIA Virtual Compute Server
        License Status                    : {status}
"""
NEW, OLD = "vGPU Software Licensed Product", "GRID Licensed Product"


def nvidia_smi(*statuses: str, title: str = NEW, driver: str = "580.65.06", persistence: str = "Enabled") -> str:
    """Return the output of nvidia-smi for GPUs with these licence states; an empty state has no section."""
    gpus = [
        GPU.format(
            number=number,
            name="GRID T4-16C",
            persistence=persistence,
            licence=LICENCE.format(title=title, status=status) if status else "",
        )
        for number, status in enumerate(statuses, 1)
    ]
    return HEAD.format(driver=driver, cuda="13.0", count=len(gpus)) + "\n".join(gpus)


def wrong(text: str, **desired: Any) -> list[str]:
    return driver_misfits(report(text), {"driver": "580.65.06", **desired})


def test_driver_gpus_and_licences_are_read() -> None:
    found = report(nvidia_smi("Licensed (Expiry: 2025-6-18 11:32:22 GMT)", "Unlicensed (Restricted)"))
    assert (found["driver"], found["cuda_at_most"], len(found["gpus"])) == ("580.65.06", "13.0", 2)
    assert found["gpus"][0] == {
        "address": "00000000:02:01.0",
        "name": "GRID T4-16C",
        "uuid": "GPU-b3ce1f12-0000-11f0-9d1c-0123456789a1",
        "mode": "VGPU",
        "persistent": True,
        "licensed_product": "NVIDIA Virtual Compute Server",
        "licence": "Licensed",
        "error": "",
    }
    assert found["gpus"][1]["licence"] == "Unlicensed (Restricted)"


@pytest.mark.parametrize("title", [NEW, OLD])
@pytest.mark.parametrize(
    "status", ["Licensed", "Licensed (Expiry: Permanent)", "Licensed (Expiry: 2025-1-31 11:32:22 GMT)"]
)
def test_a_licensed_gpu_has_no_misfit(title: str, status: str) -> None:
    assert wrong(nvidia_smi(status, title=title), gpus=1, licensed=True, persistent=True) == []


@pytest.mark.parametrize("status", ["Unlicensed", "Unlicensed (Restricted)", "Unlicensed (Unrestricted)", ""])
def test_a_gpu_without_a_licence_is_named(status: str) -> None:
    sentences = wrong(nvidia_smi("Licensed", status), licensed=True)
    assert len(sentences) == 1
    assert f"GRID T4-16C at 00000000:02:02.0 is {status or 'unknown'}:" in sentences[0]
    assert wrong(nvidia_smi(status)) == []


def test_a_lost_gpu_is_a_misfit() -> None:
    lost = nvidia_smi("Licensed").replace("Virtualization Mode ", "Used : GPU is lost\n    Virtualization Mode ", 1)
    assert wrong(lost) == [
        "nvidia-smi reports 'GPU is lost' for GRID T4-16C at 00000000:02:01.0: reset the GPU, or restart the worker."
    ]


def test_names_wrong_driver_missing_gpu_and_disabled_persistence() -> None:
    assert wrong(nvidia_smi("Licensed", driver="570.1")) == ["The running driver is 570.1, not 580.65.06."]
    assert wrong(nvidia_smi("Licensed"), gpus=2) == ["nvidia-smi sees 1 GPUs, not 2."]
    assert wrong(nvidia_smi()) == ["nvidia-smi sees 0 GPUs, not at least one."]
    assert (
        "is off: the GPU does not stay initialised"
        in wrong(nvidia_smi("Licensed", persistence="Disabled"), persistent=True)[0]
    )
    assert wrong("No devices were found") == [
        "The running driver is unknown, not 580.65.06.",
        "nvidia-smi sees 0 GPUs, not at least one.",
    ]


def test_facts_omit_the_expiry_of_a_licence() -> None:
    first, second = (nvidia_smi(f"Licensed (Expiry: 2025-6-{day} 11:32:22 GMT)") for day in (18, 19))
    assert report(first) == report(second)


DESIRED = {"nvcc": "10.0", "cudnn": "7.6.0.64", "nccl": "2.4.7"}


@pytest.mark.parametrize(
    ("reported", "sentences"),
    [
        ({"nvcc": "10.0", "cudnn": "7.6.0", "nccl": "2.4.7"}, []),
        ({"nvcc": "10.1", "cudnn": "7.6.0", "nccl": "2.4.7"}, ["nvcc reports version 10.1, not 10.0."]),
        ({"nvcc": "10.0", "cudnn": "7.6.5", "nccl": "2.4.8"}, [
            "cudnn reports version 7.6.5, not 7.6.0.64.",
            "nccl reports version 2.4.8, not 2.4.7.",
        ]),
        ({"nvcc": "10.0", "cudnn": "7.6.0", "nccl_why": "no such file"}, ["nccl reports no version: no such file."]),
    ],
)  # fmt: skip
def test_parts_of_cuda_are_compared_with_their_reports(reported: dict[str, str], sentences: list[str]) -> None:
    assert cuda_misfits(reported, DESIRED) == sentences


def test_a_device_invisible_to_cuda_is_a_fault() -> None:
    assert device_misfits([], "cuInit failed with CUDA error 100", 1) == [
        "CUDA sees 0 devices, not 1: cuInit failed with CUDA error 100."
    ]
    assert device_misfits([{"name": "GRID T4-16C"}], "", 1) == []
    assert device_misfits([{}, {}], "", 1) == ["CUDA sees 2 devices, not 1."]


def test_gpus_and_their_instances_are_listed_by_uuid() -> None:
    message = (
        "GPU 0: GRID T4-16C (UUID: GPU-b3ce1f12-0000-11f0-9d1c-0123456789a1)\n"
        "GPU 1: NVIDIA A30 (UUID: GPU-0)\n  MIG 1g.6gb Device 0: (UUID: MIG-1)\n"
    )
    assert uuids(message) == ["GPU-0", "GPU-b3ce1f12-0000-11f0-9d1c-0123456789a1", "MIG-1"]
    assert uuids("No devices found.\n") == []


BLANKS = " " * 8_000


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}{BLANKS}x",
        f"GPU 00000000:02:01.0\n{BLANKS}x",
        f"GPU 00000000:02:01.0\n {NEW}\n {BLANKS}x",
        nvidia_smi(f"Licensed{BLANKS}x"),
    ],
)
def test_blanks_are_read_in_linear_time(text: str) -> None:
    started = time.process_time()
    report(text)
    assert time.process_time() - started < 1
