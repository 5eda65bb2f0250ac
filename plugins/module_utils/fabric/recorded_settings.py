"""The settings that clusters share, changed and restored with a record of their earlier values on the controller."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core import whole_file
from ..core.json_values import mapping
from ..durable.calls import Modules, Result, required
from ..errors import Refused
from ..vsphere.escaped_names import file_name

MODULE, SUFFIX = "shared_settings", "-shared-settings.json"
# Marks a record whose values a killed run may have restored already.
RESTORING = "restoring"

Options = dict[str, Any]
Record = dict[str, Any]


@dataclass(frozen=True)
class Records:
    """The records of all clusters in one folder; ``cluster`` is the one whose settings change."""

    folder: str
    cluster: str

    @property
    def path(self) -> Path:
        return Path(self.folder) / f"{file_name(self.cluster)}{SUFFIX}"

    @contextlib.contextmanager
    def locked(self, *, is_check: bool) -> Iterator[None]:
        """Let one run at a time decide from the records of all clusters; a check writes nothing and needs no lock."""
        if is_check:
            yield
            return
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            # The kernel releases the lock when the process ends.
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def own(self) -> Record:
        """Return the record of the cluster; empty without one."""
        return _read(self.path) if self.path.is_file() else {}

    def kept_by_others(self, vcenter: str, now: Mapping[str, Any] | None = None) -> Record:
        """Return the options of a vCenter that other clusters need, with their values before the first change.

        Options of vCenter affect every cluster: the oldest record has the values from before all changes. ``now`` has
        present values: those of a restoration that was killed before it count too, because it will be repeated.
        """
        kept: Record = {}
        for record in self._others():
            if vcenter and record.get("instance_uuid") == vcenter:
                values = mapping(record.get("vcenter_options"))
                changed = {key: one for key, one in values.items() if key in (now or {}) and (now or {})[key] != one}
                kept.update(changed if RESTORING in record else values)
        return kept

    def write(self, record: Record) -> None:
        whole_file.write(str(self.path), f"{json.dumps(record, indent=4, sort_keys=True)}\n".encode())

    def _others(self) -> Iterator[Record]:
        for path in sorted(Path(self.folder).glob(f"*{SUFFIX}")):
            if path != self.path:
                yield _read(path)


def change(calls: Modules, records: Records, options: Options, *, is_check: bool) -> Result:
    """Change the shared settings of a cluster; before the first change, record their values."""
    with records.locked(is_check=is_check):
        recorded = records.own()
        given = {**options, "cluster": records.cluster, "instance_uuid": recorded.get("instance_uuid") or ""}
        planned = required(calls.planned(MODULE, given))
        if is_check:
            return planned
        changes = any(one["changed"] for one in planned["settings"])
        previous = planned["previous"]
        now = mapping(previous.get("vcenter_options"))
        others = records.kept_by_others(str(previous["instance_uuid"]), now)
        shared = {key: others[key] for key in options["vcenter_options"] if key in others}
        if (changes or shared or recorded) and (options["allow_shared_settings"] or not changes):
            known = {key: value for key, value in recorded.items() if key != RESTORING}
            # Values that are recorded already are older than those of this vCenter now.
            records.write(_combined(_combined(previous, {"vcenter_options": shared}), known))
        return required(calls.here(MODULE, given))


def restore(calls: Modules, records: Records, options: Options, *, is_check: bool) -> Result:
    """Restore the recorded settings that no other cluster needs, and remove the record."""
    if not records.own():
        return {"changed": False}
    with records.locked(is_check=is_check):
        recorded = records.own()
        if not recorded:  # another run has restored them meanwhile
            return {"changed": False}
        vcenter = str(recorded.get("instance_uuid") or "")
        others = records.kept_by_others(vcenter)
        values = {key: one for key, one in mapping(recorded.get("vcenter_options")).items() if key not in others}
        earlier = {"vcenter_options": values, "drs_options": dict(mapping(recorded.get("drs_options")))}
        given = {**options, "cluster": records.cluster, "instance_uuid": vcenter, **earlier}
        # The module refuses a record of another vCenter, which then stays as it is.
        planned = required(calls.planned(MODULE, given))
        if is_check:
            return planned
        records.write({**recorded, RESTORING: True})
        done = required(calls.here(MODULE, given))
        records.path.unlink()
        return done


def _read(path: Path) -> Record:
    try:
        record = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(record, dict):
        raise _damaged(path, "it has no JSON object")
    return record


def _damaged(path: Path, cause: str) -> Refused:
    return Refused(str(path), "read the earlier values of shared settings", cause, "restore the file from a copy")


def _combined(one: Record, other: Record) -> Record:
    """Return both records, with the options of both; of a value in both, that of the other one."""
    options = {
        key: {**mapping(one.get(key)), **value} if isinstance(value, dict) else value for key, value in other.items()
    }
    return {**one, **options}
