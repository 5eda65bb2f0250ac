"""Subject: a new verdict on a vMotion test, in addition to those in its folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from ...core import whole_file
from ...errors import Failed
from ...plan import Plan, State


class NewVerdict:
    """The files of one verdict, with a number that no other file in the folder has.

    Each part returns the texts of some files. They are on the disk before the next part is called.
    """

    name = "verdict"

    def __init__(self, folder: Path, names: Sequence[str], parts: Sequence[Callable[[], Mapping[str, str]]]) -> None:
        self.target, self._folder, self._names, self._parts = str(folder), folder, names, parts
        self._number = next(number for number in count(2) if not any(path.exists() for path in self._named(number)))
        self._is_written = False

    @property
    def paths(self) -> list[Path]:
        return self._named(self._number)

    def read(self) -> dict[str, Any]:
        """Return the name of the verdict once it is written."""
        return {"file": self._first if self._is_written else None}

    def plan(self, current: State) -> Plan:
        return Plan(before=current, after={"file": self._first})

    def apply(self, _plan: Plan) -> None:
        """Write the files, and never overwrite one that appeared in the meantime."""
        paths = dict(zip(self._names, self.paths))
        for part in self._parts:
            for name, text in part().items():
                write_text(paths[name], text, replaces=False)
        self._is_written = True

    @property
    def _first(self) -> str:
        return self.paths[0].name

    def _named(self, number: int) -> list[Path]:
        parts = [name.rpartition(".") for name in self._names]
        return [self._folder / f"{stem}-{number}.{ending}" for stem, _dot, ending in parts]


def write_text(path: Path, text: str, *, replaces: bool = True) -> None:
    """Write a file of a verdict completely, or leave the earlier one."""
    try:
        whole_file.write(str(path), text.encode("utf-8", "replace"), replaces=replaces)
    except OSError as error:
        reason, remedy = error.strerror or str(error), "free some space, and judge the test again"
        raise Failed(str(path), "write it", reason, remedy) from error
