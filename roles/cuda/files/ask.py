"""Print the versions that nvcc, cuDNN and NCCL report and the devices that CUDA finds, as one line of JSON."""

from __future__ import annotations

import ctypes
import glob
import json
import re
import subprocess
import sys

NAME_LENGTH = 256
MAJOR, MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
NEWER_CUDNN, NEWER_NCCL = 90000, 10000  # from these on, a version number has one more digit


def library(pattern: str, home: str) -> ctypes.CDLL:
    """Return a library from the linker's path or the toolkit; the newest if there are several."""
    try:
        return ctypes.CDLL(pattern.replace("*", ""))
    except OSError:
        folders = (home + "/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/aarch64-linux-gnu")
        found = [path for folder in folders for path in sorted(glob.glob(folder + "/" + pattern))]
        if not found:
            raise
        return ctypes.CDLL(found[-1])


def nvcc(home: str) -> str:
    """Return the version of the compiler."""
    command = [home + "/bin/nvcc", "--version"]
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()  # noqa: S603  # its own compiler
    return re.findall(r"release ([0-9.]+)", output)[0]


def version(number: int, newer: int) -> str:
    """Return the version of an encoded number."""
    unit = 10000 if number >= newer else 1000
    return f"{number // unit}.{number % unit // 100}.{number % 100}"


def cudnn(home: str) -> str:
    """Return the version of cuDNN: 7600 is 7.6.0, 90100 is 9.1.0."""
    ask = library("libcudnn.so*", home).cudnnGetVersion
    ask.restype = ctypes.c_size_t
    return version(int(ask()), NEWER_CUDNN)


def nccl(home: str) -> str:
    """Return the version of NCCL: 2407 is 2.4.7, 22501 is 2.25.1."""
    number = ctypes.c_int()
    failed = library("libnccl.so.2*", home).ncclGetVersion(ctypes.byref(number))
    if failed:
        raise OSError(f"ncclGetVersion failed with NCCL error {failed}")
    return version(number.value, NEWER_NCCL)


def devices(_home: str) -> list[dict[str, object]]:
    """Return the devices that the driver provides to CUDA."""
    cuda = ctypes.CDLL("libcuda.so.1")
    failed = cuda.cuInit(0)
    if failed:
        raise OSError(f"cuInit failed with CUDA error {failed}")
    count = ctypes.c_int()
    cuda.cuDeviceGetCount(ctypes.byref(count))
    return [device(cuda, number) for number in range(count.value)]


def device(cuda: ctypes.CDLL, number: int) -> dict[str, object]:
    """Return the name, compute capability and memory of a device."""
    handle, name, memory = ctypes.c_int(), ctypes.create_string_buffer(NAME_LENGTH), ctypes.c_size_t()
    major, minor = ctypes.c_int(), ctypes.c_int()
    cuda.cuDeviceGet(ctypes.byref(handle), number)
    cuda.cuDeviceGetName(name, NAME_LENGTH, handle)
    cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), handle)
    cuda.cuDeviceGetAttribute(ctypes.byref(major), MAJOR, handle)
    cuda.cuDeviceGetAttribute(ctypes.byref(minor), MINOR, handle)
    return {
        "name": name.value.decode(),
        "compute_capability": f"{major.value}.{minor.value}",
        "memory_mib": memory.value // 1024**2,
    }


def main(home: str) -> None:
    """Print each version and the devices, or the reason why one cannot be read."""
    result: dict[str, object] = {}
    for name, ask in (("nvcc", nvcc), ("cudnn", cudnn), ("nccl", nccl), ("devices", devices)):
        try:
            result[name] = ask(home)
        except (OSError, IndexError, AttributeError, subprocess.CalledProcessError) as error:
            result[name + "_why"] = str(error)
    sys.stdout.write(json.dumps(result, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
