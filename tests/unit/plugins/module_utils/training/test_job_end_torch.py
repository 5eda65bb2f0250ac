"""The cause of the end of a torch.distributed job: PyTorch's prefix, and errors that are only consequences."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from plugins.module_utils.training.ending.job_end import cause_of

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
OF_RANK_1 = f"rank 1 on n2 ended: {MISSING} (train.py, line 3)"
GLOO = (
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv "
    "operation to complete"
)
CLOSED = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:4711"
WATCHDOG = (
    "[E1125 04:16:08.812 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600012 milliseconds"
)
# The month is not padded, so that nine months have three digits; PyTorch 2.3 and older print no time.
OF_MARCH = "[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] "
OF_DECEMBER = "[E1206 18:44:12.715298746 ProcessGroupNCCL.cpp:607] "
WITHOUT_TIME = "[E ProcessGroupNCCL.cpp:523] "
FATAL = "[F321 02:07:08.408271257 ProcessGroupNCCL.cpp:1161] "
AFTER_A_PROGRESS_BAR = "Epoch 0:   6%|# | 32040/500150 [6:28:43<94:39:17,  1.37it/s][E ProcessGroupNCCL.cpp:458] "
PREFIXES = (OF_MARCH, OF_DECEMBER, WITHOUT_TIME, FATAL, AFTER_A_PROGRESS_BAR)
TIMED_OUT = (
    "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=808, OpType=ALLREDUCE, NumelIn=9801523, "
    "NumelOut=9801523, Timeout(ms)=600000) ran for 600020 milliseconds before timing out."
)
# The lines about the flight recorder, and those that precede the end of the process.
CONSEQUENCES = (
    TIMED_OUT,
    (
        "[PG ID 0 PG GUID 0(default_pg) Rank 0] Exception (either an error or timeout) detected by watchdog at work: "
        "808, last enqueued NCCL work: 811, last completed NCCL work: 807."
    ),
    (
        "[PG ID 0 PG GUID 0(default_pg) Rank 0]  failure detected by watchdog at work sequence id: 120049 PG status: "
        "last enqueued work: 120051, last completed work: 120048"
    ),
    (
        "Stack trace of the failed collective not found, potentially because FlightRecorder is disabled. You can "
        "enable it by setting TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value."
    ),
    (
        "[PG ID 0 PG GUID 0(default_pg) Rank 0] Received a dump signal due to a collective timeout from  rank 2 and we "
        "will try our best to dump the debug info. Last enqueued NCCL work: 136, last completed NCCL work: 136."
    ),
    (
        "[PG 0 Rank 0] Received a timeout signal from this local rank and will start to dump the debug info. Last "
        "enqueued NCCL work: 2, last completed NCCL work: 1."
    ),
    "[PG ID 0 PG GUID 0(default_pg) Rank 0] ProcessGroupNCCL preparing to dump debug info. Include stack trace: 1",
    "[PG 0 Rank 0] Timeout at NCCL work: 2, last enqueued NCCL work: 2, last completed NCCL work: 1.",
    (
        "[Rank 0] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, "
        "subsequent GPU operations might run on corrupted/incomplete data."
    ),
    "[Rank 0] To avoid data inconsistency, we are taking the entire process down.",
)
OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 15.77 GiB"
)
LOST_STORE = "torch.distributed.DistNetworkError: failed to recv, got 0 bytes"
# Since PyTorch 2.5.
LOST_SERVER = (
    "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed. Did the remote "
    "server shutdown or crash?"
)
NO_ID = (
    "torch.distributed.DistBackendError: [0] is setting up NCCL communicator and retrieving ncclUniqueId from [1] via "
    "c10d key-value store by key '0', but store->get('0') got error: failed to recv, got 0 bytes"
)
OLD_NO_ID = (
    "RuntimeError: [0] is setting up NCCL communicator and retreiving ncclUniqueId from [1] via c10d key-value store "
    "by key '0', but store->get('0') got error: unknown"
)
ILLEGAL = (
    "[PG ID 0 PG GUID 0(default_pg) Rank 1] Process group watchdog thread terminated with exception: CUDA error: an "
    "illegal memory access was encountered"
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
RANK_1_IS_MISSING = "rank 1 on n2 is missing and reported no error, and rank 0 on n1 reported: "


@pytest.mark.parametrize(
    ("output", "sentence", "rank"),
    [
        (err(1, *TRACEBACK, MISSING) + exited(1), OF_RANK_1, 1),
        (err(1, *TRACEBACK, MISSING), OF_RANK_1, 1),
        (err(1, "[rank1]: is how it begins", "ValueError: odd"), "rank 1 on n2 ended: ValueError: odd", 1),
        (err(0, IN_USE) + exited(0), f"rank 0 on n1 ended: {IN_USE}", 0),
        # Rank 1 has failed, and rank 0, which mpirun names, only waited for it or lost it.
        (err(1, *TRACEBACK, MISSING) + err(0, GLOO) + exited(0), OF_RANK_1, 1),
        (err(1, *TRACEBACK, MISSING) + err(0, CLOSED) + exited(0), OF_RANK_1, 1),
        (err(1, *TRACEBACK, MISSING) + err(0, STORE) + exited(0), OF_RANK_1, 1),
        (err(1, *TRACEBACK, MISSING) + native(0, WATCHDOG) + aborted(0), OF_RANK_1, 1),
        # No rank reports why the other one is gone.
        (err(0, GLOO) + exited(0), f"{RANK_1_IS_MISSING}{GLOO}", 1),
        (err(0, GLOO), f"{RANK_1_IS_MISSING}{GLOO}", 1),
        (err(0, STORE), f"{RANK_1_IS_MISSING}{STORE}", 1),
        (native(0, WATCHDOG) + aborted(0), f"{RANK_1_IS_MISSING}{WATCHDOG.partition('] ')[2]}", 1),
        (
            native(0, "terminate called after throwing an instance of 'c10::DistBackendError'")
            + native(0, f"  what():  {WATCHDOG.partition('] ')[2]}")
            + aborted(0),
            f"{RANK_1_IS_MISSING}{WATCHDOG.partition('] ')[2]}",
            1,
        ),
        (aborted(0), "rank 0 on n1 (process 16) was ended by signal 6 (Aborted)", 0),
        (
            err(1, REACHED) + err(0, BARRIER),
            "rank 1 on n2 was missing when the others waited: Ranks 1 failed to pass monitoredBarrier",
            1,
        ),
    ],
)
def test_explains_why_a_torch_job_ended(output: str, sentence: str, rank: int | None) -> None:
    cause = cause_of(output, 1, RANKS)
    assert (cause.sentence, cause.rank) == (sentence, rank)


def test_a_misleading_prefix_does_not_change_the_writer() -> None:
    assert cause_of(f"[1,1]<stderr>:[rank0]: {MISSING}\n", 1, RANKS).rank == 1


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("consequence", CONSEQUENCES)
def test_a_rank_that_aborts_later_is_not_blamed(prefix: str, consequence: str) -> None:
    output = err(1, *TRACEBACK, OUT_OF_MEMORY) + native(0, prefix + consequence) + aborted(0)

    cause = cause_of(output, 1, RANKS)

    assert (cause.sentence, cause.rank) == (f"rank 1 on n2 ended: {OUT_OF_MEMORY} (train.py, line 3)", 1)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_bare_timeout_names_the_silent_rank(prefix: str) -> None:
    cause = cause_of(native(0, prefix + TIMED_OUT) + aborted(0), 1, RANKS)

    assert (cause.sentence, cause.rank) == (f"{RANK_1_IS_MISSING}{TIMED_OUT}", 1)


@pytest.mark.parametrize("consequence", [LOST_STORE, LOST_SERVER, NO_ID, OLD_NO_ID])
@pytest.mark.parametrize("ended", [exited, aborted])
def test_a_lost_store_follows_from_another_ranks_end(consequence: str, ended: Callable[[int], str]) -> None:
    both = err(0, *TRACEBACK, consequence) + err(1, *TRACEBACK, MISSING) + ended(0)

    cause, alone = cause_of(both, 1, RANKS), cause_of(err(0, *TRACEBACK, consequence) + ended(0), 1, RANKS)

    assert (cause.sentence, cause.rank) == (OF_RANK_1, 1)
    assert (alone.sentence, alone.rank) == (f"{RANK_1_IS_MISSING}{consequence}", 1)


@pytest.mark.parametrize("line", [OF_MARCH + ILLEGAL, f"  what():  {ILLEGAL}"])
def test_attributes_a_watchdogs_gpu_error_to_its_rank(line: str) -> None:
    output = native(0, OF_MARCH + TIMED_OUT) + native(1, line) + aborted(0)

    cause = cause_of(output, 1, RANKS)

    assert (cause.sentence, cause.rank) == (f"rank 1 on n2 ended: {ILLEGAL}", 1)


def failed(rank: int, code: int, second: int) -> str:
    """Return one failure in the report of a torchrun."""
    signal = "  (SIGKILL)" if code == -9 else " "
    time = f"  time      : 2026-11-27_14:57:{second:02d}\n  host      : {RANKS[rank]}\n"
    return f"[0]:\n{time}  rank      : {rank} (local_rank: {rank})\n  exitcode  : {code} (pid: 30{rank}){signal}\n"


def agent(*failures: str) -> str:
    *others, root = failures
    return f"Failures:\n{''.join(others)}Root Cause (first observed failure):\n{root}"


@pytest.mark.parametrize(
    ("output", "sentence", "is_of_machine"),
    [
        # One agent saw both ends at once, or that of the rank that lost the other one first.
        (agent(failed(1, -9, 7), failed(0, 1, 7)), "rank 1 on n2 (process 301) was ended by signal 9", True),
        (agent(failed(0, 1, 7)) + agent(failed(1, -9, 8)), "rank 1 on n2 (process 301) was ended by signal 9", True),
        (err(1, *TRACEBACK, MISSING) + agent(failed(0, 1, 7)), OF_RANK_1, False),
        (agent(failed(0, 1, 7)), f"{RANK_1_IS_MISSING}{CLOSED}", False),
    ],
    ids=["same_poll", "victim_first", "only_the_victim_reported", "lost_node"],
)
def test_torchrun_names_the_rank_that_ended_by_itself(output: str, sentence: str, is_of_machine: bool) -> None:
    cause = cause_of(err(0, CLOSED) + output, 1, RANKS, "torchrun")

    assert (cause.sentence, cause.is_of_machine) == (sentence, is_of_machine)
