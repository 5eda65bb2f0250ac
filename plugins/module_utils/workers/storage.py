"""The storage policies of workers: one for the home and all disks of a worker, with its compliance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import Refused
from ..plan import State
from ..vsphere import rest, storage_policies
from ..vsphere.sdk import ApiObject
from ..vsphere.session import Session
from ..vsphere.storage_policies import COMPLIANT, Holder
from . import foreign_disks
from .machine import Machine
from .worker_spec import WorkerSpec

OPTION, STATE = "storage_policy", "storage_compliance"


@dataclass
class UsedPolicies:
    """The policies that the workers of a call name; ``read`` reads them again. Without one, nothing is read."""

    ids: dict[str, str] = field(default_factory=dict)
    _holders: dict[str, dict[str, Holder]] = field(default_factory=dict)
    _fitting: dict[str, list[str]] = field(default_factory=dict)
    _compliance: dict[str, str] = field(default_factory=dict)

    def read(
        self, session: Session, specs: Sequence[WorkerSpec], machines: Mapping[str, Machine], stores: ApiObject
    ) -> None:
        """Read the policies in use, their virtual machines and their datastores; an unknown name is refused."""
        used = {str(one[OPTION]): one for one in specs if one[OPTION]}
        if not used:
            return
        there = [machines[one.name].ref._moId for one in specs if one[OPTION] and one.name in machines]
        with rest.opened(session) as api:
            self.ids = storage_policies.by_name(api)
            for name, desired in used.items():
                if name not in self.ids:
                    reason = f"{session.server} has {', '.join(sorted(self.ids)) or 'none'}"
                    raise Refused(desired.name, f"use the storage policy {name!r}", reason, "correct the policy")
                self._holders[name] = storage_policies.holders(api, self.ids[name])
                self._fitting[name] = storage_policies.fitting(api, self.ids[name], [one._moId for one in stores or []])
            self._compliance = storage_policies.compliance(api, there) if there else {}

    def state(self, desired: WorkerSpec, machine: Machine | None) -> dict[str, Any]:
        """Return the policy of a worker if all of it has that of the options, and its compliance."""
        name = desired[OPTION]
        if not name or machine is None:
            return {}
        has = self._holders.get(name, {}).get(machine.ref._moId)
        is_complete = has is not None and not has.lacks(disk_keys(machine))
        return {OPTION: name if is_complete else None, STATE: self._compliance.get(machine.ref._moId)}

    def refuse_misfit(self, desired: WorkerSpec, datastore: ApiObject) -> None:
        """Refuse a new worker on a datastore that its policy does not allow; vCenter would only report it later."""
        name = desired[OPTION]
        if name and datastore is not None and datastore._moId not in self._fitting.get(name, ()):
            number = len(self._fitting.get(name, ()))
            reason = f"the storage policy {name!r} does not allow it; it allows {number} datastores of the cluster"
            raise Refused(desired.name, "use its datastore", reason, "name another datastore, or another policy")

    def assign(self, session: Session, desired: WorkerSpec, machine: Machine) -> None:
        """Give the policy to the home and the disks of a worker that lack it."""
        if desired[OPTION]:
            with rest.opened(session) as api:
                policy, disks = self.ids[desired[OPTION]], disk_keys(machine)
                storage_policies.assign(api, machine.ref._moId, policy, disks)


def disk_keys(machine: Machine) -> list[str]:
    """Return the keys of the disks of a worker, without foreign ones."""
    return [str(disk.key) for disk in foreign_disks.own(machine)]


def warning(current: State) -> str:
    """Return a warning about a worker that does not comply with its policy; empty if it does, or has none."""
    status = current.get(STATE)
    if not current.get(OPTION) or status in (None, COMPLIANT):
        return ""
    return f"it does not comply with the storage policy {current[OPTION]!r}: {str(status).lower().replace('_', ' ')}"
