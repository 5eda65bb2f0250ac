"""The files of a report as a subject of the runner: a file with another text or mode is replaced atomically."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import runner
from ...core import replies, whole_file
from ...errors import Failed, Refused
from ...plan import Plan
from ...watch.mpi_output import LineJoiner, lines_of
from ...watch.shown_lines import whole_line

FOLDER = "."
# Two outputs of a job whose last bytes are the same are the same.
SAME_BYTES = 8192
PART = 1 << 20
REMEDY = "check the folder's owner, its mode and the free space, then run again"


@dataclass(frozen=True)
class FileModes:
    """The permissions of a report's folder and of the files in it."""

    folder: int
    file: int


PRIVATE = FileModes(0o700, 0o600)
NEW_FOLDER, FOR_ALL = 0o755, 0o644


def write_private(folder: str, files: Mapping[str, str]) -> dict[str, object]:
    """Write files in a folder that only its owner can read."""
    return runner.converge_one(runner.OfProgram(), ReportFiles(Path(folder), files, PRIVATE))


def for_collector(folder: str, name: str, metrics: str) -> ReportFiles:
    """Return the file of metrics for a collector, which is another user; a folder that exists keeps its mode."""
    where = Path(folder)
    mode = stat.S_IMODE(where.stat().st_mode) if where.is_dir() else NEW_FOLDER
    return ReportFiles(where, {f"dml_{name}.prom": metrics}, FileModes(mode, FOR_ALL))


def write_output(folder: str, text: str) -> dict[str, object]:
    """Write the output of a job that has ended by ranks: the watch collects it with the tags of mpirun while it runs.

    If the file lacks the end of the output, the end replaces it. A reply has "?" in place of control characters.
    """
    path, plain = Path(folder, "output.log"), "".join(f"{line}\n" for line in map(whole_line, lines_of(text)))
    is_whole = _ends_with(path, text)
    if path.is_file() and not path.is_symlink():
        _remove_tags(path)
    is_whole = is_whole or _ends_with(path, plain)
    return {"changed": False} if is_whole else write_private(folder, {path.name: plain})


def _ends_with(path: Path, text: str) -> bool:
    try:
        with path.open("rb") as file:
            file.seek(-min(SAME_BYTES, file.seek(0, os.SEEK_END)), os.SEEK_END)
            kept = replies.lines(file.read().decode(errors="replace"))
    except OSError:
        return False
    return text.encode(errors="replace").rstrip()[-SAME_BYTES // 2 :] in kept.encode(errors="replace")


def _remove_tags(path: Path) -> None:
    """Write each line of an output with its rank, in parts of a bounded size; one without tags stays as it is."""
    joiner, new = LineJoiner(), path.with_name(f"{path.name}.new")
    try:
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with path.open(encoding="utf-8", errors="replace", newline="") as tagged, open(
            handle, "w", encoding="utf-8"
        ) as file:
            while part := tagged.read(PART):
                file.writelines(f"{line}\n" for line in map(whole_line, joiner.feed(part)))
            file.writelines(f"{line}\n" for line in map(whole_line, joiner.close()))
        new.replace(path)
    except OSError:
        # The output stays as it is, such as on a full disk.
        new.unlink(missing_ok=True)


class ReportFiles:
    """The contents of a report by the names of their files, in one folder of this machine."""

    name = "report"

    def __init__(self, folder: Path, texts: Mapping[str, str | bytes], modes: FileModes) -> None:
        self._folder, self._modes = folder, modes
        self._contents = {
            name: text.encode(errors="replace") if isinstance(text, str) else text for name, text in texts.items()
        }
        self.target = str(folder)

    @property
    def paths(self) -> list[str]:
        """Return the paths of the files, in the order of their texts."""
        return [str(self._folder / name) for name in self._contents]

    def read(self) -> dict[str, Any]:
        """Return the mode of the folder (``.``), and the checksum and mode of each file; None if it does not exist."""
        try:
            state: dict[str, Any] = {FOLDER: _mode(self._folder) if self._folder.is_dir() else None}
            state.update({name: _file_state(self._folder / name) for name in self._contents})
        except OSError as error:
            raise Failed(self.target, "read the existing report", str(error), REMEDY) from error
        return state

    def plan(self, state: Mapping[str, object]) -> Plan:
        """Return the plan for the files; a path that is another kind of file is refused."""
        taken = [path for path in (self._folder, *map(Path, self.paths)) if _is_another_kind(path, self._folder)]
        if taken:
            raise Refused(str(taken[0]), "write the report", "another kind of file has this path", "use another folder")
        mode = oct(self._modes.file)
        after = {name: {"sha256": _digest(content), "mode": mode} for name, content in self._contents.items()}
        return Plan(before=state, after={FOLDER: oct(self._modes.folder), **after})

    def apply(self, plan: Plan) -> None:
        due = {change.key for change in plan.due}
        try:
            self._folder.mkdir(self._modes.folder, parents=True, exist_ok=True)
            if FOLDER in due:
                self._folder.chmod(self._modes.folder)
            for name, content in self._contents.items():
                if name in due:
                    whole_file.write(str(self._folder / name), content, self._modes.file)
        except OSError as error:
            raise Failed(self.target, "write the report", str(error), REMEDY) from error


def _is_another_kind(path: Path, folder: Path) -> bool:
    return path.exists() and (not path.is_dir() if path == folder else not path.is_file())


def _file_state(path: Path) -> dict[str, str] | None:
    if not path.is_file():
        return None
    return {"sha256": _digest(path.read_bytes()), "mode": _mode(path)}


def _mode(path: Path) -> str:
    return oct(stat.S_IMODE(path.stat().st_mode))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
