"""The table of privileges agrees with the API's type tables, with itself, and with its document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyVmomi import VmomiSupport

from plugins.module_utils.hosts.module_privileges import TABLE as NEEDS
from plugins.module_utils.hosts.module_privileges import is_free
from plugins.module_utils.hosts.privileges.privilege_table import ALWAYS, TYPES
from plugins.module_utils.hosts.profile_parts import PARTS
from tests.integration.callers import privileges_of_property
from tools import subjects

ROOT = Path(__file__).parents[6]


def methods() -> dict[str, list[Any]]:
    """Return the methods of the API by their names in requests."""
    by_name: dict[str, list[Any]] = {}
    for name in list(VmomiSupport._managedDefMap):
        for method in VmomiSupport.GetVmodlType(name)._methodInfo.values():
            by_name.setdefault(method.wsdlName, []).append(method)
    return by_name


def privileges_for(call: str) -> set[str]:
    """Return the privileges that a method needs in the type tables, on its object or on one of its parameters."""
    return {
        privilege
        for method in METHODS[call.rsplit(".", maxsplit=1)[-1]]
        for privilege in (method.privId, *(parameter.privId for parameter in method.params))
        if privilege
    }


METHODS = methods()
OTHERS = ("esxcli ", "GET ", "POST ", "PUT ", "PATCH ", "DELETE ", "read ")
SOAP = sorted(call for call in NEEDS.by_call if not call.startswith(OTHERS))
READS = sorted(call for call in NEEDS.by_call if call.startswith("read "))


@pytest.mark.parametrize("call", SOAP)
def test_methods_need_the_privileges_of_the_type_tables(call: str) -> None:
    known = privileges_for(call) - {"System.View", "System.Read", "System.Anonymous"}
    assert known <= {need.privilege for need in NEEDS.by_call[call]}
    assert {need.privilege for need in NEEDS.by_call[call] if need.source == TYPES} <= known


@pytest.mark.parametrize("call", READS)
def test_properties_need_the_privileges_of_the_type_tables(call: str) -> None:
    assert {need.privilege for need in NEEDS.by_call[call]} == privileges_of_property(call)


def test_type_tables_contain_every_property_with_a_privilege() -> None:
    assert privileges_of_property("read HostProfileManager.profile") == {"Profile.View"}
    assert privileges_of_property("read SessionManager.sessionList") == {"Sessions.TerminateSession"}
    assert privileges_of_property("read HostSystem.runtime") == set()
    with pytest.raises(AttributeError):
        privileges_of_property("read HostSystem.nonsense")


def test_free_methods_need_no_additional_privilege() -> None:
    free = {name for name in METHODS if is_free(f"Thing.{name}")}
    assert {"RetrievePropertiesEx", "WaitForUpdatesEx", "QueryOptions", "CheckRelocate_Task"} <= free
    assert {name: privileges_for(name) for name in free if privileges_for(name) - set(ALWAYS)} == {}
    assert not [name for name in free if name.startswith(("Update", "Create", "Destroy")) and "_Task" in name]


def test_lists_every_module_and_a_module_per_call() -> None:
    group = (ROOT / "meta" / "runtime.yml").read_text().split("vsphere:\n", maxsplit=1)[1]
    there = {line.strip()[2:] for line in group.splitlines() if line.strip()} | {"workers"}
    in_list_soon = {part.module for part in subjects.parts().values()}  # test_profile_parts.py checks these
    lacking = sorted(there - NEEDS.modules() - in_list_soon)
    assert [f"add to MODULES of hosts/privileges/privilege_table.py: {name!r}: ()," for name in lacking] == []
    called = {call for calls in NEEDS.by_module.values() for call in calls}
    elsewhere = {call for part in PARTS for call in part.calls}  # test_profile_parts.py checks these
    assert [
        f"add {call} to CALLS of hosts/privileges/privilege_table.py"
        for call in called - elsewhere - set(NEEDS.by_call)
    ] == []
    assert sorted(set(NEEDS.by_call) - called) == [], "remove them from CALLS of hosts/privileges/privilege_table.py"


def test_role_for_one_module_has_only_its_privileges() -> None:
    assert NEEDS.privileges_of(["cluster_lock"]) == ["Folder.Create", "Folder.Delete", "Folder.Rename"]
    assert NEEDS.privileges_of(["workers"]) == []
    both = NEEDS.table(["esxi_roce", "esxi_kernel_module"])
    assert {
        "privilege": "Global.SetCustomField",
        "objects": ["object that is marked"],
        "modules": ["esxi_kernel_module", "esxi_roce"],
    } in both
