"""The bus bandwidth of all_reduce between two ranks, with the NCCL of the stack and no compiler.

The figure is that of nccl-tests: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md. The values of
ncclFloat and ncclSum are those of nccl.h.
"""

import ctypes
import glob
import os
import sysconfig
import time

# A message of all_reduce has the size of a window of MPI.
MESSAGES, WORD_BYTES = 8, 4
CUDA_NAMES = ("libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so.10.0", "libcudart.so")


class UniqueId(ctypes.Structure):
    """The identifier of a communicator, which NCCL takes by value."""

    _fields_ = [("internal", ctypes.c_char * 128)]


class NcclPair:
    """The bus bandwidth of all_reduce over two GPUs, the first one of each node."""

    FLOAT, SUM = 7, 0

    def __init__(self, mpi, options, stall):
        self._mpi, self._stall = mpi, stall
        self._seconds, self._repeats, self._bytes = options["seconds"], options["repeats"], options["bytes"] * MESSAGES
        self._cuda = _library("nvidia/*/lib/libcudart.so.*", CUDA_NAMES)
        self._nccl = _library("nvidia/nccl/lib/libnccl.so.2", ("libnccl.so.2", "libnccl.so"))
        self._nccl.ncclGetErrorString.restype = ctypes.c_char_p
        self._cuda.cudaGetErrorString.restype = ctypes.c_char_p
        self._call(self._cuda.cudaSetDevice, 0)
        self._sent, self._received = ctypes.c_void_p(), ctypes.c_void_p()
        for pointer in (self._sent, self._received):
            self._call(self._cuda.cudaMalloc, ctypes.byref(pointer), ctypes.c_size_t(self._bytes))

    def _call(self, function, *arguments):
        error = function(*arguments)
        if error:
            library = self._nccl if function.__name__.startswith("nccl") else self._cuda
            words = getattr(library, function.__name__[:4] + "GetErrorString")(error).decode()
            raise RuntimeError(f"{function.__name__} returned {error}: {words}")

    def measure(self, peer):
        """Return the bus bandwidth of a pair, which is that of its algorithm: 2 * (n - 1) / n is 1 for two ranks."""
        communicator = self._communicator(peer)
        runs = self._runs(communicator, peer)
        rates = [self._bytes * runs * 8 / self._time(communicator, runs) / 1e9 for _repeat in range(self._repeats)]
        self._call(self._nccl.ncclCommDestroy, communicator)
        return {"gbits": rates, "latency_us": None, "sent": self._bytes * runs * self._repeats}

    def _communicator(self, peer):
        identifier = UniqueId()
        word = (ctypes.c_char * ctypes.sizeof(identifier)).from_buffer(identifier)
        if self._mpi.rank < peer:
            self._call(self._nccl.ncclGetUniqueId, ctypes.byref(identifier))
            self._mpi.send(word, peer)
        else:
            self._mpi.receive(word, peer)
        communicator = ctypes.c_void_p()
        index = int(self._mpi.rank > peer)
        self._call(self._nccl.ncclCommInitRank, ctypes.byref(communicator), 2, identifier, index)
        return communicator

    def _runs(self, communicator, peer):
        """Return how often to run all_reduce in the given seconds: the lower rank decides after a warm-up."""
        self._time(communicator, 2)
        number = (ctypes.c_char * 8)()
        if self._mpi.rank < peer:
            runs = max(1, min(100000, int(self._seconds / max(1e-6, self._time(communicator, 2) / 2))))
            number.raw = runs.to_bytes(8, "big")
            self._mpi.send(number, peer)
        else:
            self._time(communicator, 2)
            self._mpi.receive(number, peer)
        return int.from_bytes(number.raw, "big")

    def _time(self, communicator, runs):
        begin, count = time.perf_counter(), ctypes.c_size_t(self._bytes // WORD_BYTES)
        for _run in range(runs):
            what = (self._sent, self._received, count, self.FLOAT, self.SUM, communicator, None)
            self._call(self._nccl.ncclAllReduce, *what)
        self._call(self._cuda.cudaStreamSynchronize, None)
        self._stall.begin()
        return time.perf_counter() - begin


def _library(pattern, names):
    """Return a library of the interpreter's packages, or else of the system."""
    packaged = sorted(glob.glob(os.path.join(sysconfig.get_paths()["purelib"], pattern)), reverse=True)
    loaded = next((library for library in map(_loaded, [*packaged, *names]) if library), None)
    if not loaded:
        raise RuntimeError(f"none of these libraries can be loaded: {', '.join([*packaged, *names])}")
    return loaded


def _loaded(name):
    try:
        return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return None
