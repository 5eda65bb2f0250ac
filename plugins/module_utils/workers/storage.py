"""The storage policies of workers: one for the home and all disks of a worker, with its compliance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from ..errors import Refused
from ..plan import State
from ..vsphere import rest
from ..vsphere.rest import Rest
from ..vsphere.sdk import ApiObject
from ..vsphere.session import Session
from . import foreign_disks
from .machine import Machine
from .worker_spec import WorkerSpec

OPTION, STATE = "storage_policy", "storage_compliance"
_POLICIES = "/api/vcenter/storage/policies"
COMPLIANT = "COMPLIANT"
_STATUSES = (COMPLIANT, "NON_COMPLIANT", "UNKNOWN_COMPLIANCE", "NOT_APPLICABLE", "OUT_OF_DATE")
# The most virtual machines of one answer about compliance.
_MOST = 200


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
            self.ids = by_name(api)
            for name, desired in used.items():
                if name not in self.ids:
                    reason = f"{session.server} has {', '.join(sorted(self.ids)) or 'none'}"
                    raise Refused(desired.name, f"use the storage policy {name!r}", reason, "correct the policy")
                self._holders[name] = holders(api, self.ids[name])
                self._fitting[name] = fitting(api, self.ids[name], [one._moId for one in stores or []])
            self._compliance = compliance(api, there) if there else {}

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
                assign(api, machine.ref._moId, policy, disks)


def disk_keys(machine: Machine) -> list[str]:
    """Return the keys of the disks of a worker, without foreign ones."""
    return [str(disk.key) for disk in foreign_disks.own(machine)]


def warning(current: State) -> str:
    """Return a warning about a worker that does not comply with its policy; empty if it does, or has none."""
    status = current.get(STATE)
    if not current.get(OPTION) or status in (None, COMPLIANT):
        return ""
    return f"it does not comply with the storage policy {current[OPTION]!r}: {str(status).lower().replace('_', ' ')}"


class Holder(NamedTuple):
    """The parts of a virtual machine that have a policy: its home, and disks by their keys."""

    home: bool
    disks: frozenset[str]

    def lacks(self, disks: Sequence[str]) -> bool:
        """Return whether its home, or one of these disks, does not have the policy."""
        return not self.home or not self.disks.issuperset(disks)


def by_name(api: Rest) -> dict[str, str]:
    listed = api.get(_POLICIES, tried="list its storage policies", form=[{"policy": str, "name": str}])
    return {one["name"]: one["policy"] for one in listed}


def holders(api: Rest, policy: str) -> dict[str, Holder]:
    """Return the virtual machines with a policy, by their object ids."""
    path, tried = f"{_POLICIES}/{quote(policy, safe='')}/vm", "read which virtual machines have a storage policy"
    found: Mapping[str, Any] = api.get(path, tried=tried, form={str: {"vm_home": bool, "disks": [str]}})
    return {vm: Holder(one["vm_home"], frozenset(one["disks"])) for vm, one in found.items()}


def compliance(api: Rest, machines: Sequence[str]) -> dict[str, str]:
    """Return the worst compliance of home and disks of virtual machines; those without a policy are left out."""
    found: dict[str, str] = {}
    tried, form = "read how virtual machines comply with their policies", {"vm_home?": str, "disks": {str: str}}
    for begin in range(0, len(machines), _MOST):
        some = [("status", one) for one in _STATUSES] + [("vms", one) for one in machines[begin : begin + _MOST]]
        answer = api.get(f"{_POLICIES}/compliance/vm?{urlencode(some)}", tried=tried, form={str: form})
        for vm, one in answer.items():
            statuses = [status for status in (one.get("vm_home"), *one["disks"].values()) if status]
            bad = [status for status in statuses if status != COMPLIANT]
            found.update({vm: bad[0] if bad else COMPLIANT} if statuses else {})
    return found


def fitting(api: Rest, policy: str, datastores: Sequence[str]) -> list[str]:
    """Return those of some datastores, by their object ids, that fit a policy."""
    path, body = f"{_POLICIES}/{quote(policy, safe='')}?action=check-compatibility", {"datastores": list(datastores)}
    form = {"compatible_datastores": [{"datastore": str}]}
    answer = api.send("POST", path, body, tried="read which datastores fit a storage policy", form=form)
    return [one["datastore"] for one in answer["compatible_datastores"]]


def assign(api: Rest, machine: str, policy: str, disks: Sequence[str]) -> None:
    """Give a policy to the home and to the disks of a virtual machine, unless they have it."""
    now = holders(api, policy).get(machine, Holder(home=False, disks=frozenset()))
    chosen = {"type": "USE_SPECIFIED_POLICY", "policy": policy}
    body: dict[str, Any] = {} if now.home else {"vm_home": chosen}
    missing = [key for key in disks if key not in now.disks]
    body.update({"disks": dict.fromkeys(missing, chosen)} if missing else {})
    if body:
        remedy = "name a datastore that the policy allows, or another policy"
        path = f"/api/vcenter/vm/{quote(machine, safe='')}/storage/policy"
        api.send("PATCH", path, body, tried="set its storage policy", remedy=remedy)
