# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The output of mpirun, in lines as the ranks wrote them.

mpirun tags each piece that it reads from a rank, and a rank may be read in the middle of a line: the tags of the
pieces then stand inside of the line, and lines of two ranks are mixed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TAG = re.compile(r"\[[^\]\s]*?,(?P<rank>\d+)\](?:\[[^\]\n]*\])?<std(?P<stream>out|err|diag)>:")


@dataclass(frozen=True)
class Line:
    """A line of a rank, or of mpirun itself, which has neither rank nor stream."""

    text: str
    rank: int | None = None
    stream: str = ""

    def __str__(self) -> str:
        return self.text if self.rank is None else f"[{self.rank}]<std{self.stream}>: {self.text}"


def lines_of(output: str) -> list[Line]:
    """Put the pieces of each rank's lines together; empty lines are left out."""
    lines: list[Line] = []
    held: dict[tuple[int, str], str] = {}
    for printed in output.splitlines():
        tags = list(_TAG.finditer(printed))
        ends = [tag.start() for tag in tags[1:]] + [len(printed)]
        lines.append(Line(printed[: tags[0].start()] if tags else printed))
        for tag, end in zip(tags, ends):
            writer = (int(tag["rank"]), tag["stream"])
            held[writer] = held.get(writer, "") + printed[tag.end() : end]
            if end == len(printed):
                lines.append(Line(held.pop(writer), *writer))
    lines += [Line(text, *writer) for writer, text in held.items()]
    return [Line(line.text.rstrip(), line.rank, line.stream) for line in lines if line.text.strip()]
