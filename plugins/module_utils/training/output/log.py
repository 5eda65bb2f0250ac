"""Parser for complete or growing training logs: step records, totals, and the lines that it cannot parse.

It parses JSON step records and the output of tf_cnn_benchmarks and of Horovod's synthetic benchmarks, each plain or
tagged by mpirun with rank and stream. A line without a tag and a rank counts as a line of rank 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypedDict

from ...watch.mpi_output import Form, tags_of
from .formats import HIGHEST, LineContent, Record, decode_json, recognise

__all__ = ["Log", "LogReader", "Record", "UnparsedPart", "parse"]

LONGEST_LINE = 65536
LONGEST_RECORD = 8192
MOST_PROBLEMS = 1000
# Other networks of NCCL are plugins: NET/UCX, NET/OFI, NET/AWS Libfabric, and NET/IBext, which uses InfiniBand too.
_NETWORK = r"IB|Socket|[A-Za-z][\w-]*(?: [A-Z]\w*)?"
_VIA = re.compile(rf"NCCL INFO.*\bvia (?:direct )?(NET/(?:{_NETWORK})|P2P|SHM|direct shared memory)")
_USING = re.compile(rf"NCCL INFO (?:NET/(?P<plugin>IB|Socket) : Using|Using network (?P<network>{_NETWORK}))")


@dataclass(frozen=True)
class UnparsedPart:
    """A part of a log that cannot be parsed, and the number of the line where it ends, from 1."""

    line: int
    detail: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.detail}"


@dataclass(frozen=True)
class Log:
    """A complete log; only the first ``MOST_PROBLEMS`` problems are listed, and the others are counted."""

    steps: list[Record]
    totals: dict[int, float]
    problems: list[UnparsedPart]
    marks: list[Record]
    unlisted_problems: int = 0


@dataclass(frozen=True)
class _Stream:
    job: str | None
    rank: int | None
    name: str | None


_UNTAGGED = _Stream(None, None, None)


def parse(text: str) -> Log:
    reader = LogReader()
    records = reader.feed(text) + reader.close()
    steps = [record for record in records if "mark" not in record]
    marks = [record for record in records if "mark" in record]
    return Log(steps, reader.totals, reader.problems, marks, reader.unlisted_problems)


class LogReader:
    """Parser of a growing log, piece by piece, in constant memory.

    ``feed`` adds to ``totals`` and ``problems``, and returns the begin and the end of a phase among the records, with a
    key ``mark``. A problem that repeats, such as a loss that stays NaN, is reported once for each process.
    """

    def __init__(self) -> None:
        self.totals: dict[int, float] = {}
        self.problems: list[UnparsedPart] = []
        self.unlisted_problems = 0
        self._line = 0
        self._unfinished = ""
        self._is_skipping = False
        self._held: dict[_Stream, str] = {}
        self._form: Form | None = None
        self._last_steps: dict[tuple[Hashable, ...], int] = {}
        self._reported: set[Hashable] = set()
        self._has_text = False
        self._has_output = False

    def feed(self, text: str) -> list[Record]:
        """Parse the next piece, which may end anywhere, and return the records that it completes."""
        lines = (self._unfinished + text).split("\n")
        self._unfinished = lines.pop()
        records: list[Record] = []
        for line in lines:
            self._line += 1
            if self._is_skipping or len(line) > LONGEST_LINE:
                self._skip_line()
            elif not (line[:1] == "{" and self._take_usual_line(line, records)):
                self._take_line(line, records)
        if len(self._unfinished) > LONGEST_LINE:
            self._unfinished = self._unfinished[:1]
            self._is_skipping = True
        return records

    def close(self) -> list[Record]:
        """Parse the unfinished last line and all held pieces at the end of the log, and return their records."""
        records: list[Record] = []
        if self._is_skipping or self._unfinished:
            self._line += 1
        if self._is_skipping:
            self._skip_line()
        elif self._unfinished:
            self._take_fragments(self._unfinished, records, ended=False)
        self._unfinished = ""
        for stream, text in self._held.items():
            self._take(stream, text, recognise(text, stream.rank, ended=False), records)
        self._held.clear()
        if self._has_text and not self._has_output and not self.problems:
            self._problem("no line up to here is a training step or a total in a known format")
        return records

    def _skip_line(self) -> None:
        self._is_skipping = False
        self._problem(f"longer than {LONGEST_LINE} characters, left out")

    def _take_usual_line(self, line: str, records: list[Record]) -> bool:
        """Parse the next step of a known process in a record file quickly; return whether the line contains one."""
        # pylint: disable=unidiomatic-typecheck # True and False are not whole numbers here
        try:
            value, end = decode_json(line)
            get = value.get
            rank, step, rate, loss = get("rank"), get("step"), get("images_per_sec"), get("loss")
            process = (rank, get("job"), get("pid"), get("start"))
            is_usual = (
                type(rank) is int
                and type(step) is int
                and self._last_steps.get(process, step) < step <= HIGHEST
                and (rate is None or (type(rate) is float and math.isfinite(rate)))
                and (loss is None or (type(loss) is float and math.isfinite(loss)))
                and "mark" not in value
                and end == len(line)
            )
        except (ValueError, RecursionError, TypeError):
            return False
        if is_usual:
            self._last_steps[process] = step
            # A missing key becomes null.
            value["images_per_sec"], value["loss"] = rate, loss
            records.append(Record(value))
        return is_usual

    def _take_line(self, line: str, records: list[Record]) -> None:
        if "<std" in line or _UNTAGGED in self._held:
            self._take_fragments(line, records, ended=True)
        else:
            self._take(_UNTAGGED, line, recognise(line, None), records)

    def _take_fragments(self, line: str, records: list[Record], ended: bool) -> None:
        """Assign each piece between tags to its stream: another tag follows a piece that has no line end."""
        stream, begin = _UNTAGGED, 0
        tags, self._form = tags_of(line, self._form)
        for tag in tags:
            fragment = line[begin : tag.begin]
            if fragment:
                self._take_fragment(stream, fragment, records)
            stream, begin = _Stream(tag.job, tag.rank, tag.stream), tag.end
        if ended:
            self._end_line(stream, line[begin:], records)
        else:
            self._take_fragment(stream, line[begin:], records)

    def _take_fragment(self, stream: _Stream, fragment: str, records: list[Record]) -> None:
        text = self._held.pop(stream, "") + fragment
        content = recognise(text, stream.rank, ended=False)
        if content.is_clean:
            self._take(stream, text, content, records)
        elif len(text) <= LONGEST_RECORD:
            self._held[stream] = text
        else:
            self._take(stream, text, recognise(text, stream.rank), records)

    def _end_line(self, stream: _Stream, fragment: str, records: list[Record]) -> None:
        held = self._held.pop(stream, "")
        content = recognise(held + fragment, stream.rank)
        if held and not content.is_clean:
            alone = recognise(fragment, stream.rank)
            if alone.is_clean:
                self._take(stream, held, recognise(held, stream.rank, ended=False), records)
                self._take(stream, fragment, alone, records)
                return
        self._take(stream, held + fragment, content, records)

    def _take(self, stream: _Stream, text: str, content: LineContent, records: list[Record]) -> None:
        self._has_text = self._has_text or bool(text.strip())
        for fault in content.faults:
            self._problem(f"{_excerpt(text)} {fault}")
        for record in content.records:
            self._check(record, stream.job)
        if content.total is not None:
            self._take_total(0 if stream.rank is None else stream.rank, content.total)
        self._has_output = self._has_output or content.has_output
        records += content.records + content.marks

    def _take_total(self, rank: int, total: float) -> None:
        if rank in self.totals:
            self._problem(f"rank {rank} reports a second total: two jobs in one log?")
        if not math.isfinite(total):
            self._problem(f"rank {rank} reports {total} as its total")
        self.totals[rank] = total

    def _check(self, record: Record, tag_job: str | None) -> None:
        rank, step = record["rank"], record["step"]
        process = (rank, record.get("job", tag_job), record.get("pid"), record.get("start"))
        last_step = self._last_steps.get(process)
        if last_step is None:
            self._check_first(process)
        elif step <= last_step:
            self._problem_once(
                process, f"rank {rank} reports step {step} after step {last_step}: two jobs, or a restart?"
            )
        self._last_steps[process] = step
        for name in ("loss", "images_per_sec"):
            value = record[name]
            if value is not None and not math.isfinite(value):
                self._problem_once((name, process), f"rank {rank} has {name} {value} at step {step}")

    def _check_first(self, process: tuple[Hashable, ...]) -> None:
        rank, job, pid, _start = process
        others = [other for other in self._last_steps if other[0] == rank]
        if others:
            _rank, other_job, other_pid, _start = others[-1]
            self._problem(
                f"rank {rank} is job {job}, process {pid}, "
                f"but was job {other_job}, process {other_pid}: two jobs, or a restart?"
            )

    def _problem_once(self, topic: Hashable, detail: str) -> None:
        if topic not in self._reported:
            self._reported.add(topic)
            self._problem(detail)

    def _problem(self, detail: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(UnparsedPart(self._line, detail))
        else:
            self.unlisted_problems += 1


def _excerpt(text: str) -> str:
    shown = text.strip()
    return repr(shown if len(shown) <= 80 else f"{shown[:77]}...")


class Figures(TypedDict):
    """The images/s of all ranks, the connections of the ranks, and whether the output contains messages of NCCL."""

    total: float | None
    ways: list[str]
    has_nccl: bool


def figures(output: str) -> Figures:
    """Return the figures in the complete output of a job."""
    # Every rank prints the same total.
    total = max(parse(output).totals.values(), default=None)
    return {"total": total, "ways": sorted(_ways(output)), "has_nccl": "NCCL INFO" in output}


def _ways(output: str) -> set[str]:
    """Return the connections of the ranks between nodes; those within nodes only if there are no others."""
    between = {match[1] for match in _VIA.finditer(output)}
    across = {way for way in between if way.startswith("NET/")}
    if across or between:
        return across or between
    return {f"NET/{match['plugin'] or match['network']}" for match in _USING.finditer(output)}
