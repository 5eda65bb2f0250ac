"""The part of Open MPI that a small training needs, using only its C library."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

IN_PLACE = 1
TEXT_BYTES = 64


class Mpi:
    """All ranks of the job."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
        if self._library.MPI_Init(None, None):
            raise RuntimeError("MPI_Init failed")
        self._world, self._float, self._byte, self._sum = (
            ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(self._library, f"ompi_mpi_{name}")))
            for name in ("comm_world", "float", "byte", "op_sum")
        )
        size = ctypes.c_int()
        self._library.MPI_Comm_size(self._world, ctypes.byref(size))
        self.size = size.value

    def add(self, numbers: Sequence[float]) -> list[float]:
        """Return the sums over all ranks (one allreduce)."""
        count = len(numbers)
        added = (ctypes.c_float * count)(*numbers)
        self._library.MPI_Allreduce(ctypes.c_void_p(IN_PLACE), added, count, self._float, self._sum, self._world)
        return list(added)

    def gather(self, text: str) -> list[str]:
        """Return the texts of all ranks, of up to 64 characters, in the order of ranks."""
        sent = ctypes.create_string_buffer(text.encode(), TEXT_BYTES)
        received = ctypes.create_string_buffer(TEXT_BYTES * self.size)
        kind = (TEXT_BYTES, self._byte)
        self._library.MPI_Allgather(sent, *kind, received, *kind, self._world)
        starts = range(0, TEXT_BYTES * self.size, TEXT_BYTES)
        return [received.raw[start : start + TEXT_BYTES].rstrip(b"\0").decode() for start in starts]

    def end(self) -> None:
        """Finalize MPI."""
        self._library.MPI_Finalize()
