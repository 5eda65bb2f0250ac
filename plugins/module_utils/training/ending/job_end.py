"""Why an mpirun job ended: rank, node and sentence, from the last lines of its output."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...watch.mpi_output import OutputLine, lines_of
from .rank_errors import RankError, errors_of

SHOWN_LINES = 10
ABORTED, KILLED, TERMINATED = 6, 9, 15
# A shell exits with 128 plus the number of the signal that ended its program.
BY_SIGNAL = 128
SIGNALS = {
    1: "Hangup",
    2: "Interrupt",
    4: "Illegal instruction",
    ABORTED: "Aborted",
    7: "Bus error",
    8: "Floating point exception",
    KILLED: "Killed",
    11: "Segmentation fault",
    TERMINATED: "Terminated",
}
# Python's exit code after an uncaught exception.
UNCAUGHT = 1
# Standard output and standard error have no common order: one line may be from before the error.
MOST_LATE_LINES = 1
_ALONE = re.compile(
    r"unable to complete a TCP connection\s+to another process:\s+Local host:\s+(\S+)\s+Remote host:\s+(\S+)"
)
_NO_SPACE = re.compile(r"No space left on device|ENOSPC")
# The line of dml_steps.py, because the errors of most programs name neither the file system nor its size.
_FULL = re.compile(r"^dml_steps\.py: no space is left in (.{1,300})$")
# PyTorch names the rank that others waited for if a monitored barrier fails, and if that rank has NCCL's ID.
_MISSED = re.compile(r"Ranks (\d+)(?:, \d+)* failed to pass monitoredBarrier")
_RETRIEVED = re.compile(r"retr(?:ie|ei)ving ncclUniqueId from \[(\d+)\]")


@dataclass(frozen=True)
class Cause:
    """Why a job ended; rank and node are None if the output does not name them."""

    sentence: str
    rank: int | None
    node: str | None
    last_lines: tuple[str, ...]
    is_of_machine: bool = False


class Explanation(NamedTuple):
    """The sentence, the rank and the node of a cause; ``is_of_machine`` if the program did not end by itself."""

    sentence: str
    rank: int | None = None
    node: str | None = None
    is_of_machine: bool = False


@dataclass(frozen=True)
class Output:
    """The output of a job: the text of mpirun itself, all lines, the errors of ranks, and the node of each rank.

    ``silent`` are the nodes that did not answer at the end of the job.
    """

    text: str
    lines: Sequence[OutputLine]
    ranks: Sequence[str]
    errors: Sequence[RankError] = field(default_factory=tuple)
    silent: Collection[str] = ()

    def of_rank(self, rank: int, is_report: bool = False) -> list[RankError]:
        """Return the errors that may have ended a rank, the most probable first."""
        mine = [error for error in self.errors if error.rank == rank and error.is_report == is_report]
        return sorted(filter(_ended, mine), key=_doubt)


def cause_of(
    output: str, exit_code: int | None, ranks: Sequence[str], launcher: str = "mpirun", silent: Collection[str] = ()
) -> Cause:
    """Return the cause, from the end of the launcher's output; ``ranks`` is the node of each rank."""
    lines = lines_of(output)
    # The output of a rank may look like a message of mpirun, but only mpirun's lines have no tag.
    text = "\n".join(line.text for line in lines if line.rank is None)
    shown = Output(text, lines, ranks, errors_of(lines, ranks), silent)
    found = (finder(shown) for finder in CAUSE_FINDERS)
    sentence, rank, node, is_of_machine = next((each for each in found if each), None) or _by_code(exit_code, launcher)
    return Cause(sentence, rank, node, tuple(map(str, lines[-SHOWN_LINES:])), is_of_machine)


def _ended(error: RankError) -> bool:
    """Return whether an error may have ended its rank: none of its lines shows that it went on."""
    return not error.went_on and error.late <= MOST_LATE_LINES


def _doubt(error: RankError) -> tuple[bool, bool, bool]:
    return error.is_minor, error.is_native, not error.has_traceback


def _by_abort(output: Output) -> Explanation | None:
    words = r"MPI_ABORT was invoked on rank (\d+) in communicator\s+MPI_COMM_WORLD\b.*?errorcode:?\s+(-?\d+)"
    match = re.search(words, output.text, re.DOTALL | re.IGNORECASE)
    if match is None:
        return None
    rank = int(match[1])
    sentence = f"{_who(rank, output)} called MPI_Abort with code {match[2]}"
    return _own_error(rank, output) or Explanation(sentence, rank, _node_of(rank, output))


def _by_signal(output: Output) -> Explanation | None:
    words = r"process rank (\d+) with PID (\d+)\s+on\s+node\s+(\S+)\s+exited\s+on\s+signal\s+(\d+)(?: \(([^)]*)\))?"
    match = re.search(words, output.text)
    if match is None:
        return None
    name = f" ({match[5]})" if match[5] else ""
    # Some versions report the PID 0 for processes on other nodes.
    process = f" (process {match[2]})" if int(match[2]) else ""
    sentence = f"rank {match[1]} on {match[3]}{process} was ended by signal {match[4]}{name}"
    return _ended_by(int(match[4]), Explanation(sentence, int(match[1]), match[3]), output)


def _ended_by(signal: int, ended: Explanation, output: Output) -> Explanation:
    """Return why a signal ended a rank: one that aborts has printed the reason, unless it lost another rank.

    Other signals come from outside, whatever the rank printed before. SIGKILL comes from the kernel when memory is
    exhausted, or from the shutdown of a machine, and not from the program itself.
    """
    if signal != ABORTED or ended.rank is None:
        return ended._replace(is_of_machine=signal == KILLED)
    return _own_error(ended.rank, output) or _by_error(output) or _by_report(output, ended.rank) or ended


def _by_exit(output: Output) -> Explanation | None:
    """Return the first process that ended with an exit code, or the one whose end that process only reported."""
    words = r"Process name:\s+\[(?:\[\d+,\d+\]|[^\[\],\s]+),(\d+)\]\s+Exit code:\s+(\d+)"
    match = re.search(words, output.text)
    if match is None:
        return None
    rank, code = int(match[1]), int(match[2])
    if code - BY_SIGNAL in SIGNALS:
        signal = code - BY_SIGNAL
        how = f"was ended by signal {signal} ({SIGNALS[signal]}), as its exit code {code} shows"
        ended = Explanation(f"{_who(rank, output)} {how}", rank, _node_of(rank, output))
        return _ended_by(signal, ended, output)
    return _ended_with(code, rank, output)


def _ended_with(code: int, rank: int, output: Output) -> Explanation:
    """Return why a rank ended with an exit code: its error, or that of the rank whose end it only reported."""
    reported = bool(output.of_rank(rank, is_report=True))
    other = (_by_error(output) or _by_report(output, rank)) if reported else None
    late = _late_error(rank, output) if code == UNCAUGHT else None
    ended = Explanation(f"{_who(rank, output)} ended with exit code {code}", rank, _node_of(rank, output))
    return _own_error(rank, output) or other or late or ended


def _by_error(output: Output) -> Explanation | None:
    """Return the first error that is not a report about another rank: because of it, mpirun ended the other ranks."""
    own = [error for error in output.errors if not error.is_report and _ended(error)]
    first = min(own, key=lambda error: error.is_minor, default=None)
    return _own_error(first.rank, output) if first else None


def _by_report(output: Output, reporter: int | None = None) -> Explanation | None:
    """Return the rank that others, or this one first, reported as gone, if the output contains no other cause."""
    reports = [error for error in output.errors if error.is_report and _ended(error)]
    if not reports:
        return None
    missed = next((match for match in (_MISSED.search(error.message) for error in reports) if match), None)
    if missed:
        rank = int(missed[1])
        sentence = f"{_who(rank, output)} was missing when the others waited: {missed[0]}"
        return Explanation(sentence, rank, _node_of(rank, output))
    first = next((error for error in reports if error.rank == reporter), reports[0])
    reported = f"{_who(first.rank, output)} reported: {first.message}"
    missing = _missing(first, output) or [rank for rank, node in enumerate(output.ranks) if node in output.silent]
    if not missing:
        return Explanation(f"some rank is gone, as {reported}")
    node = _node_of(missing[0], output)
    if node in output.silent:
        return Explanation(f"the node {node} does not answer, and {reported}", missing[0], node, is_of_machine=True)
    who = _who(missing[0], output) if len(missing) == 1 else f"each rank on {node}"
    return Explanation(f"{who} is missing and reported no error, and {reported}", missing[0], node)


def _missing(report: RankError, output: Output) -> list[int]:
    """Return the rank that a report names or, if only one rank or one node is silent, the silent ranks."""
    received = {error.rank for error in output.errors if _ended(error)}
    requested = _RETRIEVED.search(report.message)
    if requested and int(requested[1]) not in received:
        return [int(requested[1])]
    silent = [rank for rank in range(len(output.ranks)) if rank not in received]
    return silent if len({output.ranks[rank] for rank in silent}) == 1 else []


def _own_error(rank: int, output: Output) -> Explanation | None:
    return next((_reported(error, output) for error in output.of_rank(rank)), None)


def _late_error(rank: int, output: Output) -> Explanation | None:
    """Return the last error of a rank whose output came late: a program may print all of it when it ends."""
    mine = [error for error in output.errors if error.rank == rank and not error.is_report and not error.went_on]
    return _reported(mine[-1], output) if mine else None


def _reported(error: RankError, output: Output) -> Explanation:
    full = next(
        (match for line in output.lines if line.rank == error.rank and (match := _FULL.search(line.text))), None
    )
    event = "found the disk full" if full or _NO_SPACE.search(error.message) else "ended"
    sentence = f"{_who(error.rank, output)} {event}: {error.message}{error.place}"
    sentence += f"; no space is left in {full[1]}" if full else ""
    return Explanation(sentence, error.rank, _node_of(error.rank, output))


def _by_lost_node(output: Output) -> Explanation | None:
    words = r"lost communication with a remote daemon.*?Remote daemon:\s+\S+ on node (\S+)"
    match = re.search(words, output.text, re.DOTALL)
    return _of_node(f"the launcher lost the node {match[1]}", match[1], output, is_of_machine=True) if match else None


def _by_ssh(output: Output) -> Explanation | None:
    match = re.search(
        r"(?:ssh: (?:connect to host|Could not resolve hostname) (?P<node>[^\s:]+)[^\n]*)"
        r"|(?:(?P<login>\S{1,300}): Permission denied[^\n]*)|Host key verification failed[^\n]*",
        output.text,
    )
    if match is None:
        return None
    node = match["node"] or (match["login"].rpartition("@")[2] if match["login"] else None)
    where = f"the node {node}" if node else "a node"
    return _of_node(f"the launcher could not reach {where}: {match[0].strip()}", node, output)


class _AgentFailure(NamedTuple):
    """A process that torchrun of a node saw end; ``code`` is below 0 after a signal."""

    time: str
    rank: int
    code: int
    pid: int


# The failures of one agent; it saw all of them within a tenth of a second.
_FAILURE = re.compile(
    r"\n\s+time\s+: (\S{1,40})[^\n]*(?:\n\s+host\s+: [^\n]*)?\n\s+rank\s+: (\d{1,9}) [^\n]*"
    r"\n\s+exitcode\s+: (-?\d{1,9}) \(pid: (\d{1,9})\)"
)


def _by_agent(output: Output) -> Explanation | None:
    """Return the process that ended by itself among those that the torchrun of each node saw end.

    Ranks that lose another one end within the same second, and may be seen first.
    """
    found = [_AgentFailure(each[1], *map(int, each.groups()[1:])) for each in _FAILURE.finditer(output.text)]
    first = min(found, key=lambda each: (_is_consequence(each, output), each.time), default=None)
    if first is None:
        return None
    if first.code < 0:
        sentence = f"{_who(first.rank, output)} (process {first.pid}) was ended by signal {-first.code}"
        return _ended_by(-first.code, Explanation(sentence, first.rank, _node_of(first.rank, output)), output)
    return _ended_with(first.code, first.rank, output)


def _is_consequence(failure: _AgentFailure, output: Output) -> int:
    """Return 0 for a process that ended by itself or was killed, 2 for one that lost another, 1 if that is unknown."""
    if output.of_rank(failure.rank) or (failure.code < 0 and -failure.code not in (ABORTED, TERMINATED)):
        return 0
    return 2 if output.of_rank(failure.rank, is_report=True) else 1


def _by_executable(output: Output) -> Explanation | None:
    words = r"could not (?:find an|access\s+or execute an) executable:.*?Executable:\s+(\S+)\s+Node:\s+(\S+)"
    match = re.search(words, output.text, re.DOTALL)
    return _of_node(f"the program {match[1]} cannot be run on {match[2]}", match[2], output) if match else None


def _by_slots(output: Output) -> Explanation | None:
    is_short = "not enough slots available" in output.text
    return Explanation("the nodes have fewer slots than requested ranks") if is_short else None


def _by_daemon(output: Output) -> Explanation | None:
    if "unable to reliably start one or more daemons" not in output.text:
        return None
    alone = _ALONE.search(output.text)
    if alone is None:
        return Explanation("MPI could not start its daemon on some node")
    sentence = f"MPI's daemon on {alone[1]} could not connect to {alone[2]}: look for a firewall between them"
    return _of_node(sentence, alone[1], output)


def _by_full_disk(output: Output) -> Explanation | None:
    is_full = any(_NO_SPACE.search(line.text) for line in output.lines)
    return Explanation("a disk is full: No space left on device") if is_full else None


# mpirun reports the rank that ended first; the other ranks detect its end, and end for that reason.
CAUSE_FINDERS: tuple[Callable[[Output], Explanation | None], ...] = (
    _by_abort,
    _by_signal,
    _by_lost_node,
    _by_exit,
    _by_agent,
    _by_error,
    _by_ssh,
    _by_executable,
    _by_slots,
    _by_full_disk,
    _by_daemon,
    _by_report,
)


def _by_code(code: int | None, launcher: str) -> Explanation:
    if code is None:
        sentence = f"{launcher} is gone and left no exit code: the launcher was rebooted, or a user killed {launcher}"
        return Explanation(sentence, is_of_machine=True)
    if code < 0:
        return Explanation(f"{launcher} was ended by signal {-code}", is_of_machine=code == -KILLED)
    by_kill = code == BY_SIGNAL + KILLED
    sentence = f"{launcher} ended with exit code {code}{', as after signal 9 (Killed)' if by_kill else ''}"
    return Explanation(sentence, is_of_machine=by_kill)


def _of_node(sentence: str, node: str | None, output: Output, is_of_machine: bool = False) -> Explanation:
    rank = next((rank for rank, name in enumerate(output.ranks) if name == node), None)
    return Explanation(sentence, rank, node, is_of_machine)


def _who(rank: int, output: Output) -> str:
    return f"rank {rank} on {_node_of(rank, output) or 'an unknown node'}"


def _node_of(rank: int, output: Output) -> str | None:
    return output.ranks[rank] if rank < len(output.ranks) else None
