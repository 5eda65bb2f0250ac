"""The features that manage a host: cluster image, configuration profile and host profile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim, vmodl

from plugins.module_utils.errors import Failed
from plugins.module_utils.hosts import management


class Objects:
    """Objects with the properties that read_many returns; ``unknown`` are properties that this server does not have."""

    def __init__(self, values: dict[str, dict[str, Any]], unknown: tuple[str, ...] = ()) -> None:
        self.values, self.unknown, self.reads = values, unknown, 0

    def read_many(self, _session: Any, refs: list[Any], paths: tuple[str, ...]) -> dict[str, dict[str, Any]]:
        self.reads += 1
        for path in paths:
            if path in self.unknown:
                raise Failed("vcenter", "read", "InvalidProperty") from vmodl.query.InvalidProperty(name=path)
        objects = {ref._moId: self.values[ref._moId] for ref in refs}
        return {key: {path: values[path] for path in paths if path in values} for key, values in objects.items()}


def managed(objects: Objects, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(management.properties, "read_many", objects.read_many)
    session: Any = SimpleNamespace(content=SimpleNamespace(hostProfileManager=vim.profile.host.ProfileManager("pm")))
    cluster, lone = vim.ClusterComputeResource("domain-c1"), vim.ComputeResource("domain-s1")
    refs = {
        "esx01.lab": management.HostRefs(vim.HostSystem("host-1"), cluster),
        "esx02.lab": management.HostRefs(vim.HostSystem("host-2"), cluster),
        "esx03.lab": management.HostRefs(vim.HostSystem("host-3"), lone),
    }
    return management.managers_of(session, refs)


WORLD: dict[str, dict[str, Any]] = {
    "domain-c1": {"name": "gpu", "lifecycleManaged": True, "configManagerEnabled": False},
    "domain-s1": {"name": "esx03.lab", "lifecycleManaged": False},
    "pm": {"profile": [SimpleNamespace(_moId="hp-1")]},
    "hp-1": {"name": "golden", "entity": [vim.HostSystem("host-2")]},
}


def test_a_vcenter_without_configuration_profiles_returns_none(monkeypatch: pytest.MonkeyPatch) -> None:
    managers = managed(Objects(WORLD, unknown=("configManagerEnabled",)), monkeypatch)
    assert managers["esx01.lab"]["configuration_profile"] is None and managers["esx01.lab"]["image_managed"] is True


def test_applies_cluster_profiles_to_hosts_and_reports_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    attached = {**WORLD, "hp-1": {"name": "golden", "entity": [vim.ClusterComputeResource("domain-c1")]}}
    assert managed(Objects(attached), monkeypatch)["esx01.lab"]["host_profile"] == "golden"

    def forbidden(*_arguments: Any) -> Any:
        raise Failed("vcenter", "read", "NoPermission") from vim.fault.NoPermission()

    monkeypatch.setattr(management.properties, "read_many", forbidden)
    with pytest.raises(Failed, match="NoPermission"):
        management._values(SimpleNamespace(), [vim.ClusterComputeResource("domain-c1")], "name")  # type: ignore[arg-type]
