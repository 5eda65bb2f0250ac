"""The output of mpirun, split into the lines of each rank.

mpirun tags each piece that it reads from a rank, and a piece may end in the middle of a line: a line then contains
tags, and the lines of two ranks are mixed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Optional, Tuple, cast

# Open MPI 4: [1,0]<stdout>:TEXT, and with --timestamp-output a time before it. Open MPI 5: a named job, a space after
# the colon, and with tag-detailed [HOST:PID] before the stream: https://github.com/openpmix/openpmix/pull/2669.
# horovodrun without MPI: [0]<stdout>:TEXT, in older versions after a time: https://github.com/horovod/horovod/pull/2388.
_TIME = r"(?:[MTWFS][a-z]{2} [JFMASOND][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})?"
_PROCESS = r"(?:(?:(?P<job>\d+)|(?P<named>[^\[\],\s]+)),)?(?P<rank>\d{1,9})"
_PLACE = r"(?P<place>\[[^\[\]\s,:]+:(?:\d+|unknown)\])?"
_TAG = re.compile(rf"{_TIME}\[{_PROCESS}\]{_PLACE}<std(?P<stream>out|err|diag)>:(?(named) ?)", re.ASCII)
# Colours, cursor movements, and window titles of a terminal.
_TERMINAL = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\))")

# The job in the tags, and whether they contain the place of the process: all tags of one launcher have the same form.
Form = Tuple[Optional[str], bool]


class Tag(NamedTuple):
    """The tag of a piece of output: its position in the line, and the process that wrote the piece."""

    begin: int
    end: int
    job: str | None
    rank: int
    stream: str


@dataclass(frozen=True)
class OutputLine:
    """A line of a rank, or of mpirun itself without rank and stream."""

    text: str
    rank: int | None = None
    stream: str = ""

    def __str__(self) -> str:
        return self.text if self.rank is None else f"[{self.rank}]<std{self.stream}>: {self.text}"


def tags_of(line: str, form: Form | None) -> tuple[list[Tag], Form | None]:
    """Return the tags in a line, and the form of this launcher's tags for the lines that follow.

    A tag may follow any text, and the text may look like a tag: within a line only tags count that have the form of the
    most recent tag at the start of a line.
    """
    matches = list(_TAG.finditer(line))
    if matches and (form is None or matches[0].start() == 0):
        form = _form_of(matches[0])
    return [_tag_of(match) for match in matches if _form_of(match) == form], form


def plain(text: str) -> str:
    """Return the text without control sequences of a terminal."""
    return _TERMINAL.sub("", text) if "\x1b" in text else text


def lines_of(output: str) -> list[OutputLine]:
    """Return the lines of each rank, joined from their pieces; empty lines are left out."""
    joiner = LineJoiner()
    return [*joiner.feed(output), *joiner.close()]


class LineJoiner:
    """Joins the lines of each rank from the pieces of a growing output, which may end anywhere."""

    def __init__(self) -> None:
        self._rest, self._form = "", cast("Form | None", None)
        self._held: dict[tuple[int, str], str] = {}

    def feed(self, output: str) -> list[OutputLine]:
        """Return the lines that the next part of the output completes."""
        *complete, self._rest = (self._rest + output).split("\n")
        return _shown(line for printed in complete for line in self._taken(printed))

    def close(self) -> list[OutputLine]:
        """Return the unfinished lines at the end of the output."""
        lines = [*self._taken(self._rest), *(OutputLine(text, *writer) for writer, text in self._held.items())]
        self._rest, self._held = "", {}
        return _shown(lines)

    def _taken(self, printed: str) -> Iterator[OutputLine]:
        tags, self._form = tags_of(printed, self._form)
        ends = [tag.begin for tag in tags[1:]] + [len(printed)]
        yield OutputLine(printed[: tags[0].begin] if tags else printed)
        for tag, end in zip(tags, ends):
            writer = (tag.rank, tag.stream)
            self._held[writer] = self._held.get(writer, "") + printed[tag.end : end]
            if end == len(printed):
                yield OutputLine(self._held.pop(writer), *writer)


def _shown(lines: Iterable[OutputLine]) -> list[OutputLine]:
    """Return lines without control sequences; empty ones are left out."""
    given = (OutputLine(plain(line.text).rstrip(), line.rank, line.stream) for line in lines)
    return [line for line in given if line.text.strip()]


def _form_of(match: re.Match[str]) -> Form:
    return match["job"] or match["named"], bool(match["place"])


def _tag_of(match: re.Match[str]) -> Tag:
    return Tag(match.start(), match.end(), match["job"] or match["named"], int(match["rank"]), match["stream"])
