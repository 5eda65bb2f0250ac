"""The errors in the output of ranks: which of them ended their rank, and which only report the end of another rank."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ...watch.mpi_output import OutputLine
from ..output.formats import recognise

_BY_NAME = re.compile(r"^\s*(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|StopIteration)(?:: .*)?$")
# After the frames of a traceback any name is that of an exception: torch._dynamo.exc.Unsupported, queue.Empty.
_IN_TRACEBACK = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:: .*)?$")
_TRACEBACK = "Traceback (most recent call last):"
# A worker of PyTorch's DataLoader gives its traceback in the message of the rank's error.
_ORIGINAL = "Original Traceback (most recent call last):"
_CHAINED = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)
# Python writes these lines before the traceback of an error that does not end the program.
_IGNORED = re.compile(r"^\s*(?:Exception ignored |Error in )")
_OF_THREAD = re.compile(r"^\s*(?:Exception in thread |Process \S{1,100}:$)")
# PyTorch puts this before every line of a traceback once torch.distributed runs:
# https://github.com/pytorch/pytorch/blob/main/torch/distributed/distributed_c10d.py (_distributed_excepthook).
_TORCH = re.compile(r"^\[rank\d+\]:\s?")
# A line of a traceback, and the paths of programs that are not the user's.
_FRAME = re.compile(r'^\s*File "(?P<path>[^"]{1,500})", line (?P<number>\d{1,9})(?:, in |$)')
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python\d|^<|/dml_\w+\.py$")
_OF_COLLECTIVES = re.compile(r"/torch/distributed/|/horovod/")
# PyTorch's log lines, and the message of C++ for an uncaught exception; both precede SIGABRT. The prefix has the month,
# which is not padded, the day and the time ([E321 02:07:08.408271257 FILE:LINE]); it has only file and line in PyTorch
# 2.3 and older. It may follow a progress bar, which does not end its line.
# https://github.com/pytorch/pytorch/blob/main/c10/util/Logging.cpp (MessageLogger)
_NATIVE = re.compile(
    r"^(?:.*?\[[EF](?:\d{3,4} [\d:.]+)? [^\[\]\s]+:\d+\]\s*|(?P<uncaught>\s*what\(\):\s*))(?P<text>.+)$"
)
# The watchdog also ends a process because of an error of its GPU.
_DEVICE = re.compile(r"CUDA error: ")
# The words of NCCL follow an error of PyTorch: its kind, and after a heading its last error, which may be empty:
# https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/NCCLUtils.cpp (getNcclErrorDetailStr).
_NCCL, _NCCL_KIND, _LAST_ERROR = re.compile(r"\bNCCL error\b"), re.compile(r"^nccl\w+Error: "), "Last error:"
_NO_DETAIL = re.compile(r"^\s*(?:Exception raised from|frame #|C\+\+ )")
# With these words only the end or the silence of another rank is reported. Horovod's:
# https://github.com/horovod/horovod/issues/410, NCCL's: https://github.com/NVIDIA/nccl/blob/master/src/misc/socket.cc.
# Gloo and PyTorch report that they waited for another rank until a timeout, or that the store of the job is gone with
# the process that kept it. The lines about the flight recorder follow such a timeout:
# https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp.
_OF_ANOTHER = re.compile(
    r"HorovodInternalError|Horovod has been shut\s?down|HostsUpdatedInterrupt|ncclRemoteError|remote process exited|"
    r"Timed out waiting \d+ ?ms|DistStoreError|monitoredBarrier|collective operation timeout|"
    r"timed out in blocking wait|socket has timed out|failed to recv, got 0 bytes|retr(?:ie|ei)ving ncclUniqueId|"
    r"communicator was aborted|FlightRecorder|(?:collective timeout|timeout signal) from|dump debug info|at NCCL work|"
    r"NCCL operations have failed or timed out|taking the entire process down|Collective ops? (?:is|are) aborted|"
    r"did the remote server shutdown or crash",
    re.IGNORECASE,
)
# With these words a rank reports the end of another one only if the error names a rank, a node of the job or a
# collective: a server of data may refuse a connection too.
_OF_CONNECTION = re.compile(
    r"by (?:remote )?peer|connection (?:reset|closed|refused)|broken pipe|socket (?:closed|timeout)|watchdog|"
    r"wait timeout after",
    re.IGNORECASE,
)
_NAMES_A_PEER = re.compile(
    r"\branks?\b[ :#]{0,2}\d|\btask:\d|gloo|nccl|c10d|torch\.distributed|horovod|MPI_|\bPG \w|"
    r"all_?(?:reduce|gather|to_?all)|reduce_?scatter|broadcast|\bbarrier\b|\bcollective\b",
    re.IGNORECASE,
)
# Printed by a program that catches the signal with which mpirun ends all ranks; its cause is not in this rank.
_ENDED_BY_MPIRUN = re.compile(r"\bSIGTERM|got signal: 15\b|killed by signal: Terminated")
_PROGRESS = re.compile(r"\b(?:step|epoch|iter(?:ation)?|batch)\b\W{0,3}\d|\d ?(?:it/s|s/it)\b", re.IGNORECASE)


@dataclass
class RankError:
    """An error in the output of a rank, with the last line of the user's program in its traceback.

    ``is_report`` is whether it reports the end of another rank, ``is_minor`` whether it only ended a thread or a
    process of the rank, ``is_native`` whether it is from the log of PyTorch, ``is_ignored`` whether it ended nothing.
    ``went_on`` is whether the rank trained after it, and ``late`` the lines of progress that seem to be later.
    """

    rank: int
    message: str
    place: str = ""
    is_report: bool = False
    is_minor: bool = False
    is_native: bool = False
    is_ignored: bool = False
    has_traceback: bool = False
    went_on: bool = False
    late: int = 0


def errors_of(lines: Sequence[OutputLine], nodes: Collection[str]) -> list[RankError]:
    """Return the errors of all ranks in their order; ``nodes`` are those of the job."""
    named = [re.compile(rf"(?<![\w.-]){re.escape(node)}(?![\w.-])") for node in sorted(set(nodes)) if node]
    readers: dict[int, _Reader] = {}
    found: list[RankError] = []
    for line in lines:
        if line.rank is not None:
            readers.setdefault(line.rank, _Reader(line.rank, named, found)).take(line)
    for reader in readers.values():
        reader.close()
    return [error for error in found if not error.is_ignored]


@dataclass
class _Reader:
    """The output of one rank, line by line."""

    rank: int
    nodes: Sequence[re.Pattern[str]]
    found: list[RankError]
    own: list[RankError] = field(default_factory=list)
    frames: list[re.Match[str]] = field(default_factory=list)
    previous: str = ""
    before: str = ""  # the line before the traceback
    is_in_traceback: bool = False
    is_chained: bool = False
    is_original: bool = False
    awaits_detail: bool = False

    def take(self, line: OutputLine) -> None:
        text = _TORCH.sub("", line.text)
        if line.stream == "err":
            is_of_error = self._add_detail(text) or self._add_line(text)
            self.previous = text
            if is_of_error:
                return
        if not text.lstrip().startswith("wandb:") and (_PROGRESS.search(text) or recognise(text, self.rank).has_output):
            for error in self.own:
                error.late += 1
                error.went_on = error.went_on or line.stream == "err"

    def close(self) -> None:
        """End the output: a program that prints another traceback has survived the errors before it."""
        main = [error for error in self.own if not (error.is_minor or error.is_native)]
        last = max((index for index, error in enumerate(main) if error.has_traceback), default=0)
        for error in main[:last]:
            error.went_on = True

    def _add_line(self, text: str) -> bool:
        """Read a line of standard error, and return whether it belongs to an error."""
        words = text.strip()
        if words == _TRACEBACK:
            self.frames, self.is_in_traceback, self.before = [], True, self.previous
        elif words == _ORIGINAL:
            self.frames, self.is_original = [], True
        elif words in _CHAINED:
            self.is_chained = True
        elif frame := _FRAME.match(text):
            self.frames.append(frame)
        elif _BY_NAME.match(text) or (self.is_in_traceback and self.frames and _IN_TRACEBACK.match(text)):
            self._add_error(words)
        elif native := _NATIVE.match(text):
            self._add_native(native["text"].strip(), is_uncaught=bool(native["uncaught"]))
        else:
            return bool(self.frames) and text[:1].isspace()
        return True

    def _add_error(self, message: str) -> None:
        error = RankError(self.rank, message, self._place(), self._is_report(message))
        error.has_traceback = self.is_in_traceback
        error.is_minor = self.is_in_traceback and bool(_OF_THREAD.match(self.before))
        # An error in the clean-up after another one, or in the handler of it, is only a consequence.
        error.is_ignored = self.is_chained or bool(_ENDED_BY_MPIRUN.search(message))
        error.is_ignored |= self.is_in_traceback and bool(_IGNORED.match(self.before))
        if self.is_original and self.own:
            self.own[-1].message, self.own[-1].place = message, error.place or self.own[-1].place
        else:
            self._add(error)
        self.frames, self.is_in_traceback, self.is_chained, self.is_original = [], False, False, False

    def _add_native(self, message: str, is_uncaught: bool) -> None:
        is_of_device = bool(_DEVICE.search(message))
        is_report = not is_of_device and self._is_report(message)
        # PyTorch also logs errors after which a rank continues.
        if is_of_device or is_report or is_uncaught:
            self._add(RankError(self.rank, message, is_report=is_report, is_native=True))

    def _add(self, error: RankError) -> None:
        self.found.append(error)
        if not error.is_ignored:
            self.own.append(error)

    def _add_detail(self, text: str) -> bool:
        """Add the words of NCCL to the error before them, and return whether the line has them."""
        error, words = (self.own[-1] if self.own else None), text.strip()
        if error is None or not _NCCL.search(error.message):
            return False
        is_kind, is_detail = bool(_NCCL_KIND.match(words)), self.awaits_detail
        self.awaits_detail = words == _LAST_ERROR
        if is_detail and not (words == _TRACEBACK or _NO_DETAIL.match(words) or _NATIVE.match(text)):
            error.message += f": {words}"
        elif not is_kind and not self.awaits_detail:
            return False
        error.is_report = error.is_report or self._is_report(words if is_kind else error.message)
        return True

    def _is_report(self, message: str) -> bool:
        if _OF_ANOTHER.search(message):
            return True
        is_named = _NAMES_A_PEER.search(message) or any(node.search(message) for node in self.nodes)
        is_in_collective = any(_OF_COLLECTIVES.search(frame["path"]) for frame in self.frames)
        return bool(_OF_CONNECTION.search(message) and (is_named or is_in_collective))

    def _place(self) -> str:
        """Return the last line of the user's program in the traceback; empty if it has none."""
        own = [frame for frame in self.frames if not _LIBRARY.search(frame["path"])]
        return f" ({own[-1]['path'].rpartition('/')[2]}, line {own[-1]['number']})" if own else ""
