"""A cluster's lock as folders next to the cluster: numbered generations, of which the highest counts.

Every change of the lock, including a renewal, is a new generation. It is prepared under a separate name with the
complete record in the names of its subfolders, and then renamed to the next number. The server lets only one of several
rivals have that number and answers DuplicateName to the others, so a record is never read half written, and a change
that was decided on an old record cannot replace a newer one. Numbers only grow, because a late rival with an old number
must find that it does not count.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...errors import Failed
from ...vsphere import tasks
from ...vsphere.faults import is_caused_by, translating_faults
from ...vsphere.properties import find_all, id_of
from ...vsphere.sdk import ApiObject, vim, vmodl
from ...vsphere.session import Session
from . import lock_rules

PREFIX = "dml.vsphere.lock "
CLAIM = "claim "
GONE = "dml.vsphere.gone "
TASK_SECONDS = 120
# A run that was killed between two calls left a claim of this age.
STALE_CLAIM_SECONDS = 3600


@dataclass(frozen=True)
class Folder:
    """One folder, with the folders in it."""

    ref: Any
    name: str
    inside: tuple[Folder, ...] = ()


@dataclass(frozen=True)
class LockState:
    """The lock's folder as read at one time, and the remains of one that a killed run was removing."""

    root: Folder | None
    number: int
    current: Folder | None
    remains: tuple[Folder, ...] = ()

    @property
    def record(self) -> lock_rules.LockRecord | None:
        """Return the record in the folders; None if no run ever held the lock."""
        return lock_rules.decode([line.name for line in self.current.inside]) if self.current else None

    @property
    def unreadable(self) -> bool:
        return self.current is not None and self.record is None


class LockFolders:
    """The folders of one cluster's lock."""

    def __init__(self, session: Session, cluster: str, parent: ApiObject, key: str) -> None:
        self.session, self.cluster, self.parent = session, cluster, parent
        # The id of the cluster, not its name: names may be as long as a folder's name can be, are escaped, and change.
        self.name = PREFIX + key

    def read(self) -> LockState:
        all_folders = find_all(self.session, vim.Folder, ("name", "parent"))
        parent = self.parent._moId
        siblings = [(ref, values["name"]) for ref, values in all_folders if id_of(values.get("parent")) == parent]
        # Anywhere, because the cluster may have been moved to another folder since: the id in the name is unique.
        roots = [ref for ref, values in all_folders if values["name"] == self.name]
        remains = tuple(_tree(ref, its_name, all_folders) for ref, its_name in siblings if its_name.startswith(GONE))
        if not roots:
            return LockState(None, 0, None, remains)
        root = _tree(roots[0], self.name, all_folders)
        numbered = {int(folder.name): folder for folder in root.inside if folder.name.isdigit()}
        highest = max(numbered, default=0)
        return LockState(root, highest, numbered.get(highest), remains)

    def write(self, state: LockState, record: lock_rules.LockRecord, now: datetime) -> bool:
        """Make the record the next generation; False if another controller won."""
        root = state.root.ref if state.root else self._make_root()
        with translating_faults(self.cluster, "write its lock"):
            claim = root.CreateFolder(f"{CLAIM}{int(now.timestamp())} {secrets.token_hex(4)}")
            for line in lock_rules.encode(record):
                claim.CreateFolder(line)
        won = self._rename(claim, str(state.number + 1)) and self._still_highest(claim)
        self._tidy(claim, now, won=won)
        return won

    def remove(self, state: LockState) -> None:
        """Remove a lock that this run holds; it is renamed first, so that no other run takes it in between."""
        roots = [folder for folder in (state.root, *state.remains) if folder]
        if state.root:
            self._rename(state.root.ref, f"{GONE}{secrets.token_hex(4)}")
        inside = [folder for root in roots for folder in root.inside]
        for level in ([line for folder in inside for line in folder.inside], inside, roots):
            self._destroy(level)

    def _make_root(self) -> ApiObject:
        with translating_faults(
            self.cluster, "create the folder of its lock", "the account needs the privilege Folder.Create"
        ):
            try:
                return self.parent.CreateFolder(self.name)
            except vim.fault.DuplicateName as fault:  # another controller won
                return fault.object

    def _rename(self, claim: ApiObject, number: str) -> bool:
        try:
            with translating_faults(self.cluster, "take its lock"):
                task = claim.Rename_Task(number)
            tasks.wait(self.session, tasks.Started(task, self.cluster, "take its lock"), TASK_SECONDS)
        except Failed as error:
            if is_caused_by(error, vim.fault.DuplicateName):
                return False
            raise
        return True

    def _still_highest(self, claim: ApiObject) -> bool:
        current = self.read().current
        return current is not None and bool(current.ref._moId == claim._moId)

    def _tidy(self, claim: ApiObject, now: datetime, *, won: bool) -> None:
        """Remove obsolete folders: older generations, claims of killed runs, and this run's claim if it lost."""
        state = self.read()
        inside = state.root.inside if state.root else ()
        old = [folder for folder in inside if won and folder.name.isdigit() and int(folder.name) < state.number]
        stale = [folder for folder in inside if _claimed(folder.name, now) > STALE_CLAIM_SECONDS]
        ours = [folder for folder in inside if not won and folder.ref._moId == claim._moId]
        useless = [*old, *stale, *ours]
        self._destroy([line for folder in useless for line in folder.inside if not line.inside])
        self._destroy(useless)

    def _destroy(self, folders: Sequence[Folder]) -> None:
        tried = "remove the remains of earlier locks"
        outcomes = [self._destroying(folder.ref, tried) for folder in folders]
        started = [task for task in outcomes if task is not None]
        for outcome in tasks.wait_all(self.session, started, TASK_SECONDS):
            if isinstance(outcome, Failed):
                _raise_unless_removed(outcome)

    def _destroying(self, ref: ApiObject, tried: str) -> tasks.Started | None:
        try:
            with translating_faults(self.cluster, tried):
                return tasks.Started(ref.Destroy_Task(), self.cluster, tried)
        except Failed as error:
            _raise_unless_removed(error)
            return None


def _raise_unless_removed(error: Failed) -> None:
    """Raise the error, unless another run has already removed the folder."""
    if not is_caused_by(error, vmodl.fault.ManagedObjectNotFound):
        raise error


def _tree(ref: ApiObject, name: str, all_folders: Sequence[tuple[Any, dict[str, Any]]]) -> Folder:
    inside = [(child, values["name"]) for child, values in all_folders if id_of(values.get("parent")) == ref._moId]
    return Folder(ref, name, tuple(_tree(child, its_name, all_folders) for child, its_name in inside))


def _claimed(name: str, now: datetime) -> float:
    """Return the age of a claim in seconds; 0 if the folder is not a claim."""
    words = name.split(" ")
    return now.timestamp() - int(words[1]) if name.startswith(CLAIM) and words[1].isdigit() else 0
