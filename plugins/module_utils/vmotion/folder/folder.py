# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The folder of a vMotion test: found where a test was not ended, made where a new one begins."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import Refused
from ...plan import Plan
from .journal import NAME, Journal, ends

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
NEW = "name another folder, or judge this test again by the playbook judge"


def unfinished(where: Path, cluster: str) -> list[Path]:
    """The folders of tests of a cluster that were begun there and not ended."""
    found = []
    for journal in sorted(where.glob(f"*/{NAME}")):
        first, last = ends(journal)
        is_open = first is not None and last is not None and last["entry"] != "end"
        if is_open and first and first["settings"]["cluster"] == cluster:
            found.append(journal.parent)
    return found


def find(folder: str, where: str, cluster: str) -> Path | None:
    """The folder of the test that goes on, or that is named; None where a new one is to be made."""
    if folder:
        _must_be_ours(Path(folder))
        _refuse_other(Path(folder), cluster)
        return Path(folder)
    found = unfinished(Path(where), cluster)
    for one in found:
        _must_be_ours(one)
    if len(found) > 1:
        said = f"several tests of this cluster were not ended: {', '.join(map(str, found))}"
        raise Refused(f"cluster {cluster}", "find its test", said, "name one of them by vmotion_test_folder")
    return found[0] if found else None


def tests_in(folder: Path) -> list[Path]:
    """The folders of tests at a folder or below it, such as that which the demo leaves."""
    return sorted(path.parent for pattern in (NAME, f"*/{NAME}", f"*/*/{NAME}") for path in folder.glob(pattern))


def one_test(folder: Path) -> Path:
    """The one test at a folder or below it."""
    found = tests_in(folder)
    if len(found) == 1:
        return found[0]
    said = f"there are several: {', '.join(map(str, found))}" if found else f"no {NAME} lies in it or below it"
    raise Refused(str(folder), "find the vMotion test in it", said, "name the folder of one test")


def _must_be_ours(folder: Path) -> None:
    """Refuse a journal that somebody else may have written: it says which commands run here, and as whom."""
    if not (folder / NAME).exists():
        return
    for path in (folder, folder / NAME):
        facts = path.lstat()
        if facts.st_uid != os.geteuid() or facts.st_mode & OTHERS_WRITE or stat.S_ISLNK(facts.st_mode):
            said = "others may have written it, and it says which commands run on this machine"
            raise Refused(
                str(path), "take up the test in it", said, "give tests a folder of your own: vmotion_test_dir"
            )


def _refuse_other(folder: Path, cluster: str) -> None:
    first, last = ends(folder / NAME) if (folder / NAME).exists() else (None, None)
    tried = f"test cluster {cluster} in it"
    if last is not None and last["entry"] == "end":
        raise Refused(str(folder), tried, "the test in it has ended", NEW)
    if first is not None and first["settings"]["cluster"] != cluster:
        raise Refused(str(folder), tried, f"it has a test of cluster {first['settings']['cluster']}", NEW)


class Opening:
    """Subject: the folder of a test, with this controller as the one that carries the test out."""

    name = "vMotion test"

    def __init__(self, settings: Mapping[str, Any], folder: str, where: str) -> None:
        self.settings, self.where = settings, where
        self.target = f"cluster {settings['cluster']}"
        self.folder = find(folder, where, settings["cluster"])
        self.is_open = False

    @property
    def is_taken_up(self) -> bool:
        """Whether an earlier controller began the test."""
        return self.folder is not None and (self.folder / NAME).exists() and not self.is_open

    def read(self) -> dict[str, Any]:
        """Whether this controller carries the test out."""
        return {"carried_out": self.is_open}

    def plan(self, current: Mapping[str, Any]) -> Plan:
        """It is to carry the test out."""
        return Plan(before=current, after={"carried_out": True})

    def apply(self, _plan: Plan) -> None:
        """Make the folder where there is none, and write down the settings of a new test and who carries it out."""
        if self.folder is None:
            os.makedirs(self.where, mode=0o700, exist_ok=True)
            self.folder = Path(tempfile.mkdtemp(prefix=f"{self.settings['cluster']}-", dir=self.where))
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        with Journal(self.folder / NAME) as journal:
            if not journal.entries:
                journal.append("open", settings=dict(self.settings))
            journal.append("controller", machine=socket.gethostname())
        self.is_open = True
