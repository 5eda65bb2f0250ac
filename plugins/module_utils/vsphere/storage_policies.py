"""Storage policies by vCenter's REST API: those that exist, their virtual machines, and how these comply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from .rest import Rest

_POLICIES = "/api/vcenter/storage/policies"
COMPLIANT = "COMPLIANT"
_STATUSES = (COMPLIANT, "NON_COMPLIANT", "UNKNOWN_COMPLIANCE", "NOT_APPLICABLE", "OUT_OF_DATE")
# The most virtual machines of one answer about compliance.
_MOST = 200


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
