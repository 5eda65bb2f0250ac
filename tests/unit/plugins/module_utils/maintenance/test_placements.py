"""The rules of DRS that bind virtual machines to hosts, also those that no longer mean anything."""

from __future__ import annotations

import pytest
from pyVmomi import vim

from plugins.module_utils.maintenance.placements import apart, must_run

NAMES = {"host-1": "esx1", "host-2": "esx2", "host-3": "esx3"}


@pytest.mark.parametrize(
    ("on", "not_on", "vms", "allowed"),
    [
        ("first", "", "vms", {"esx1"}),
        ("", "first", "vms", {"esx2", "esx3"}),
        ("empty", "", "vms", set()),
        ("", "empty", "vms", {"esx1", "esx2", "esx3"}),
        # Their groups were deleted.
        ("gone", "", "vms", None),
        ("", "gone", "vms", None),
        ("first", "", "gone", None),
    ],
)
def test_a_rule_allows_the_hosts_of_its_groups(on: str, not_on: str, vms: str, allowed: set[str] | None) -> None:
    rule = vim.cluster.VmHostRuleInfo(
        name="one",
        enabled=True,
        mandatory=True,
        vmGroupName=vms,
        affineHostGroupName=on or None,
        antiAffineHostGroupName=not_on or None,
    )
    groups = [
        vim.cluster.VmGroup(name="vms", vm=[vim.VirtualMachine("vm-1")]),
        vim.cluster.HostGroup(name="first", host=[vim.HostSystem("host-1")]),
        vim.cluster.HostGroup(name="empty"),
    ]

    rules = [*must_run(vim.cluster.ConfigInfoEx(rule=[rule], group=groups), NAMES)]

    assert [set(each.hosts) for each in rules] == ([] if allowed is None else [allowed])


def test_only_enabled_rules_keep_machines_apart() -> None:
    machines = [vim.VirtualMachine("vm-1"), vim.VirtualMachine("vm-2")]
    rules = [
        vim.cluster.AntiAffinityRuleSpec(name="one", enabled=True, vm=machines),
        vim.cluster.AntiAffinityRuleSpec(name="off", enabled=False, vm=machines),
        vim.cluster.AffinityRuleSpec(name="together", enabled=True, vm=machines),
    ]

    assert [*apart(vim.cluster.ConfigInfoEx())] == []
    assert [(each.name, each.vms) for each in apart(vim.cluster.ConfigInfoEx(rule=rules))] == [
        ("one", frozenset({"vm-1", "vm-2"}))
    ]
