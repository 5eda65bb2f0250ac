"""A small training on every node: each step is an allreduce of Open MPI, so that all ranks wait for each."""

# pylint: disable=missing-function-docstring # it is a program, not a library
from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import pathlib
import time

import dml_records

FLOATS = 65536
IN_PLACE = 1
# Open MPI waits with a core per rank; ranks that look now and then leave it to the rest of the machine.
LOOK_SECONDS = 0.001


class Mpi:
    """As much of Open MPI as a step needs."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
        if self._library.MPI_Init(None, None):
            raise RuntimeError("MPI does not start")
        self._world, self._float, self._sum = (
            ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(self._library, name)))
            for name in ("ompi_mpi_comm_world", "ompi_mpi_float", "ompi_mpi_op_sum")
        )
        self._gradients = (ctypes.c_float * FLOATS)()

    def step(self, is_requested: bool) -> tuple[float, bool]:
        """One allreduce: how many ranks there are, and whether some rank was asked for something."""
        self._gradients[0], self._gradients[1] = 1.0, float(is_requested)
        place, request, done = ctypes.c_void_p(IN_PLACE), ctypes.c_void_p(), ctypes.c_int()
        data = (place, self._gradients, FLOATS, self._float, self._sum)
        self._library.MPI_Iallreduce(*data, self._world, ctypes.byref(request))
        while not done.value:
            time.sleep(LOOK_SECONDS)
            self._library.MPI_Test(ctypes.byref(request), ctypes.byref(done), None)
        return float(self._gradients[0]), self._gradients[1] > 0

    def end(self) -> None:
        self._library.MPI_Finalize()


class SetClock:
    """The clock of a rank that someone sets: nodes of the lab share the machine's, so its records are shifted."""

    def __init__(self) -> None:
        self.shift = 0.0
        self.monotonic = time.monotonic

    def time(self) -> float:
        return time.time() + self.shift


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--checkpoint", type=pathlib.Path, help="where the step is kept, and from where it goes on")
    parser.add_argument("--checkpoint-file", type=pathlib.Path, help="a file whose appearance asks for a checkpoint")
    parser.add_argument("--checkpoint-seconds", type=float, default=0.0)
    parser.add_argument("--stop-after-checkpoint", action="store_true")
    parser.add_argument("--clock-file", type=pathlib.Path, help="a file whose appearance sets the clock of this rank")
    parser.add_argument("--clock-by", type=float, default=60.0)
    parser.add_argument("--device", type=pathlib.Path, help="a file that is kept open as an RDMA device is")
    return parser.parse_args()


def main() -> None:
    chosen, mpi, clock = parsed(), Mpi(), SetClock()
    dml_records.time = clock  # the module's time
    first = int(chosen.checkpoint.read_text()) + 1 if chosen.checkpoint and chosen.checkpoint.exists() else 1
    records = dml_records.start(first_step=first)
    with contextlib.ExitStack() as stack:
        if chosen.device:
            stack.enter_context(chosen.device.open())
        for number in range(first, chosen.steps + 1):
            time.sleep(chosen.seconds)
            ranks, is_requested = mpi.step(bool(chosen.checkpoint_file and chosen.checkpoint_file.exists()))
            records.step(images=8, loss=ranks / number)
            if chosen.clock_file and chosen.clock_file.exists():
                clock.shift = chosen.clock_by
            if is_requested:
                with records.phase("checkpoint"):
                    time.sleep(chosen.checkpoint_seconds)
                    if chosen.checkpoint:
                        chosen.checkpoint.write_text(str(number))
                chosen.checkpoint_file.unlink(missing_ok=True)
                if chosen.stop_after_checkpoint:
                    break
    mpi.end()


if __name__ == "__main__":
    os.environ.setdefault("OMPI_MCA_btl_base_warn_component_unused", "0")
    main()
