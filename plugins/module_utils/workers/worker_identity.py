"""The virtual machines of the workers, identified by their marks.

The mark is the identity: it contains the worker's name and the instance UUID of its virtual machine. A clone of the
machine has a copy of the mark but another instance UUID; a renamed or moved machine keeps both. So the machine with the
UUID in its mark is the worker, whatever its name is. If no machine has that UUID, for example after a restore from a
backup or with marks of older versions, which contain no UUID, the worker is the machine with the name in its mark. If
the UUID and the name match different machines, the user must decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import NotFound, Refused
from ..vsphere.properties import Found, Values
from ..vsphere.sdk import ApiObject
from . import worker_mark
from .machine import HIDDEN

UUID = "config.instanceUuid"
PATHS = ("name", "customValue", UUID, "config.template", "runtime.powerState")


@dataclass(frozen=True)
class MarkedMachine:
    """A virtual machine with a mark, which may be a copy of another machine's mark."""

    ref: Any
    values: Values
    mark: Mapping[str, Any]

    @property
    def shown(self) -> str:
        """The name that vCenter shows."""
        return str(self.values["name"])

    @property
    def matches_uuid(self) -> bool:
        """Whether the mark contains the instance UUID of this machine."""
        return bool(self.values.get(UUID) and self.mark.get("uuid") == self.values[UUID])

    @property
    def matches_name(self) -> bool:
        return bool(self.mark["name"] == self.shown)

    @property
    def doubtful(self) -> bool:
        """Whether the machine may be the worker, or uses the worker's addresses."""
        template = bool(self.values.get("config.template"))
        return not template and ("uuid" not in self.mark or self.values.get("runtime.powerState") == "poweredOn")


class WorkerIdentities:
    """The workers among the virtual machines of a vCenter, by the clusters and the names in their marks."""

    def __init__(self, definitions: Sequence[ApiObject], machines: Sequence[Found]) -> None:
        self._marked_machines: dict[tuple[str, str], list[MarkedMachine]] = {}
        for ref, values in machines:
            if (mark := worker_mark.read(definitions, values.get("customValue"))) is not None:
                key = str(mark.get("cluster", "")), str(mark["name"])
                self._marked_machines.setdefault(key, []).append(MarkedMachine(ref, values, mark))
        self._claims = {key: _claims(marked_machines) for key, marked_machines in self._marked_machines.items()}
        self._marks = {one.ref._moId: one.mark for claims in self._claims.values() for one in claims}

    def mark_of(self, ref: ApiObject) -> dict[str, object] | None:
        """Return the mark of a worker; None for a machine without a mark, and for a copy of a worker."""
        mark = self._marks.get(ref._moId)
        return dict(mark) if mark is not None else None

    def all(self) -> list[MarkedMachine]:
        """Return the machines of all workers; ``worker`` refuses two machines of one worker."""
        return [claim for claims in self._claims.values() for claim in claims]

    def worker(self, cluster: str, name: str) -> MarkedMachine | None:
        """Return the machine of a worker, whatever its name is; refused if two machines match."""
        claims = self._claims.get((cluster, name), [])
        if len(claims) > 1:
            named = " and ".join(sorted(f"{claim.shown} ({claim.ref._moId})" for claim in claims))
            reason = f"several virtual machines have its mark and match its name or its instance UUID: {named}"
            remedy = f"clear the custom attribute {worker_mark.ATTRIBUTE} of those that are not the worker"
            raise NotFound(name, "take one virtual machine as the worker", reason, remedy)
        return claims[0] if claims else None

    def copies(self, cluster: str, name: str) -> list[MarkedMachine]:
        """Return the machines with a copy of a worker's mark."""
        return [one for one in self._marked_machines.get((cluster, name), []) if one.ref._moId not in self._marks]

    def refuse_unreadable(self, cluster: str, name: str, tried: str) -> None:
        """Refuse to count a worker as missing if vCenter does not show the UUID of a machine with its mark.

        Such a machine was renamed or is a copy, and only its UUID shows which.
        """
        unreadable = [copy.shown for copy in self.copies(cluster, name) if not copy.values.get(UUID)]
        if unreadable and self.worker(cluster, name) is None:
            shown = ", ".join(sorted(unreadable))
            reason = f"{shown} carries its mark, and {HIDDEN}"
            remedy = f"bring the datastore and the host of {shown} back, and run again"
            raise Refused(name, tried, reason, remedy)

    def refuse_doubtful(self, cluster: str, name: str) -> None:
        """Refuse to build a worker if another machine may be the worker, or uses its addresses."""
        if doubtful := [copy.shown for copy in self.copies(cluster, name) if copy.doubtful]:
            reason = f"{', '.join(sorted(doubtful))} carries its mark, and no virtual machine is named {name}"
            remedy = (
                f"rename that machine to {name} if it is the worker under another name, or a restored backup;"
                f" otherwise clear its custom attribute {worker_mark.ATTRIBUTE}"
            )
            raise Refused(name, "build it", reason, remedy)


def names_of(machines: Sequence[Found]) -> dict[str, list[Any]]:
    """Return the references of all machines by the name that vCenter shows."""
    references: dict[str, list[Any]] = {}
    for ref, values in machines:
        references.setdefault(str(values["name"]), []).append(ref)
    return references


def _claims(marked_machines: Sequence[MarkedMachine]) -> list[MarkedMachine]:
    """Return the machines that match a worker: one, unless the UUID and the name match different machines."""
    return [marked for marked in marked_machines if marked.matches_uuid or marked.matches_name]
