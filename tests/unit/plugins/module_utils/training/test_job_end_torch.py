# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The cause of the end of a torch.distributed job: PyTorch's prefix, and errors that are only consequences."""

from __future__ import annotations

import pytest

from plugins.module_utils.training.job_end import cause_of

RANKS = ["n1", "n2"]


def exited(rank: int) -> str:
    return f"  Process name: [[28342,1],{rank}]\n  Exit code:    1\n"


def aborted(rank: int) -> str:
    return f"mpirun noticed that process rank {rank} with PID 16 on node {RANKS[rank]} exited on signal 6 (Aborted).\n"


def err(rank: int, *lines: str) -> str:
    """Return lines as mpirun tags them, with PyTorch's prefix."""
    return "".join(f"[1,{rank}]<stderr>:[rank{rank}]: {line}\n" for line in lines)


def native(rank: int, *lines: str) -> str:
    """Return lines of PyTorch's log, which have no blank after the prefix."""
    return "".join(f"[1,{rank}]<stderr>:[rank{rank}]:{line}\n" for line in lines)


TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "train.py", line 3, in <module>',
    '    open("data/train.csv")',
)
MISSING = "FileNotFoundError: [Errno 2] No such file or directory: 'data/train.csv'"
GLOO = (
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv "
    "operation to complete"
)
CLOSED = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:4711"
WATCHDOG = (
    "[E1125 04:16:08.812 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600012 milliseconds"
)
STORE = "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined."
BARRIER = "RuntimeError: [Rank 0]: Ranks 1 failed to pass monitoredBarrier in 5000 ms"
REACHED = (
    "RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors while waiting for send/recv from "
    "rank 0. Please check rank 0 logs for faulty rank."
)
IN_USE = (
    "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: "
    "29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use"
)


@pytest.mark.parametrize(
    ("output", "sentence", "rank"),
    [
        (err(1, *TRACEBACK, MISSING) + exited(1), f"rank 1 on n2 ended: {MISSING} (train.py, line 3)", 1),
        (err(1, *TRACEBACK, MISSING), f"rank 1 on n2 ended: {MISSING} (train.py, line 3)", 1),
        (err(1, "[rank1]: is how it begins", "ValueError: odd"), "rank 1 on n2 ended: ValueError: odd", 1),
        (err(0, IN_USE) + exited(0), f"rank 0 on n1 ended: {IN_USE}", 0),
        # Rank 1 has failed, and rank 0, which mpirun names, only waited for it or lost it.
        (
            err(1, *TRACEBACK, MISSING) + err(0, GLOO) + exited(0),
            f"rank 1 on n2 ended: {MISSING} (train.py, line 3)",
            1,
        ),
        (
            err(1, *TRACEBACK, MISSING) + err(0, CLOSED) + exited(0),
            f"rank 1 on n2 ended: {MISSING} (train.py, line 3)",
            1,
        ),
        (
            err(1, *TRACEBACK, MISSING) + err(0, STORE) + exited(0),
            f"rank 1 on n2 ended: {MISSING} (train.py, line 3)",
            1,
        ),
        (
            err(1, *TRACEBACK, MISSING) + native(0, WATCHDOG) + aborted(0),
            f"rank 1 on n2 ended: {MISSING} (train.py, line 3)",
            1,
        ),
        # No rank reports why the other one is gone.
        (err(0, GLOO) + exited(0), f"some rank is gone, as rank 0 on n1 reported: {GLOO}", None),
        (err(0, GLOO), f"some rank is gone, as rank 0 on n1 reported: {GLOO}", None),
        (err(0, STORE), f"some rank is gone, as rank 0 on n1 reported: {STORE}", None),
        (
            native(0, WATCHDOG) + aborted(0),
            f"some rank is gone, as rank 0 on n1 reported: {WATCHDOG.partition('] ')[2]}",
            None,
        ),
        (
            native(0, "terminate called after throwing an instance of 'c10::DistBackendError'")
            + native(0, f"  what():  {WATCHDOG.partition('] ')[2]}")
            + aborted(0),
            f"some rank is gone, as rank 0 on n1 reported: {WATCHDOG.partition('] ')[2]}",
            None,
        ),
        (aborted(0), "rank 0 on n1 (process 16) was ended by signal 6 (Aborted)", 0),
        (
            err(1, REACHED) + err(0, BARRIER),
            "rank 1 on n2 was missing when the others waited: Ranks 1 failed to pass monitoredBarrier",
            1,
        ),
    ],
)
def test_why_a_job_of_torch_ended(output: str, sentence: str, rank: int | None) -> None:
    cause = cause_of(output, 1, RANKS)
    assert (cause.sentence, cause.rank) == (sentence, rank)


def test_a_prefix_of_another_rank_does_not_change_who_wrote_a_line() -> None:
    assert cause_of(f"[1,1]<stderr>:[rank0]: {MISSING}\n", 1, RANKS).rank == 1
