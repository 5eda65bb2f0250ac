"""The first cause among the errors of ranks: its own error, a consequence, an error that was caught, or silence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.training.ending.job_end import cause_of

from .test_job_end_torch import (
    CLOSED,
    CONSEQUENCES,
    GLOO,
    ILLEGAL,
    LOST_STORE,
    MISSING,
    NO_ID,
    OF_DECEMBER,
    OF_MARCH,
    OUT_OF_MEMORY,
    PREFIXES,
    STORE,
    TRACEBACK,
    aborted,
    err,
    exited,
    native,
)

RANKS = ["n1", "n2"]
NO_ID_OF_2 = NO_ID.replace("from [1]", "from [2]")
FOUR = ["n1", "n1", "n2", "n2"]
PLACE = " (train.py, line 3)"
IN_COLLECTIVE = (
    "Traceback (most recent call last):",
    '  File "train.py", line 9, in <module>',
    "    loss.backward()",
    '  File "/usr/lib/python3.10/site-packages/torch/distributed/distributed_c10d.py", line 2501, in all_reduce',
    "    work = group.allreduce([tensor], opts)",
)
REFUSED = (
    "requests.exceptions.ConnectionError: HTTPConnectionPool(host='data.example.org', port=80): Max retries exceeded "
    "with url: /train.csv (Caused by NewConnectionError('[Errno 111] Connection refused'))"
)
PIPE = "BrokenPipeError: [Errno 32] Broken pipe"
RESET = "RuntimeError: Connection reset by peer"
# https://github.com/NVIDIA/nccl/issues/2076 and https://github.com/NVIDIA/nccl/issues/925 have such errors.
NCCL = "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.hpp:268, "
SYSTEM = f"{NCCL}unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5"
KIND = "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error. "
MODIFY = "Call to ibv_modify_qp failed with error No such device"
REMOTE = (
    f"{NCCL}remote process exited or there was a network error, NCCL version 2.21.5",
    "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
    "Last error:",
    "socketProgressOpt: Call to recv from 172.16.0.7<33759> failed : Connection reset by peer",
)
REMOTE_WITH_DETAIL = f"{REMOTE[0]}: {REMOTE[3]}"
STEPS = "".join(f"[1,0]<stdout>:{step}\timages/sec: 101.2 +/- 0.0 (jitter = 0.0)\t7.412\n" for step in (10, 20))


def missing(rank: int, reporter: int, message: str) -> str:
    return (
        f"rank {rank} on {RANKS[rank]} is missing and reported no error, and rank {reporter} on {RANKS[reporter]} "
        f"reported: {message}"
    )


def code(rank: int, number: int) -> str:
    return exited(rank).replace("Exit code:    1", f"Exit code:    {number}")


@pytest.mark.parametrize(
    ("output", "sentence", "rank"),
    [
        # The error of a rank may name a connection, as to a server of data.
        (err(1, *TRACEBACK, REFUSED) + err(0, CLOSED) + exited(0), f"rank 1 on n2 ended: {REFUSED}{PLACE}", 1),
        (err(1, *TRACEBACK, REFUSED) + exited(1), f"rank 1 on n2 ended: {REFUSED}{PLACE}", 1),
        (err(0, *TRACEBACK, PIPE) + exited(0), f"rank 0 on n1 ended: {PIPE}{PLACE}", 0),
        (err(0, *IN_COLLECTIVE, RESET) + exited(0), missing(1, 0, RESET), 1),
        (
            err(0, "ConnectionRefusedError: [Errno 111] connect to n2: Connection refused") + exited(0),
            missing(1, 0, "ConnectionRefusedError: [Errno 111] connect to n2: Connection refused"),
            1,
        ),
        # Exceptions need not have "Error" in their names.
        (err(1, *TRACEBACK, "StopIteration") + exited(1), f"rank 1 on n2 ended: StopIteration{PLACE}", 1),
        (
            err(1, *TRACEBACK, "torch._dynamo.exc.Unsupported: Graph break: call_function") + exited(1),
            f"rank 1 on n2 ended: torch._dynamo.exc.Unsupported: Graph break: call_function{PLACE}",
            1,
        ),
        (err(1, *TRACEBACK, "_queue.Empty") + err(0, GLOO) + exited(0), f"rank 1 on n2 ended: _queue.Empty{PLACE}", 1),
        # NCCL's last error says why.
        (
            err(1, *TRACEBACK, SYSTEM, KIND, "Last error:", MODIFY) + exited(1),
            f"rank 1 on n2 ended: {SYSTEM}: {MODIFY}{PLACE}",
            1,
        ),
        (
            err(1, *TRACEBACK, SYSTEM, KIND, "Last error:", "Exception raised from checkForNCCLErrors") + exited(1),
            f"rank 1 on n2 ended: {SYSTEM}{PLACE}",
            1,
        ),
        (err(0, *TRACEBACK, *REMOTE) + exited(0), missing(1, 0, REMOTE_WITH_DETAIL), 1),
        (err(0, CLOSED) + exited(0), missing(1, 0, CLOSED), 1),
        (
            native(0, "terminate called after throwing an instance of 'std::bad_alloc'", "  what():  std::bad_alloc")
            + aborted(0),
            "rank 0 on n1 ended: std::bad_alloc",
            0,
        ),
        # A worker of a DataLoader gives its own traceback after the rank's.
        (
            err(
                1,
                *TRACEBACK,
                "FileNotFoundError: Caught FileNotFoundError in DataLoader worker process 0.",
                "Original Traceback (most recent call last):",
                '  File "data.py", line 7, in __getitem__',
                MISSING,
            )
            + exited(1),
            f"rank 1 on n2 ended: {MISSING} (data.py, line 7)",
            1,
        ),
        # An abort without a reason is that of a victim if another rank has an error.
        (err(1, *TRACEBACK, MISSING) + aborted(0), f"rank 1 on n2 ended: {MISSING}{PLACE}", 1),
    ],
)
def test_blames_a_rank_unless_its_error_names_another(output: str, sentence: str, rank: int) -> None:
    cause = cause_of(output, 1, RANKS)
    assert (cause.sentence, cause.rank, cause.is_of_machine) == (sentence, rank, False)


CAUGHT = err(0, *TRACEBACK, "ValueError: a bad sample, skipped")
IGNORED = err(0, "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>") + err(
    0, *TRACEBACK, "AssertionError: can only test a child process"
)
LATER = "[1,0]<stderr>:  6%|# | 320/5000 [6:28<94:39,  1.37it/s]\n"


@pytest.mark.parametrize("output", [err(0, CLOSED) + err(1, CLOSED), err(0, CLOSED)], ids=["node", "any rank"])
def test_rank_on_silent_node_counts_as_machine_failure(output: str) -> None:
    cause = cause_of(output, 1, FOUR, silent=["n2"])

    assert cause.sentence == f"the node n2 does not answer, and rank 0 on n1 reported: {CLOSED}"
    assert cause.is_of_machine and not cause_of(output, 1, FOUR).is_of_machine
    own = cause_of(err(1, "ValueError: no data") + exited(1), 1, FOUR, silent=["n2"])
    assert own.rank == 1 and not own.is_of_machine, "a program that fails by itself fails on another node too"


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (CAUGHT + STEPS + code(0, 3), "rank 0 on n1 ended with exit code 3"),
        (CAUGHT + LATER + code(0, 3), "rank 0 on n1 ended with exit code 3"),
        (CAUGHT + LATER + err(0, CLOSED) + exited(0), missing(1, 0, CLOSED)),
        (CAUGHT + STEPS + err(1, *TRACEBACK, MISSING), f"rank 1 on n2 ended: {MISSING}{PLACE}"),
        (CAUGHT + err(0, *TRACEBACK, MISSING) + exited(0), f"rank 0 on n1 ended: {MISSING}{PLACE}"),
        (CAUGHT + err(0, *IN_COLLECTIVE, RESET) + exited(0), missing(1, 0, RESET)),
        (err(0, *TRACEBACK, MISSING) + IGNORED + exited(0), f"rank 0 on n1 ended: {MISSING}{PLACE}"),
        (IGNORED + code(0, 3), "rank 0 on n1 ended with exit code 3"),
        (
            err(0, *TRACEBACK, MISSING, "During handling of the above exception, another exception occurred:")
            + err(0, *TRACEBACK, "OSError: the clean-up failed")
            + exited(0),
            f"rank 0 on n1 ended: {MISSING}{PLACE}",
        ),
        (
            err(0, "Exception in thread Thread-3 (loop):", *TRACEBACK, "OSError: of a thread")
            + err(1, *TRACEBACK, MISSING),
            f"rank 1 on n2 ended: {MISSING}{PLACE}",
        ),
        (err(0, *TRACEBACK, "SignalException: Process 99 got signal: 15") + err(0, GLOO), missing(1, 0, GLOO)),
        # A program may print its buffered steps when it ends, and one line may be late.
        (err(0, *TRACEBACK, MISSING) + STEPS + exited(0), f"rank 0 on n1 ended: {MISSING}{PLACE}"),
        (err(0, *TRACEBACK, MISSING) + "[1,0]<stdout>:step 12\n" + code(0, 3), f"rank 0 on n1 ended: {MISSING}{PLACE}"),
        (
            err(0, *TRACEBACK, MISSING) + "[1,0]<stderr>:wandb:     epoch 12\n" + code(0, 3),
            f"rank 0 on n1 ended: {MISSING}{PLACE}",
        ),
    ],
)
def test_ignores_an_error_the_rank_survived(output: str, sentence: str) -> None:
    assert cause_of(output, 1, RANKS).sentence == sentence


@pytest.mark.parametrize(
    ("output", "ranks", "sentence", "rank", "node"),
    [
        (
            err(0, CLOSED) + err(1, CLOSED),
            FOUR,
            f"each rank on n2 is missing and reported no error, and rank 0 on n1 reported: {CLOSED}",
            2,
            "n2",
        ),
        (err(0, CLOSED), FOUR, f"some rank is gone, as rank 0 on n1 reported: {CLOSED}", None, None),
        (err(0, CLOSED) + err(1, GLOO), RANKS, f"some rank is gone, as rank 0 on n1 reported: {CLOSED}", None, None),
        (
            err(0, NO_ID_OF_2) + exited(0),
            FOUR,
            f"rank 2 on n2 is missing and reported no error, and rank 0 on n1 reported: {NO_ID_OF_2}",
            2,
            "n2",
        ),
    ],
)
def test_names_the_silent_rank_if_identifiable(
    output: str, ranks: list[str], sentence: str, rank: int | None, node: str | None
) -> None:
    cause = cause_of(output, 1, ranks)
    assert (cause.sentence, cause.rank, cause.node) == (sentence, rank, node)


@pytest.mark.parametrize(
    ("output", "exit_code", "sentence", "is_of_machine"),
    [
        (code(1, 137), 137, "rank 1 on n2 was ended by signal 9 (Killed), as its exit code 137 shows", True),
        (CAUGHT + code(0, 137), 137, "rank 0 on n1 was ended by signal 9 (Killed), as its exit code 137 shows", True),
        (
            code(1, 139),
            139,
            "rank 1 on n2 was ended by signal 11 (Segmentation fault), as its exit code 139 shows",
            False,
        ),
        (err(1, *TRACEBACK, MISSING) + code(1, 134), 134, f"rank 1 on n2 ended: {MISSING}{PLACE}", False),
        (code(1, 255), 255, "rank 1 on n2 ended with exit code 255", False),
        ("", 137, "mpirun ended with exit code 137, as after signal 9 (Killed)", True),
    ],
)
def test_reads_a_shell_exit_code_as_a_signal(output: str, exit_code: int, sentence: str, is_of_machine: bool) -> None:
    cause = cause_of(output, exit_code, RANKS)
    assert (cause.sentence, cause.is_of_machine) == (sentence, is_of_machine)


# Output of ranks when another one is gone: PyTorch's log and its errors, Gloo's, NCCL's, Horovod's and TensorFlow's.
VICTIMS = [
    *(("native", prefix + words) for prefix in PREFIXES for words in CONSEQUENCES),
    *(("traceback", *words) for words in ((CLOSED,), (GLOO,), (LOST_STORE,), (NO_ID,), (STORE,), REMOTE)),
    ("traceback", "horovod.common.exceptions.HorovodInternalError: HorovodAllreduce.grads failed"),
    ("traceback", "tensorflow.python.framework.errors_impl.UnknownError: Horovod has been shut down. This was caused"),
    ("traceback", f"{NCCL}NCCL communicator was aborted on rank 0."),
    ("traceback", "errors_impl.UnavailableError: Collective ops is aborted by: Connection reset by peer"),
    ("collective", RESET),
    ("native", OF_DECEMBER + REMOTE[0], *REMOTE[1:]),
]
OWN = [
    ("traceback", MISSING, f"{MISSING}{PLACE}"),
    ("traceback", OUT_OF_MEMORY, f"{OUT_OF_MEMORY}{PLACE}"),
    ("traceback", REFUSED, f"{REFUSED}{PLACE}"),
    ("traceback", "StopIteration", f"StopIteration{PLACE}"),
    ("native", OF_MARCH + ILLEGAL, ILLEGAL),
]


def block(rank: int, kind: str, *words: str) -> list[str]:
    """Return the lines of an error with their tags."""
    before = {"native": (), "traceback": TRACEBACK, "collective": IN_COLLECTIVE}[kind]
    text = (native if kind == "native" else err)(rank, *before, *words)
    return text.splitlines(keepends=True)


@st.composite
def ends(draw: Any) -> tuple[list[str], list[str], int, tuple[str, ...] | None]:
    """Draw the lines of a job of two to four ranks in any order: those of victims and, if any, that of the culprit."""
    ranks = [f"n{number}" for number in range(1, draw(st.integers(2, 4)) + 1)]
    culprit = draw(st.integers(0, len(ranks) - 1))
    own = draw(st.one_of(st.none(), st.sampled_from(OWN)))
    blocks = {
        rank: [line for words in draw(st.lists(st.sampled_from(VICTIMS), min_size=1, max_size=3)) for line in
               block(rank, *words)]
        for rank in range(len(ranks))
        if rank != culprit
    }  # fmt: skip
    if own is not None:
        blocks[culprit] = block(culprit, *own[:2])
    turns = draw(st.permutations([rank for rank, lines in blocks.items() for _line in lines]))
    queues = {rank: iter(lines) for rank, lines in blocks.items()}
    printed = [next(queues[rank]) for rank in turns]
    named = draw(st.one_of(st.none(), st.sampled_from(sorted(blocks))))
    if named is not None:
        signal = f"process rank {named} with PID 16 on node {ranks[named]} exited on signal 6 (Aborted).\n"
        printed.append(draw(st.sampled_from((signal, exited(named), code(named, 134)))))
    return ranks, printed, culprit, own


@settings(max_examples=600, deadline=None)
@given(ends())
def test_names_the_culprit_in_any_order_of_lines(end: tuple[list[str], list[str], int, tuple[str, ...] | None]) -> None:
    ranks, printed, culprit, own = end

    cause = cause_of("".join(printed), 1, ranks)

    assert (cause.rank, cause.node, cause.is_of_machine) == (culprit, ranks[culprit], False)
    if own is None:
        assert f"rank {culprit} on {ranks[culprit]} is missing and reported no error" in cause.sentence
    else:
        assert cause.sentence == f"rank {culprit} on {ranks[culprit]} ended: {own[2]}"
