"""The roles and permissions of a vCenter in memory; writes are logged."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.vsphere import properties

KNOWN = ("System.View", "Host.Config.Settings", "Host.Config.Maintenance", "Profile.View")


class FakeManager:
    """The server's roles and permissions; writes are logged."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *held: str) -> None:
        self.writes = list[tuple[Any, ...]]()
        self._moId = "AuthorizationManager"
        self.rules: list[Any] = []
        role = SimpleNamespace(name="dml.vsphere", roleId=7, privilege=["System.View", *held])
        values = {
            "roleList": [SimpleNamespace(name="Admin", roleId=-1, privilege=[]), *([role] if held else [])],
            "privilegeList": [SimpleNamespace(privId=one) for one in KNOWN],
        }
        monkeypatch.setattr(properties, "read_many", lambda _s, refs, _p: {refs[0]._moId: values})

    def rule(self, entity: Any, principal: str, role: int = 7, *, group: bool = False) -> None:
        self.rules.append(
            vim.AuthorizationManager.Permission(
                entity=entity, principal=principal, group=group, propagate=True, roleId=role
            )
        )

    def RetrieveRolePermissions(self, roleId: int) -> list[Any]:  # noqa: N803 # as pyVmomi spells it
        named = [rule for rule in self.rules if rule.roleId == roleId]
        return [
            SimpleNamespace(**{**rule.__dict__, "entity": SimpleNamespace(_moId=rule.entity._moId, name="gpu")})
            for rule in named
        ]

    def RetrieveEntityPermissions(self, entity: Any, inherited: bool) -> list[Any]:
        assert not inherited
        return [rule for rule in self.rules if rule.entity is entity]

    def AddAuthorizationRole(self, **given: Any) -> int:
        self.writes.append(("add", given["name"], list(given["privIds"])))
        return 9

    def UpdateAuthorizationRole(self, **given: Any) -> None:
        self.writes.append(("update", given["roleId"], list(given["privIds"])))

    def RemoveAuthorizationRole(self, **given: Any) -> None:
        self.writes.append(("remove", given["roleId"], given["failIfUsed"]))

    def SetEntityPermissions(self, entity: Any, permission: Any) -> None:
        self.writes.append(("grant", entity._moId, permission[0].principal, permission[0].roleId))
