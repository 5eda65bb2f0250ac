"""Print the OpenMPI version and the sum of all ranks as one line of JSON, using ctypes and no compiler."""

# No "from __future__ import annotations" here: the Python in the whitepaper's image does not support it.

import ctypes
import json
import platform
import sys


def symbol(library: ctypes.CDLL, name: str) -> ctypes.c_void_p:
    """Return an OpenMPI object, such as a communicator."""
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(library, name)))


def main(path: str) -> None:
    """Initialise MPI, add up all ranks and print the line."""
    mpi = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    mpi.MPI_Init(None, None)
    world = symbol(mpi, "ompi_mpi_comm_world")
    rank, size, length = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    mpi.MPI_Comm_rank(world, ctypes.byref(rank))
    mpi.MPI_Comm_size(world, ctypes.byref(size))
    text = ctypes.create_string_buffer(256)
    mpi.MPI_Get_library_version(text, ctypes.byref(length))
    total = ctypes.c_int()
    whole, add = symbol(mpi, "ompi_mpi_int"), symbol(mpi, "ompi_mpi_op_sum")
    mpi.MPI_Allreduce(ctypes.byref(rank), ctypes.byref(total), 1, whole, add, world)
    result = {
        "rank": rank.value,
        "size": size.value,
        "sum": total.value,
        "node": platform.node(),
        "library": text.value.decode().strip("\0"),
    }
    sys.stdout.write("hello " + json.dumps(result, sort_keys=True) + "\n")
    sys.stdout.flush()
    mpi.MPI_Finalize()


if __name__ == "__main__":
    main(sys.argv[1])
