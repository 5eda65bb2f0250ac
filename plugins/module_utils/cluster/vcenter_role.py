"""Subject: the role in vCenter with the privileges that the modules need, and its grants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import NotFound, Refused
from ..hosts.module_privileges import TABLE
from ..hosts.privileges.privilege_table import ALWAYS
from ..plan import Plan, State
from ..vsphere import properties
from ..vsphere.faults import translating_faults
from ..vsphere.sdk import ApiObject, vim
from ..vsphere.session import Session

PREFIX = "dml.vsphere"
ROOT_PATH = "/"


@dataclass(frozen=True)
class Grant:
    """A grant: the user or group, the object of the inventory, and whether it covers all objects below."""

    principal: str
    group: bool
    path: str
    propagate: bool


class VcenterRole:
    """One role of this collection."""

    def __init__(self, session: Session, name: str, desired: Sequence[str] | None, grants: Sequence[Grant]) -> None:
        """``desired`` are the privileges; None for a role that must not exist."""
        self.session, self.target, self.desired, self.grants = session, session.server, desired, grants
        self.role_name, self.name = name, f"role {name}"
        self.manager = session.content.authorizationManager
        self.role: Any = None
        self.entities: dict[str, Any] = {}
        if name != PREFIX and not name.startswith(f"{PREFIX} "):
            cause = f"only roles whose name is {PREFIX!r}, or begins with it and a space, belong to this collection"
            raise Refused(self.target, f"manage the role {name!r}", cause, "choose such a name")

    def read(self) -> State:
        """Return the privileges that the role adds to those of every role (None without the role), and its grants."""
        (values,) = properties.read_many(self.session, [self.manager], ("roleList", "privilegeList")).values()
        self.role = next((role for role in values["roleList"] if role.name == self.role_name), None)
        self._must_know({privilege.privId for privilege in values.get("privilegeList") or []})
        if self.role is None:
            return {"privileges": None, "grants": {}}
        held = sorted(set(self.role.privilege or []) - set(ALWAYS))
        return {"privileges": held, "grants": self._granted()}

    def plan(self, current: State) -> Plan:
        """Set the privileges and grants of the role; grants that others made stay."""
        if self.desired is None:
            return Plan(before=current, after={"privileges": None, "grants": {}})
        grants = {self._label(grant): {"group": grant.group, "propagate": grant.propagate} for grant in self.grants}
        return Plan(before=current, after={"privileges": list(self.desired), "grants": {**current["grants"], **grants}})

    def apply(self, plan: Plan) -> None:
        """Write the role, then its grants."""
        if self.desired is None:
            with translating_faults(self.target, f"remove the role {self.role_name}"):
                self.manager.RemoveAuthorizationRole(roleId=self.role.roleId, failIfUsed=False)
            return
        changed = {change.key for change in plan.changes}
        number = self._write(changed)
        if "grants" in changed:
            self._grant(number, plan)

    def _write(self, changed: set[str]) -> int:
        if self.role is None:
            with translating_faults(self.target, f"make the role {self.role_name}"):
                return int(self.manager.AddAuthorizationRole(name=self.role_name, privIds=self.desired))
        if "privileges" in changed:
            with translating_faults(self.target, f"change the role {self.role_name}"):
                self.manager.UpdateAuthorizationRole(
                    roleId=self.role.roleId, newName=self.role_name, privIds=self.desired
                )
        return int(self.role.roleId)

    def _grant(self, number: int, plan: Plan) -> None:
        for grant in self.grants:
            label = self._label(grant)
            if plan.before["grants"].get(label) == plan.after["grants"][label]:
                continue
            rule = vim.AuthorizationManager.Permission(
                principal=grant.principal, group=grant.group, propagate=grant.propagate, roleId=number
            )
            with translating_faults(self.target, f"give the role {self.role_name} to {label}"):
                self.manager.SetEntityPermissions(entity=self._entity(grant.path), permission=[rule])

    def _must_know(self, known: set[str]) -> None:
        lacking = sorted(set(self.desired or ()) - known)
        if not lacking:
            return
        users = sorted({module for privilege, _on, module, *_rest in TABLE.rows() if privilege in lacking})
        remedy = f"leave {', '.join(users)} out of modules: this vCenter is too old for them"
        cause = f"it has no privilege {', '.join(lacking)}"
        raise Refused(self.target, f"make the role {self.role_name}", cause, remedy)

    def _granted(self) -> dict[str, dict[str, bool]]:
        with translating_faults(self.target, f"read who has the role {self.role_name}"):
            rules = self.manager.RetrieveRolePermissions(roleId=self.role.roleId)
            names = {rule.entity._moId: _name(rule.entity) for rule in rules}
        granted: dict[str, dict[str, bool]] = {}
        own: list[Any] = []
        for grant in self.grants:
            entity = self._entity(grant.path)._moId
            if found := _rules_of(grant, [rule for rule in rules if rule.entity._moId == entity]):
                own.extend(found)
                granted[self._label(grant)] = _facts(found[0])
        others = [rule for rule in rules if rule not in own]
        return {**granted, **{f"{rule.principal} on {names[rule.entity._moId]}": _facts(rule) for rule in others}}

    def _label(self, grant: Grant) -> str:
        """Return account and object; refuse accounts that would lose another role: vCenter keeps one per object."""
        entity = self._entity(grant.path)
        with translating_faults(self.target, f"read who has which role on {grant.path}"):
            rules = self.manager.RetrieveEntityPermissions(entity=entity, inherited=False)
        number = self.role.roleId if self.role else None
        for rule in _rules_of(grant, rules or []):
            if rule.roleId != number:
                raise Refused(
                    f"{grant.principal} on {grant.path}",
                    f"give it the role {self.role_name}",
                    f"{rule.principal} has another role there, and vCenter keeps one for each object",
                    "use another account, or remove that role from it first",
                )
        return f"{grant.principal} on {grant.path}"

    def _entity(self, path: str) -> ApiObject:
        if path == ROOT_PATH:
            return self.session.content.rootFolder
        if path not in self.entities:
            with translating_faults(self.target, f"find {path}"):
                self.entities[path] = self.session.content.searchIndex.FindByInventoryPath(path)
        if self.entities[path] is None:
            cause = "the inventory has nothing there"
            raise NotFound(self.target, f"find {path}", cause, "write it as /DATACENTER/host/CLUSTER")
        return self.entities[path]


def canonical(principal: str) -> tuple[str, str]:
    """Return domain and name of an account, written as name@domain or, as vCenter does, DOMAIN\\name."""
    if "\\" in principal:
        domain, _slash, name = principal.partition("\\")
        return domain.lower(), name.lower()
    name, _at, domain = principal.rpartition("@")
    return (domain.lower(), name.lower()) if name else ("", principal.lower())


def _rules_of(grant: Grant, rules: Sequence[Any]) -> list[Any]:
    """Return the rules of an account among those of an object.

    vCenter may show admin@acme.com as ACME\\admin, so that only the first labels of the domains are equal.
    """
    exact = [rule for rule in rules if canonical(rule.principal) == canonical(grant.principal)]
    alike = [rule for rule in rules if rule.group == grant.group and _short(rule.principal) == _short(grant.principal)]
    return exact or alike


def _short(principal: str) -> tuple[str, str]:
    domain, name = canonical(principal)
    return domain.partition(".")[0], name


def _facts(rule: ApiObject) -> dict[str, bool]:
    return {"group": rule.group, "propagate": rule.propagate}


def modules_of(names: Sequence[str] | None) -> list[str]:
    """Return the named modules, by default all that need no privilege on roles; refuse an unknown name."""
    known = TABLE.modules()
    if strange := sorted(set(names or ()) - known):
        cause = f"no privileges are known for {', '.join(strange)}; the modules are {', '.join(sorted(known))}"
        raise Refused("modules", "find what they need", cause, "correct the name")
    return sorted(known - {"vcenter_role"} if names is None else set(names))


def _name(entity: ApiObject) -> str:
    try:
        return str(entity.name)
    except vim.fault.NoPermission:
        return str(entity._moId)
