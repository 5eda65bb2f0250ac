# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The ConfigSpecEx that changes a cluster's rules, groups and overrides as a plan requires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...plan import Plan
from ...vsphere.sdk import vim
from ..placement.placement_rules import DRS, RESTART
from .rule_reader import BEHAVIOURS, CLUSTER, CLUSTER_PRIORITY, DISABLED, Config

_OF_CLUSTER = ("clusterIsolationResponse", None)


@dataclass(frozen=True)
class ObjectRefs:
    """The references of workers and hosts, by name."""

    vms: Mapping[str, Any]
    hosts: Mapping[str, Any]


def build(config: Config, plan: Plan, refs: ObjectRefs) -> Any:
    """Return the ConfigSpecEx; None if the plan does not change the cluster."""
    before, after = plan.before, plan.after
    parts = {
        "rulesSpec": [*_apart(config, before, after, refs), *_host_rule(config, before, after)],
        "groupSpec": list(_groups(config, before, after, refs)),
        "drsVmConfigSpec": [_drs(config, refs.vms[name], text) for name, text in _differing(before, after, DRS)],
        "dasVmConfigSpec": [_das(config, refs.vms[name], text) for name, text in _differing(before, after, RESTART)],
    }
    return vim.cluster.ConfigSpecEx(**parts) if any(parts.values()) else None


def _differing(before: Mapping[str, Any], after: Mapping[str, Any], aspect: str) -> list[tuple[str, str | None]]:
    return [(name, text) for name, text in after[aspect].items() if text != before[aspect].get(name)]


def _apart(config: Config, before: Mapping[str, Any], after: Mapping[str, Any], refs: ObjectRefs) -> Iterator[Any]:
    desired = after["one_per_host"]
    if desired == before["one_per_host"]:
        return
    if desired is None:
        yield _rule_change(config.rule, None)
        return
    vms = [refs.vms[name] for name in desired["workers"]]
    info = vim.cluster.AntiAffinityRuleSpec(name=config.names.rule, enabled=True, userCreated=True, vm=vms)
    yield _rule_change(config.rule, info)


def _host_rule(config: Config, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Any]:
    desired, now = after["affinity"] or {}, before["affinity"] or {}
    if desired.get("rule") == now.get("rule"):
        return
    info = vim.cluster.VmHostRuleInfo(
        name=config.names.host_rule,
        enabled=True,
        userCreated=True,
        mandatory=desired.get("rule") == "required",
        vmGroupName=config.names.vm_group,
        affineHostGroupName=config.names.host_group,
    )
    yield _rule_change(config.host_rule, info if desired else None)


def _rule_change(there: Any, info: Any) -> Any:
    if info is None:
        return vim.cluster.RuleSpec(operation="remove", removeKey=there.key)
    if there is None:
        return vim.cluster.RuleSpec(operation="add", info=info)
    info.key, info.ruleUuid = there.key, there.ruleUuid
    return vim.cluster.RuleSpec(operation="edit", info=info)


def _groups(config: Config, before: Mapping[str, Any], after: Mapping[str, Any], refs: ObjectRefs) -> Iterator[Any]:
    desired, now = after["affinity"] or {}, before["affinity"] or {}
    if desired.get("workers") != now.get("workers"):
        vms = [refs.vms[name] for name in desired.get("workers") or []]
        info: Any = vim.cluster.VmGroup(name=config.names.vm_group, userCreated=True, vm=vms)
        yield _group_change(config.group(info.name, vim.cluster.VmGroup), info, desired=bool(desired))
    if desired.get("hosts") != now.get("hosts"):
        hosts = [refs.hosts[name] for name in desired.get("hosts") or []]
        info = vim.cluster.HostGroup(name=config.names.host_group, userCreated=True, host=hosts)
        yield _group_change(config.group(info.name, vim.cluster.HostGroup), info, desired=bool(desired))


def _group_change(there: Any, info: Any, *, desired: bool) -> Any:
    if not desired:
        return vim.cluster.GroupSpec(operation="remove", removeKey=info.name)
    return vim.cluster.GroupSpec(operation="edit" if there else "add", info=info)


def _drs(config: Config, vm: Any, text: str | None) -> Any:
    kind = vim.cluster.DrsVmConfigSpec
    # An override without a setting is the same as no override.
    if text in (None, CLUSTER):
        return kind(operation="remove", removeKey=vm)
    info = vim.cluster.DrsVmConfigInfo(key=vm, enabled=text != DISABLED, behavior=BEHAVIOURS.get(text or ""))
    return kind(operation="edit" if vm._moId in config.drs else "add", info=info)


def _das(config: Config, vm: Any, text: str | None) -> Any:
    kind, there = vim.cluster.DasVmConfigSpec, config.das.get(vm._moId)
    if text is None and _has_only_priority(there):
        return kind(operation="remove", removeKey=vm)
    # All existing settings are sent back, because other users may have set more than the priority.
    settings = there.dasSettings if there and there.dasSettings else vim.cluster.DasVmSettings()
    settings.restartPriority = CLUSTER_PRIORITY if text in (None, CLUSTER) else text
    info = vim.cluster.DasVmConfigInfo(key=vm, dasSettings=settings)
    return kind(operation="edit" if there else "add", info=info)


def _has_only_priority(override: Any) -> bool:
    """Return whether an HA override contains only the restart priority."""
    settings = override.dasSettings
    if settings is None:
        return True
    monitoring = settings.vmToolsMonitoringSettings
    own = monitoring is not None and monitoring.clusterSettings is False
    return settings.isolationResponse in _OF_CLUSTER and not own
