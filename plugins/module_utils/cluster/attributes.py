"""Subject: the removal of custom attributes that this collection defined in vCenter and that no object carries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..maintenance import boot
from ..plan import Plan, State
from ..vsphere import custom_fields, inventory, properties
from ..vsphere.faults import translating_faults
from ..vsphere.sdk import ApiObject, vim
from ..vsphere.session import Session
from .vcenter_role import canonical

PREFIX = "dml.vsphere."
MOST_NAMED = 3
UNSEEN = "this account may not see all objects of vCenter, and one of the others may carry it"
Carriers = Mapping[str, Iterable[str]]


class Attributes:
    """The custom attributes of this collection; outdated boot notes on the hosts of one cluster do not count."""

    name = "custom attributes"

    def __init__(self, session: Session, cluster: str) -> None:
        self.session, self.cluster, self.target = session, cluster, session.server
        self.keys: dict[str, int] = {}
        self.over: list[inventory.Host] = []
        self.sees_all = True

    def read(self) -> State:
        """Return the objects that carry each attribute, and the hosts whose boot note is outdated."""
        fields = [field for field in custom_fields.definitions(self.session) if field.name.startswith(PREFIX)]
        self.keys = {field.name: field.key for field in fields}
        hosts = inventory.find_hosts(self.session, {"cluster": self.cluster}, boot.PATHS)
        hosts.refresh()
        noted = [host for host in hosts.hosts if _value(host, fields)]
        self.over = [host for host in noted if host.reachable and not boot.pending(host)]
        # The removal of a definition needs a privilege on the root, and removes the values of unseen objects too.
        self.sees_all = not fields or self._sees_all()
        carriers: dict[str, list[str]] = {field.name: [] for field in fields}
        for kind in (vim.VirtualMachine, vim.HostSystem) if fields else ():
            for ref, values in properties.find_all(self.session, kind, ("name", "customValue")):
                for field in fields:
                    if custom_fields.value_of(field.name, fields, values.get("customValue")):
                        carriers[field.name].append(f"{values['name']} ({ref._moId})")
        return {"carriers": carriers, "over": [f"{host.name} ({host.ref._moId})" for host in self.over]}

    def plan(self, current: State) -> Plan:
        """Return the removal of every attribute that no object carries."""
        return plan_attributes(current["carriers"], current["over"], sees_all=self.sees_all)

    def apply(self, plan: Plan) -> None:
        """Clear outdated boot notes, then remove the definitions, which also removes empty values."""
        for host in self.over:
            custom_fields.store(self.session, host.ref, host.name, boot.ATTRIBUTE, "")
        for change in plan.changes:
            if change.key in self.keys:
                with translating_faults(self.target, f"remove its custom attribute {change.key}"):
                    self.session.content.customFieldsManager.RemoveCustomFieldDef(self.keys[change.key])

    def _sees_all(self) -> bool:
        content = self.session.content
        try:
            rules = content.authorizationManager.RetrieveEntityPermissions(entity=content.rootFolder, inherited=False)
        except vim.fault.NoPermission:  # an account without a role on the root
            return False
        return covers_all(rules or [], self.session.account)


def covers_all(rules: Sequence[ApiObject], account: str) -> bool:
    """Return whether an account has its role on the root also on all objects below.

    A rule for the account outweighs those for groups. Without one, any group may be that of the account. Without any
    of them, the rule of the account is not known.
    """
    own = [rule for rule in rules if not rule.group and canonical(rule.principal) == canonical(account)]
    possible = own or [rule for rule in rules if rule.group]
    return bool(possible) and all(rule.propagate for rule in possible)


def plan_attributes(carriers: Carriers, over: Iterable[str], *, sees_all: bool = True) -> Plan:
    """Return the plan to remove attributes that no object carries; for the others, the objects that carry them.

    An account that does not see all objects of vCenter removes none.
    """
    done = set(over)
    left = {
        name: [carrier for carrier in objects if name != boot.ATTRIBUTE or carrier not in done]
        for name, objects in carriers.items()
    }
    return Plan(
        before={**dict.fromkeys(left, "defined"), "notes that are over": sorted(done)},
        after={
            **{name: None if sees_all and not objects else "defined" for name, objects in left.items()},
            "notes that are over": [],
        },
        why=tuple(
            f"{name} stays: {f'{_named(objects)} carry it' if objects else UNSEEN}"
            for name, objects in left.items()
            if objects or not sees_all
        ),
    )


def _value(host: inventory.Host, fields: list[ApiObject]) -> str:
    return custom_fields.value_of(boot.ATTRIBUTE, fields, host["customValue"])


def _named(objects: list[str]) -> str:
    names = sorted(carrier.rpartition(" (")[0] for carrier in objects)
    rest = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
