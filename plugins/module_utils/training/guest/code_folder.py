"""The copy of a controller's folder on a node: the stored archive, and the folder with the unpacked files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tarfile
import tempfile
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import Failed, Refused, os_words
from ...guests.file_ownership import exposed
from ...plan import Plan, State
from ...runner import Params

NOTE = ".sha256"
BLOCK = 1 << 20


class CodeFolder:
    """One folder of a node as a subject of the runner.

    A folder that is unpacked ``once`` belongs to a run, which may change its files. Another folder is kept as it is in
    the archive.
    """

    name = "code"

    def __init__(self, params: Params) -> None:
        self._sha256, self._sent, self._is_once = str(params["sha256"]), params["archive"], bool(params["once"])
        self._store, self._dest = str(params["store"]), str(params["dest"])
        self._archive = os.path.join(self._store, f"{self._sha256}.tar")
        self.target = self._dest

    @property
    def is_missing(self) -> bool:
        """Return whether the archive is missing: neither stored on the node nor sent."""
        return not self._sent and checksum(self._archive) != self._sha256

    def read(self) -> dict[str, Any]:
        """Return the checksum of the archive that the folder was unpacked from, or None."""
        if os.geteuid() == 0 and (cause := exposed(self._dest) or exposed(self._store)):
            remedy = "run this as the user of the folder, or set a folder that only root can change"
            raise Refused(self.target, "unpack code that root runs", cause, remedy)
        return {"sha256": self._noted() if self._is_once else self._unpacked()}

    def plan(self, state: State) -> Plan:
        """Plan to unpack the archive; the files of a run are not replaced."""
        before = state["sha256"]
        if self._is_once and before not in (None, self._sha256):
            cause = f"the run has the code {str(before)[:12]}, and training_folder is now {self._sha256[:12]}"
            raise Refused(self.target, "unpack the code", cause, "set another training_name")
        is_due = before != self._sha256
        unmet = (f"the archive {self._sha256[:12]} is not on the node",) if is_due and self.is_missing else ()
        return Plan(before=dict(state), after={"sha256": self._sha256}, unmet=unmet)

    def apply(self, _plan: Plan) -> None:
        """Keep the archive and unpack it."""
        try:
            self._keep()
            if self._is_once:
                self._unpack_once()
            else:
                unpack(self._archive, self._dest, differing(self._archive, self._dest))
        except OSError as error:
            raise Failed(self.target, "unpack the code", os_words(error, self._store)) from error

    def _noted(self) -> str | None:
        try:
            with open(self._dest + NOTE, encoding="ascii") as file:
                return file.read().strip() or None
        except OSError:
            return None

    def _unpacked(self) -> str | None:
        if checksum(self._archive) != self._sha256:
            return None
        return None if differing(self._archive, self._dest) else self._sha256

    def _keep(self) -> None:
        if checksum(self._archive) == self._sha256:
            return
        if checksum(self._sent) != self._sha256:
            raise Failed(self.target, "read the archive", "files of the folder changed meanwhile", "run this again")
        os.makedirs(self._store, mode=0o755, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".new-", dir=self._store)
        try:
            with open(handle, "wb") as file, open(self._sent, "rb") as sent:
                shutil.copyfileobj(sent, file)
            os.replace(temporary, self._archive)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)

    def _unpack_once(self) -> None:
        above = os.path.dirname(self._dest)
        os.makedirs(above, mode=0o755, exist_ok=True)
        temporary = tempfile.mkdtemp(prefix=".new-", dir=above)
        try:
            os.chmod(temporary, 0o755)  # noqa: S103 # as the run directory # nosec B103
            unpack(self._archive, temporary)
            self._rename(temporary)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        with open(self._dest + NOTE, "w", encoding="ascii") as file:
            file.write(self._sha256)

    def _rename(self, temporary: str) -> None:
        """Rename the unpacked folder; of several nodes that share a disk, the first one wins."""
        try:
            os.rename(temporary, self._dest)
        except OSError as error:
            if differing(self._archive, self._dest):
                remedy = "set another training_name, or remove this folder"
                raise Refused(self.target, "unpack the code", "it contains other files", remedy) from error


class MadeFolders:
    """Folders that must exist on a node; existing ones stay unchanged."""

    name = "folders"

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = [str(path) for path in paths]
        self.target = ", ".join(self._paths)

    def read(self) -> dict[str, Any]:
        return {"folders": [path for path in self._paths if os.path.isdir(path)]}

    def plan(self, state: State) -> Plan:
        return Plan(before=dict(state), after={"folders": self._paths})

    def apply(self, plan: Plan) -> None:
        """Create them, readable by all users."""
        try:
            for path in plan.after["folders"]:
                os.makedirs(path, mode=0o755, exist_ok=True)
        except OSError as error:
            raise Failed(self.target, "create the folders", os_words(error, self.target)) from error


def checksum(path: str) -> str | None:
    """Return the checksum of a file; None if there is no such file."""
    sha256 = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(BLOCK), b""):
                sha256.update(block)
    except OSError:
        return None
    return sha256.hexdigest()


def differing(path: str, folder: str) -> list[str]:
    """Return the members of an archive that a folder lacks or has with other content or permissions."""
    with tarfile.open(path) as archive:
        return [member.name for member in archive if not _is_same(archive, member, os.path.join(folder, member.name))]


def _is_same(archive: tarfile.TarFile, member: tarfile.TarInfo, there: str) -> bool:
    try:
        if member.issym():
            return os.readlink(there) == member.linkname
        if member.isdir():
            return os.path.isdir(there)
        with open(there, "rb") as file:
            content: Any = archive.extractfile(member)
            has_mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode) == member.mode
            return has_mode and not os.path.islink(there) and bool(file.read() == content.read())
    except OSError:
        return False


def unpack(path: str, folder: str, names: Iterable[str] | None = None) -> None:
    """Unpack an archive, or some of its members; each file atomically replaces the file with its name."""
    desired = None if names is None else set(names)
    with tarfile.open(path) as archive:
        for member in archive:
            if desired is None or member.name in desired:
                _unpack_one(archive, member, folder)


def _unpack_one(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: str) -> None:
    is_known = member.isfile() or member.issym() or member.isdir()
    if os.path.isabs(member.name) or ".." in member.name.split("/") or not is_known:
        raise OSError(0, "the archive contains a member that is not a file in the folder", member.name)
    target = os.path.join(folder, member.name)
    os.makedirs(target if member.isdir() else os.path.dirname(target), mode=0o755, exist_ok=True)
    if member.isdir():
        return
    temporary = os.path.join(os.path.dirname(target), f".dml-{uuid.uuid4().hex}")
    try:
        if member.issym():
            os.symlink(member.linkname, temporary)
        else:
            content: Any = archive.extractfile(member)
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, member.mode), "wb") as file:
                shutil.copyfileobj(content, file)
                os.fchmod(file.fileno(), member.mode)
            if member.mtime:
                # The last write, when the file is closed, would change the time.
                os.utime(temporary, (member.mtime, member.mtime))
        os.replace(temporary, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
