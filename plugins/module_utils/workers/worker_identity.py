# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Tells which virtual machine is which worker.

The mark is the identity: it names the worker and the instance UUID of its virtual machine. vCenter copies the mark when
somebody clones the machine, and gives the copy another instance UUID; it keeps both when somebody renames or moves the
machine. So the machine that has the UUID of its mark is the worker, whatever its name is. Where no machine has it, as
after the restore of a backup or with the marks of older versions, which name no UUID, it is the machine whose own name
the mark names. One machine by UUID and another by name contradict each other, and nobody but a person can decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import NotFound, Refused
from ..vsphere.properties import Found, Values
from . import worker_mark

UUID = "config.instanceUuid"
PATHS = ("name", "customValue", UUID, "config.template", "runtime.powerState")


@dataclass(frozen=True)
class MarkedMachine:
    """A virtual machine that carries a mark: its own, or the copy of another's."""

    ref: Any
    values: Values
    mark: Mapping[str, Any]

    @property
    def shown(self) -> str:
        """The name that vCenter shows."""
        return str(self.values["name"])

    @property
    def of_uuid(self) -> bool:
        """Whether the mark was written for this very machine."""
        return bool(self.values.get(UUID) and self.mark.get("uuid") == self.values[UUID])

    @property
    def of_name(self) -> bool:
        return bool(self.mark["name"] == self.shown)

    @property
    def doubtful(self) -> bool:
        """Whether the machine could be the worker after all, or answers under the worker's addresses."""
        template = bool(self.values.get("config.template"))
        return not template and ("uuid" not in self.mark or self.values.get("runtime.powerState") == "poweredOn")


class WorkerIdentities:
    """The workers among the virtual machines of a vCenter, by the clusters and the names in their marks."""

    def __init__(self, definitions: Sequence[Any], machines: Sequence[Found]) -> None:
        self._carriers: dict[tuple[str, str], list[MarkedMachine]] = {}
        for ref, values in machines:
            if (found := worker_mark.read(definitions, values.get("customValue"))) is not None:
                key = str(found.get("cluster", "")), str(found["name"])
                self._carriers.setdefault(key, []).append(MarkedMachine(ref, values, found))
        self._claims = {key: _claims(carriers) for key, carriers in self._carriers.items()}
        self._marks = {one.ref._moId: one.mark for claims in self._claims.values() for one in claims}

    def mark_of(self, ref: Any) -> dict[str, Any] | None:
        """The mark of a worker; None for a machine without a mark, and for a copy of a worker."""
        found = self._marks.get(ref._moId)
        return dict(found) if found is not None else None

    def all(self) -> list[MarkedMachine]:
        """The machines of all workers; two that claim one name are refused by ``one``."""
        return [one for claims in self._claims.values() for one in claims]

    def one(self, cluster: str, name: str) -> MarkedMachine | None:
        """The machine of a worker, whatever its name is; refused where two claim to be it."""
        claims = self._claims.get((cluster, name), [])
        if len(claims) > 1:
            named = " and ".join(sorted(f"{one.shown} ({one.ref._moId})" for one in claims))
            said = f"several virtual machines carry its mark, by its name or its instance UUID: {named}"
            remedy = f"clear the custom attribute {worker_mark.ATTRIBUTE} of those that are not the worker"
            raise NotFound(name, "take one virtual machine as the worker", said, remedy)
        return claims[0] if claims else None

    def copies(self, cluster: str, name: str) -> list[MarkedMachine]:
        """The machines that carry the mark of a worker and are not the worker."""
        return [one for one in self._carriers.get((cluster, name), []) if one.ref._moId not in self._marks]

    def refuse_doubtful(self, cluster: str, name: str) -> None:
        """Refuse to build a worker beside a machine that may be it, or that answers under its addresses."""
        if doubtful := [one.shown for one in self.copies(cluster, name) if one.doubtful]:
            said = f"{', '.join(sorted(doubtful))} carries its mark, and no virtual machine is named {name}"
            remedy = (
                f"name that machine {name} if it is the worker, under another name, or a restored backup;"
                f" else clear its custom attribute {worker_mark.ATTRIBUTE}"
            )
            raise Refused(name, "build it", said, remedy)


def names_of(machines: Sequence[Found]) -> dict[str, list[Any]]:
    """The references of all machines by the name that vCenter shows."""
    found: dict[str, list[Any]] = {}
    for ref, values in machines:
        found.setdefault(str(values["name"]), []).append(ref)
    return found


def _claims(carriers: Sequence[MarkedMachine]) -> list[MarkedMachine]:
    """The machines that may be one worker: one, unless uuid and name contradict each other."""
    return [one for one in carriers if one.of_uuid or one.of_name]
