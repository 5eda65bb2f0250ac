"""The data of runs on a node: one read-only folder for each checksum, which is complete or absent."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from ...errors import Failed, Refused, os_words
from ...guests.file_ownership import exposed
from ...plan import Plan, State
from ...runner import Params
from ..launch import data
from . import code_folder

BLOCK, SECONDS = 1 << 20, 60
ONLY_READ = 0o555


class SharedData:
    """The data with one checksum as a subject of the runner.

    A folder has its final name only when it is complete. One run at a time fills it, after it removed half a copy.
    """

    name = "data"

    def __init__(self, params: Params, open_url: Callable[..., Any]) -> None:
        self._open_url = open_url
        self._sha256, self._sent, self._url = str(params["sha256"]), params["archive"], str(params["url"] or "")
        self._store, self._source = str(params["dest"]), self._url or str(params["path"])
        self._folder = os.path.join(self._store, self._sha256)
        self._file = data.file_of(self._url) if self._url else str(params["file"])
        self.target = f"training_data {self._source}"

    @property
    def path(self) -> str:
        """Return the path of the data for the ranks: a folder, or the only file in it."""
        return os.path.join(self._folder, self._file) if self._file else self._folder

    @property
    def is_missing(self) -> bool:
        """Return whether the data is neither on the node nor was it sent."""
        return not (self._sent or self._url or os.path.isdir(self._folder))

    def read(self) -> dict[str, Any]:
        """Return the checksum of the data if it is on the node."""
        if os.geteuid() == 0 and (cause := exposed(self._store)):
            remedy = "run this as the user of the folder, or set a folder that only root can change"
            raise Refused(self.target, f"keep it in {self._store}", cause, remedy)
        return {"sha256": self._sha256 if os.path.isdir(self._folder) else None}

    def plan(self, state: State) -> Plan:
        unmet = (f"the data {self._sha256[:12]} is not on the node",) if self.is_missing else ()
        return Plan(before=dict(state), after={"sha256": self._sha256}, unmet=unmet)

    def apply(self, _plan: Plan) -> None:
        """Copy the data into a new folder, and give the folder its name."""
        try:
            os.makedirs(self._store, mode=0o755, exist_ok=True)
            with self._locked():
                if not os.path.isdir(self._folder):
                    self._fill()
        except OSError as error:
            raise Failed(self.target, "copy it to the node", os_words(error, self._store)) from error

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with open(os.path.join(self._store, f".{self._sha256}.lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _fill(self) -> None:
        prefix = f".new-{self._sha256}-"
        for left in glob.glob(os.path.join(self._store, f"{prefix}*")):
            _remove(left)
        new = tempfile.mkdtemp(prefix=prefix, dir=self._store)
        try:
            if self._url:
                self._download(os.path.join(new, self._file))
            else:
                self._unpack(new)
            _make_read_only(new)
            os.rename(new, self._folder)
        finally:
            _remove(new)

    def _download(self, path: str) -> None:
        digest = hashlib.sha256()
        with self._open_url(self._url, timeout=SECONDS) as answer, open(path, "xb") as file:
            for block in iter(lambda: answer.read(BLOCK), b""):
                digest.update(block)
                file.write(block)
        if digest.hexdigest() != self._sha256:
            raise data.other_content(self._source, self._sha256, digest.hexdigest())

    def _unpack(self, folder: str) -> None:
        found = code_folder.checksum(self._sent)
        if found != self._sha256:
            raise data.other_content(self._source, self._sha256, str(found))
        code_folder.unpack(self._sent, folder)


def _make_read_only(folder: str) -> None:
    for top, _folders, names in os.walk(folder, topdown=False):
        for name in names:
            path = os.path.join(top, name)
            if not os.path.islink(path):
                os.chmod(path, os.lstat(path).st_mode & ONLY_READ | 0o444)
        os.chmod(top, ONLY_READ)


def _remove(folder: str) -> None:
    """Remove a folder, also a read-only one."""
    for top, _folders, _names in os.walk(folder):
        os.chmod(top, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
