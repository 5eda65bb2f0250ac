# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The cause of the end of an mpirun job: rank, node and sentence, from the last lines of its output."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Optional, Tuple

from .mpi_output import OutputLine, lines_of

SHOWN_LINES = 10
ABORTED, KILLED = 6, 9
# The sentence, the rank and the node of a cause.
Explanation = Optional[Tuple[str, Optional[int], Optional[str]]]
_ERROR = re.compile(r"^\s*(?P<kind>(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit))(?:: (?P<text>.*))?$")
# PyTorch puts this before every line of a traceback once torch.distributed runs:
# https://github.com/pytorch/pytorch/blob/main/torch/distributed/distributed_c10d.py (_distributed_excepthook).
_TORCH = re.compile(r"^\[rank\d+\]:\s?")
# A line of a traceback, and the paths of programs that are not the user's.
_FRAME = re.compile(r'^\s*File "(?P<path>[^"]{1,500})", line (?P<number>\d{1,9})(?:, in |$)')
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python\d|^<|/dml_\w+\.py$")
# The words of a rank that reports the end of another: https://github.com/horovod/horovod/issues/410, NCCL's are from
# https://github.com/NVIDIA/nccl/blob/master/src/misc/socket.cc and Gloo's from its transport/tcp/pair.cc.
_REPORTED = re.compile(
    r"HorovodInternalError|Horovod has been shut\s?down|ncclRemoteError|remote process exited|by (?:remote )?peer|"
    r"[Cc]onnection (?:reset|closed|refused)|Broken pipe|[Ss]ocket (?:closed|Timeout)|HostsUpdatedInterrupt"
)
# With these words of Gloo and PyTorch a rank reports that it waited for another rank until a timeout, or that the store
# of the job is gone with the process that kept it. The lines about the flight recorder follow such a timeout:
# https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp.
_WAITED = re.compile(
    r"Timed out waiting \d+ ?ms|DistStoreError|monitoredBarrier|[Ww]atchdog|[Ww]ait timeout after|"
    r"collective operation timeout|socket has timed out|failed to recv, got 0 bytes|retr(?:ie|ei)ving ncclUniqueId|"
    r"FlightRecorder|(?:collective timeout|timeout signal) from|dump debug info|at NCCL work|"
    r"NCCL operations have failed or timed out|taking the entire process down"
)
# The watchdog also ends a process because of an error of its GPU.
_DEVICE = re.compile(r"CUDA error: ")
# The rank that others waited for: PyTorch names it if it uses a monitored barrier.
_MISSED = re.compile(r"Ranks (\d+)(?:, \d+)* failed to pass monitoredBarrier")
# PyTorch's log lines, and the message of C++ for an uncaught exception; both precede SIGABRT. The prefix has the month,
# which is not padded, the day and the time ([E321 02:07:08.408271257 FILE:LINE]); it has only file and line in PyTorch
# 2.3 and older. It may follow a progress bar, which does not end its line.
# https://github.com/pytorch/pytorch/blob/main/c10/util/Logging.cpp (MessageLogger)
_NATIVE = re.compile(r"^(?:.*?\[[EF](?:\d{3,4} [\d:.]+)? [^\[\]\s]+:\d+\]\s*|\s*what\(\):\s*)(?P<text>.+)$")
_ALONE = re.compile(
    r"unable to complete a TCP connection\s+to another process:\s+Local host:\s+(\S+)\s+Remote host:\s+(\S+)"
)
# A program does not kill itself: the kernel does if the memory is exhausted, and so does whoever ends a machine.
_KILLED = re.compile(rf"was ended by signal {KILLED}\b")
_NO_SPACE = re.compile(r"No space left on device|ENOSPC")


@dataclass(frozen=True)
class Cause:
    """The cause of the end of a job; rank and node are None if the output does not name them."""

    sentence: str
    rank: int | None
    node: str | None
    last_lines: tuple[str, ...]
    is_of_machine: bool = False


def cause_of(output: str, exit_code: int | None, ranks: Sequence[str]) -> Cause:
    """Return the cause, from the end of the output; ``ranks`` is the node of each rank."""
    lines = lines_of(output)
    # The output of a rank may look like a message of mpirun, but only mpirun's lines have no tag.
    text = "\n".join(line.text for line in lines if line.rank is None)
    explanations = ((finder(text, lines, ranks), finder) for finder in CAUSE_FINDERS)
    explanation, finder = next((each for each in explanations if each[0]), (None, None))
    sentence, rank, node = explanation or (_by_code(exit_code), None, None)
    last_lines = tuple(map(str, lines[-SHOWN_LINES:]))
    is_killed = finder is _by_signal and _KILLED.search(sentence) is not None
    is_gone = finder is None and (exit_code is None or exit_code == -KILLED)
    return Cause(sentence, rank, node, last_lines, finder is _by_lost_node or is_killed or is_gone)


def _by_abort(text: str, lines: Sequence[OutputLine], ranks: Sequence[str]) -> Explanation:
    words = r"MPI_ABORT was invoked on rank (\d+) in communicator\s+MPI_COMM_WORLD\b.*?errorcode:?\s+(-?\d+)"
    match = re.search(words, text, re.DOTALL | re.IGNORECASE)
    if match is None:
        return None
    rank = int(match[1])
    sentence = f"{_who(rank, ranks)} called MPI_Abort with code {match[2]}"
    return _own_error(rank, lines, ranks) or (sentence, rank, _node_of(rank, ranks))


def _by_signal(text: str, lines: Sequence[OutputLine], ranks: Sequence[str]) -> Explanation:
    words = r"process rank (\d+) with PID (\d+)\s+on\s+node\s+(\S+)\s+exited\s+on\s+signal\s+(\d+)(?: \(([^)]*)\))?"
    match = re.search(words, text)
    if match is None:
        return None
    name = f" ({match[5]})" if match[5] else ""
    # Some versions report the PID 0 for processes on other nodes.
    process = f" (process {match[2]})" if int(match[2]) else ""
    sentence = f"rank {match[1]} on {match[3]}{process} was ended by signal {match[4]}{name}"
    # A rank that aborts has printed the reason; other signals come from outside, whatever the rank printed before.
    if int(match[4]) != ABORTED:
        return sentence, int(match[1]), match[3]
    rank = int(match[1])
    waited = any(writer == rank for writer, _message in _errors(lines, reported=True))
    other = (_by_error(text, lines, ranks) or _by_report(text, lines, ranks)) if waited else None
    return _own_error(rank, lines, ranks) or other or (sentence, rank, match[3])


def _by_exit(text: str, lines: Sequence[OutputLine], ranks: Sequence[str]) -> Explanation:
    """Return the first process that ended with an exit code, or the one whose end that process only reported."""
    match = re.search(r"Process name:\s+\[(?:\[\d+,\d+\]|[^\[\],\s]+),(\d+)\]\s+Exit code:\s+(\d+)", text)
    if match is None:
        return None
    rank = int(match[1])
    sentence = f"{_who(rank, ranks)} ended with exit code {match[2]}"
    reported = [message for writer, message in _errors(lines, reported=True) if writer == rank]
    other = _by_error(text, lines, ranks) if reported else None
    if any(_WAITED.search(message) for message in reported):
        other = other or _by_report(text, lines, ranks)
    return _own_error(rank, lines, ranks) or other or (sentence, rank, _node_of(rank, ranks))


def _by_error(text: str, lines: Sequence[OutputLine], ranks: Sequence[str]) -> Explanation:
    """Return the first Python error of a rank: it made mpirun end the other ranks."""
    del text
    first = next(_errors(lines, reported=False), None)
    return _own_error(first[0], lines, ranks) if first else None


def _by_report(text: str, lines: Sequence[OutputLine], ranks: Sequence[str]) -> Explanation:
    """Return a rank that reported the end of another rank, if the output contains no other cause."""
    del text
    first = next(_errors(lines, reported=True), None)
    if first is None:
        return None
    reports = (_MISSED.search(message) for _writer, message in _errors(lines, reported=True))
    missed = next((match for match in reports if match), None)
    if missed:
        rank = int(missed[1])
        return f"{_who(rank, ranks)} was missing when the others waited: {missed[0]}", rank, _node_of(rank, ranks)
    return f"some rank is gone, as {_who(first[0], ranks)} reported: {first[1]}", None, None


def _own_error(rank: int, lines: Sequence[OutputLine], ranks: Sequence[str]) -> Explanation:
    """Return the Python error with which a rank ended."""
    message = next((message for writer, message in _errors(lines, reported=False) if writer == rank), None)
    if message is None:
        return None
    event = "found the disk full" if _NO_SPACE.search(message) else "ended"
    return f"{_who(rank, ranks)} {event}: {message}{_place(rank, message, lines)}", rank, _node_of(rank, ranks)


def _place(rank: int, message: str, lines: Sequence[OutputLine]) -> str:
    """Return the last line of the user's program in the traceback of an error; empty if none exists."""
    place = ""
    for line in lines:
        text = _TORCH.sub("", line.text) if line.rank == rank and line.stream == "err" else ""
        frame = _FRAME.match(text)
        if frame and not _LIBRARY.search(frame["path"]):
            place = f" ({frame['path'].rpartition('/')[2]}, line {frame['number']})"
        elif text and message in text:
            break
    return place


def _errors(lines: Sequence[OutputLine], reported: bool) -> Iterator[tuple[int, str]]:
    """Yield the errors in the output of ranks: their own, or reports about the end or the silence of another rank."""
    for line in lines:
        if line.stream != "err" or line.rank is None:
            continue
        message, is_report = _error_of(_TORCH.sub("", line.text))
        if message and is_report == reported:
            yield line.rank, message


def _error_of(text: str) -> tuple[str, bool]:
    """Return the error in a line, empty if it contains none, and whether it is a report about another rank."""
    error, native = _ERROR.match(text), _NATIVE.match(text)
    message = error[0].strip() if error else native["text"].strip() if native else ""
    if native and _DEVICE.search(message):
        return message, False
    is_report = bool(_REPORTED.search(message) or _WAITED.search(message))
    # PyTorch also logs errors after which a rank continues.
    return (message, is_report) if error or is_report else ("", False)


def _by_lost_node(text: str, lines: Sequence[OutputLine], ranks: Sequence[str]) -> Explanation:
    del lines
    match = re.search(r"lost communication with a remote daemon.*?Remote daemon:\s+\S+ on node (\S+)", text, re.DOTALL)
    if match:
        return f"the launcher lost the node {match[1]}", _first_rank(match[1], ranks), match[1]
    return None


def _by_ssh(text: str, lines: Sequence[OutputLine], ranks: Sequence[str]) -> Explanation:
    del lines
    match = re.search(
        r"(?:ssh: (?:connect to host|Could not resolve hostname) (?P<node>[^\s:]+)[^\n]*)"
        r"|(?:(?P<login>\S{1,300}): Permission denied[^\n]*)|Host key verification failed[^\n]*",
        text,
    )
    if match is None:
        return None
    node = match["node"] or (match["login"].rpartition("@")[2] if match["login"] else None)
    where = f"the node {node}" if node else "a node"
    return f"the launcher could not reach {where}: {match[0].strip()}", _first_rank(node, ranks), node


def _by_executable(text: str, lines: Sequence[OutputLine], ranks: Sequence[str]) -> Explanation:
    del lines
    words = r"could not (?:find an|access\s+or execute an) executable:.*?Executable:\s+(\S+)\s+Node:\s+(\S+)"
    match = re.search(words, text, re.DOTALL)
    if match is None:
        return None
    return f"the program {match[1]} cannot be run on {match[2]}", _first_rank(match[2], ranks), match[2]


def _by_slots(text: str, lines: Sequence[OutputLine], ranks: Sequence[str]) -> Explanation:
    del lines, ranks
    if re.search(r"not enough slots available", text):
        return "the nodes have fewer slots than ranks were asked for", None, None
    return None


def _by_daemon(text: str, lines: Sequence[OutputLine], ranks: Sequence[str]) -> Explanation:
    del lines
    if not re.search(r"unable to reliably start one or more daemons", text):
        return None
    alone = _ALONE.search(text)
    if alone is None:
        return "MPI could not start its daemon on some node", None, None
    sentence = f"MPI's daemon on {alone[1]} could not connect to {alone[2]}: look for a firewall between them"
    return sentence, _first_rank(alone[1], ranks), alone[1]


def _by_full_disk(text: str, lines: Sequence[OutputLine], ranks: Sequence[str]) -> Explanation:
    del text, ranks
    is_full = any(_NO_SPACE.search(line.text) for line in lines)
    return ("a disk is full: No space left on device", None, None) if is_full else None


# mpirun reports the rank that ended first; the other ranks detect its end, and end for that reason.
CAUSE_FINDERS: tuple[Callable[[str, Sequence[OutputLine], Sequence[str]], Explanation], ...] = (
    _by_abort,
    _by_signal,
    _by_lost_node,
    _by_exit,
    _by_error,
    _by_ssh,
    _by_executable,
    _by_slots,
    _by_full_disk,
    _by_daemon,
    _by_report,
)


def _by_code(code: int | None) -> str:
    if code is None:
        return "mpirun is gone and left no exit code: the launcher was rebooted, or a user killed mpirun"
    if code < 0:
        return f"mpirun was ended by signal {-code}"
    return f"mpirun ended with exit code {code}"


def _who(rank: int, ranks: Sequence[str]) -> str:
    return f"rank {rank} on {_node_of(rank, ranks) or 'an unknown node'}"


def _node_of(rank: int, ranks: Sequence[str]) -> str | None:
    return ranks[rank] if rank < len(ranks) else None


def _first_rank(node: str | None, ranks: Sequence[str]) -> int | None:
    return ranks.index(node) if node in ranks else None
