"""The outputs of a run: files that the training program wrote on a node, copied to the controller.

A node can list wrong sizes: limits apply to the data that arrives and is written.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shlex
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import runner
from ...core.names import printable
from ...errors import Failed, Refused
from ...plan import Plan
from .node_stream import BLOCK, EndedEarly, NodeStream, StreamError

HEADER = tarfile.BLOCKSIZE
MOST_EXTENDED_BYTES, MOST_EXTENDED = 1 << 16, 4
# After the last file, tar fills its last record.
MOST_AFTER_THE_END = 1 << 20
LATEST = 1 << 40
EXTENDED = (tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE)
REGULAR = (tarfile.REGTYPE, tarfile.AREGTYPE)
MEGABYTE = 1_000_000
MOST_LISTED_BYTES, MOST_FILES = 16 << 20, 50_000
# A run need not have outputs, but its folder must be readable.
LOOK = "cd {0} || exit; cd {1} 2>/dev/null || exit 0; exec find . -type f -printf '%s %Ts %P\\0'"
ENTRY = re.compile(r"([0-9]{1,18} [0-9]{1,18}) (.+)", re.DOTALL)
# A path that may be a file; the names begin with it.
LOOK_AT = "cd {0} || exit; exec find ./{1} -type f -printf '%s %Ts %p\\0'"
SEND = "cd {0} && exec tar -cf - --null -T -"
# A program that trains writes its outputs meanwhile, which tar reports with exit code 1.
SEND_GROWING = "cd {0} && { tar -cf - --null -T - 2>/dev/null; [ $? -le 1 ]; }"
BY_HAND = "copy them manually, they stay on the node"
NEW, LONGEST = ".dml-", 300


class Outputs:
    """The copy of a folder of a node as a subject of the runner; other files in the copy are left as they are."""

    name = "outputs"
    _send = SEND

    def __init__(self, params: Mapping[str, Any]) -> None:
        self._reach, self._folder = list(params["reach"]), str(params["folder"])
        self._dest, self._limit = Path(params["dest"]), int(params["limit"])
        self.target = f"{params['node']}:{self._folder}"
        self._there: dict[str, str] = {}

    def read(self) -> dict[str, Any]:
        """Return the size and the time of each output in its copy; None for a file that is not here."""
        self._there = self._listed()
        return {path: _stamp(self._dest / path) for path in self._there}

    def plan(self, state: Mapping[str, object]) -> Plan:
        """Plan to copy new and changed files; refuse more than the limit."""
        size = self._size(self._there)
        if size > self._limit * MEGABYTE:
            cause = f"they have {size / MEGABYTE:.1f} MB, more than {self._limit} MB; they stay on the node"
            raise Refused(self.target, "copy the outputs", cause, "set training_outputs_limit, or copy them manually")
        return Plan(before=dict(state), after=dict(self._there))

    def apply(self, plan: Plan) -> None:
        """Copy the files that differ in one stream; after an error, none of them remains."""
        names = [change.key for change in plan.due]
        was_there = self._dest.is_dir()
        self._dest.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._remove_left()
        new = Path(tempfile.mkdtemp(prefix=NEW, dir=self._dest))
        lock = os.open(new, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._receive(names, new)
            for name in names:
                (self._dest / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                os.replace(new / name, self._dest / name)
        except OSError as error:
            raise self._failed("copy the outputs", str(error)) from error
        finally:
            os.close(lock)
            shutil.rmtree(new, ignore_errors=True)
            if not was_there and not any(self._dest.iterdir()):
                self._dest.rmdir()

    def _remove_left(self) -> None:
        """Remove what a killed process left of its copy; one that still copies has its folder locked."""
        for left in self._dest.glob(f"{NEW}*/"):
            with contextlib.suppress(OSError):
                lock = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left, ignore_errors=True)
                finally:
                    os.close(lock)

    @property
    def names(self) -> list[str]:
        return sorted(self._there)

    @property
    def _sending(self) -> str:
        return self._send.replace("{0}", shlex.quote(self._folder))

    def _receive(self, names: Iterable[str], new: Path) -> None:
        """Write the files that the node sends into a new folder."""
        with tempfile.TemporaryFile() as requested:
            requested.write(b"".join(os.fsencode(f"./{name}") + b"\0" for name in names))
            requested.seek(0)
            cause = ""
            with NodeStream(self._on_node(self._sending), requested) as stream:
                try:
                    try:
                        self._write_all(stream, set(names), new)
                    except EndedEarly as error:
                        cause = str(error)
                    code = stream.ended()
                except StreamError as error:
                    raise self._failed("copy the outputs", str(error)) from error
                if code or cause:
                    raise self._failed("copy the outputs", stream.errors or cause or f"exit code {code}")

    def _write_all(self, stream: NodeStream, missing: set[str], new: Path) -> None:
        left = self._limit * MEGABYTE - self._size(name for name in self._there if name not in missing)
        for member in tar_members(stream):
            if member.name not in missing:
                raise StreamError(f"the node sent {member.name}, which is not one of its outputs")
            left -= member.size
            if left < 0:
                raise StreamError(f"the node sends more than {self._limit} MB, which is more than it listed")
            missing.remove(member.name)
            _write(new / member.name, member.time, tar_content(stream, member.size))
        if missing:
            raise EndedEarly(f"the node did not send {min(missing)}, which it listed")

    def _listed(self) -> dict[str, str]:
        """Return the size and the time of each file on the node."""
        command = self._on_node(self._looking())
        output, count = bytearray(), 0
        try:
            with NodeStream(command) as stream:
                while data := stream.some():
                    output += data
                    if len(output) > MOST_LISTED_BYTES:
                        raise StreamError(f"the node lists more than {MOST_LISTED_BYTES >> 20} MiB of names")
                    count += data.count(b"\0")
                    if count > MOST_FILES:
                        raise StreamError(f"the node lists more than {MOST_FILES} files")
                code, errors = stream.ended(), stream.errors
        except (OSError, StreamError) as error:
            raise self._failed("list the outputs", str(error)) from error
        if code:
            raise self._failed("list the outputs", errors or f"exit code {code}")
        return dict(self._entry(text) for text in os.fsdecode(bytes(output)).split("\0") if text)

    def _looking(self) -> str:
        return LOOK.format(*map(shlex.quote, os.path.split(self._folder)))

    def _on_node(self, script: str) -> list[str]:
        """Return the command that runs a shell script on the node: if it ends in sudo, it runs only programs."""
        return [*self._reach, f"sh -c {shlex.quote(script)}"]

    def _entry(self, text: str) -> tuple[str, str]:
        entry = ENTRY.fullmatch(text)
        if not entry or ".." in entry[2].split("/") or entry[2].startswith("/"):
            raise Failed(self.target, "list the outputs", f"the node sent {text[:LONGEST]!r}")
        return entry[2], entry[1]

    def _size(self, names: Iterable[str]) -> int:
        return sum(int(self._there[name].split()[0]) for name in names)

    def _failed(self, tried: str, cause: str) -> Failed:
        return Failed(self.target, tried, printable(cause), BY_HAND)


def copy_outputs(**options: object) -> dict[str, object]:
    """Copy the files of a folder of a node to the controller; none of the new files remains after an error.

    ``node`` is the name of the node, ``reach`` the command that runs a shell command there, ``folder`` its folder,
    ``dest`` the one here, and ``limit`` the largest size of all files in MB. ``names`` are those of all files there.
    """
    outputs = Outputs(options)
    return {**runner.converge_one(runner.OfProgram(), outputs), "names": outputs.names}


class GrowingOutputs(Outputs):
    """The outputs of a job that runs: a file that changes meanwhile is copied again the next time."""

    name = "outputs so far"
    _send = SEND_GROWING


def copy_growing_outputs(**options: object) -> dict[str, object]:
    """Copy the outputs of a job that runs, with the options of ``copy_outputs``."""
    return _copied(GrowingOutputs(options))


def _copied(outputs: Outputs) -> dict[str, object]:
    plan = outputs.plan(outputs.read())
    if plan.due:
        outputs.apply(plan)
    return {"changed": bool(plan.due), "names": outputs.names}


class GrowingPath(GrowingOutputs):
    """One file or folder, ``path``, of a folder in which a job runs."""

    name = "files"

    def __init__(self, params: Mapping[str, object]) -> None:
        super().__init__(params)
        self._path = str(params["path"])
        self.target = f"{self.target}/{self._path}"

    def _looking(self) -> str:
        return LOOK_AT.format(shlex.quote(self._folder), shlex.quote(self._path))

    def _entry(self, text: str) -> tuple[str, str]:
        size, time, name = [*text.split(" ", 2), "", ""][:3]
        return super()._entry(f"{size} {time} {name[2:] if name.startswith('./') else name}")


def copy_growing_path(**options: object) -> dict[str, object]:
    """Copy one file or folder of a job that runs, with the options of ``copy_outputs`` and its ``path``."""
    return _copied(GrowingPath(options))


def _write(path: Path, time: int, parts: Iterable[bytes]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.writelines(parts)
    os.utime(path, (time, time))


def _stamp(path: Path) -> str | None:
    """Return the size and the time of a file, or None."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return f"{status.st_size} {int(status.st_mtime)}"


@dataclass(frozen=True)
class Member:
    """The header of one file."""

    name: str
    size: int
    time: int


def tar_members(stream: NodeStream) -> Iterator[Member]:
    """Yield the header of each file; the caller reads its content before it asks for the next one."""
    more: dict[str, str] = {}
    extended = 0
    while True:
        header = _header(stream.exactly(HEADER))
        if header is None:
            _check_end(stream)
            return
        if header.type in EXTENDED:
            extended += 1
            if extended > MOST_EXTENDED or header.size > MOST_EXTENDED_BYTES:
                raise StreamError(
                    f"the node sent an extended header of {header.size} bytes, or more than {MOST_EXTENDED}"
                )
            more.update(_extended(header, _padded(stream, header.size)))
            continue
        yield _member(header, more)
        more, extended = {}, 0


def tar_content(stream: NodeStream, size: int) -> Iterator[bytes]:
    left = size
    while left:
        data = stream.some(min(left, BLOCK))
        if not data:
            raise EndedEarly("the output of the node ended early")
        left -= len(data)
        yield data
    stream.exactly(-size % HEADER)


def _header(block: bytes) -> tarfile.TarInfo | None:
    """Return a header; None at the end of the archive."""
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError as error:
        if not block.strip(b"\0"):
            return None
        raise StreamError(f"the node sent no tar archive: {error}") from error


def _member(header: tarfile.TarInfo, more: dict[str, str]) -> Member:
    try:
        name, size, time = more.get("path", header.name), int(more.get("size", header.size)), float(header.mtime)
        time = float(more.get("mtime", time))
    except ValueError as error:
        raise StreamError(f"the node sent a malformed extended header: {error}") from error
    name = name[2:] if name.startswith("./") else name
    if header.type not in REGULAR or any(key.startswith("GNU.sparse") for key in more):
        raise StreamError(f"the node sent {name}, which is not one of its outputs")
    if size < 0 or not 0 <= time < LATEST:
        raise StreamError(f"the node sent {name} with a size or a time that no file has")
    return Member(name, size, int(time))


def _extended(header: tarfile.TarInfo, data: bytes) -> dict[str, str]:
    if header.type == tarfile.GNUTYPE_LONGNAME:
        return {"path": data.split(b"\0")[0].decode("utf-8", "surrogateescape")}
    found: dict[str, str] = {}
    while data:
        length, space, _rest = data.partition(b" ")
        if not space or not length.isdigit() or not len(length) + 1 < int(length[:8]) <= len(data):
            raise StreamError("the node sent a malformed extended header")
        record, data = data[len(length) + 1 : int(length)], data[int(length) :]
        key, _equal, value = record.rstrip(b"\n").partition(b"=")
        found[key.decode("utf-8", "replace")] = value.decode("utf-8", "surrogateescape")
    return found


def _padded(stream: NodeStream, size: int) -> bytes:
    data = stream.exactly(size)
    stream.exactly(-size % HEADER)
    return data


def _check_end(stream: NodeStream) -> None:
    left = MOST_AFTER_THE_END
    while data := stream.some():
        left -= len(data)
        if left < 0:
            raise StreamError("the node sent data after the end of its archive")
