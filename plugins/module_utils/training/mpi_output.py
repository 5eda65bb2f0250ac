# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The output of mpirun, in lines as the ranks wrote them.

mpirun tags each piece that it reads from a rank, and a rank may be read in the middle of a line: the tags of the
pieces then stand inside of the line, and lines of two ranks are mixed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple, Optional, Tuple

# Open MPI 4: [1,0]<stdout>:TEXT, and with --timestamp-output a time before it. Open MPI 5: a named job, a space behind
# the colon, and with tag-detailed [HOST:PID] before the stream: https://github.com/openpmix/openpmix/pull/2669.
# horovodrun without MPI: [0]<stdout>:TEXT, in older versions behind a time: https://github.com/horovod/horovod/pull/2388.
_TIME = r"(?:[MTWFS][a-z]{2} [JFMASOND][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})?"
_PROCESS = r"(?:(?:(?P<job>\d+)|(?P<named>[^\[\],\s]+)),)?(?P<rank>\d{1,9})"
_PLACE = r"(?P<place>\[[^\[\]\s,:]+:(?:\d+|unknown)\])?"
_TAG = re.compile(rf"{_TIME}\[{_PROCESS}\]{_PLACE}<std(?P<stream>out|err|diag)>:(?(named) ?)", re.ASCII)
# Colours, moves of the cursor, and titles of a terminal's window.
_TERMINAL = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\))")

# The job that tags name, and whether they tell the place of the process: all tags of one launcher have the same.
Form = Tuple[Optional[str], bool]


class Tag(NamedTuple):
    """The tag of a piece of output: where it stands in its line, and whose piece follows."""

    begin: int
    end: int
    job: str | None
    rank: int
    stream: str


@dataclass(frozen=True)
class Line:
    """A line of a rank, or of mpirun itself, which has neither rank nor stream."""

    text: str
    rank: int | None = None
    stream: str = ""

    def __str__(self) -> str:
        return self.text if self.rank is None else f"[{self.rank}]<std{self.stream}>: {self.text}"


def tags_of(line: str, form: Form | None) -> tuple[list[Tag], Form | None]:
    """The tags in a line, and the form of this launcher's tags from here on.

    A tag may follow any text, which may itself look like one: inside of a line only those count that have the form of
    the last tag that began a line.
    """
    found = list(_TAG.finditer(line))
    if found and (form is None or found[0].start() == 0):
        form = _form_of(found[0])
    return [_tag_of(one) for one in found if _form_of(one) == form], form


def plain(text: str) -> str:
    """The text without what only a terminal understands."""
    return _TERMINAL.sub("", text) if "\x1b" in text else text


def lines_of(output: str) -> list[Line]:
    """Put the pieces of each rank's lines together; empty lines are left out."""
    lines: list[Line] = []
    held: dict[tuple[int, str], str] = {}
    form: Form | None = None
    for printed in output.split("\n"):
        tags, form = tags_of(printed, form)
        ends = [tag.begin for tag in tags[1:]] + [len(printed)]
        lines.append(Line(printed[: tags[0].begin] if tags else printed))
        for tag, end in zip(tags, ends):
            writer = (tag.rank, tag.stream)
            held[writer] = held.get(writer, "") + printed[tag.end : end]
            if end == len(printed):
                lines.append(Line(held.pop(writer), *writer))
    lines += [Line(text, *writer) for writer, text in held.items()]
    lines = [Line(plain(line.text).rstrip(), line.rank, line.stream) for line in lines]
    return [line for line in lines if line.text.strip()]


def _form_of(found: re.Match[str]) -> Form:
    return found["job"] or found["named"], bool(found["place"])


def _tag_of(found: re.Match[str]) -> Tag:
    return Tag(found.start(), found.end(), found["job"] or found["named"], int(found["rank"]), found["stream"])
