"""The rules, groups and overrides of a cluster as plain data."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ...errors import Refused
from ...vsphere.sdk import ApiObject, vim
from ..placement.placement_rules import DRS, RESTART, ClusterRules
from ..placement.rule_conflicts import ForeignRule
from ..placement.rule_set import RuleNames

DISABLED, CLUSTER = "disabled", "cluster"
BEHAVIOURS = {"manual": "manual", "partially_automated": "partiallyAutomated", "fully_automated": "fullyAutomated"}
_OURS = {theirs: ours for ours, theirs in BEHAVIOURS.items()}
CLUSTER_PRIORITY = "clusterRestartPriority"


class Config:
    """The configuration of a cluster for one set of workers; ``vms`` and ``hosts`` are names by object ID."""

    def __init__(self, config: ApiObject, names: RuleNames, vms: Mapping[str, str], hosts: Mapping[str, str]) -> None:
        self.config, self.names, self.vms, self.hosts = config, names, vms, hosts
        self.groups = {one.name: one for one in config.group or []}
        self.drs = {one.key._moId: one for one in config.drsVmConfig or []}
        self.das = {one.key._moId: one for one in config.dasVmConfig or []}

    @property
    def rule(self) -> ApiObject:
        return self._rule(self.names.rule, vim.cluster.AntiAffinityRuleSpec)

    @property
    def host_rule(self) -> ApiObject:
        return self._rule(self.names.host_rule, vim.cluster.VmHostRuleInfo)

    def group(self, name: str, kind: object) -> ApiObject:
        """Return a group of this set by its name; None if it does not exist."""
        return self._of_type(self.groups.get(name), kind, f"group {name!r}")

    def members(self) -> list[ApiObject]:
        """Return the virtual machines in the rule and in the group of this set."""
        rule, group = self.rule, self.group(self.names.vm_group, vim.cluster.VmGroup)
        return [*(rule.vm if rule else []), *(group.vm if group else [])]

    def state(self, workers: Mapping[str, str]) -> dict[str, Any]:
        """Return the rules and overrides of the set; ``workers`` maps the managed workers to object IDs."""
        rule = self.rule
        apart = {"workers": self._names(rule.vm), "enabled": rule.enabled is not False} if rule else None
        return {
            "one_per_host": apart,
            "affinity": self._affinity(),
            DRS: {name: drs_text(self.drs.get(key)) for name, key in sorted(workers.items())},
            RESTART: {name: restart_text(self.das.get(key)) for name, key in sorted(workers.items())},
        }

    def facts(self, cluster: str, workers: Collection[str]) -> ClusterRules:
        """Return the foreign rules, and whether DRS and HA are on."""
        drs, ours = self.config.drsConfig, (self.names.rule, self.names.host_rule)
        others = [rule for rule in self.config.rule or [] if rule.name not in ours]
        return ClusterRules(
            cluster,
            tuple(sorted(self.hosts.values())),
            foreign=tuple(foreign_rule for rule in others for foreign_rule in self._foreign(rule, frozenset(workers))),
            users=tuple(
                rule.name for rule in others if {self.names.vm_group, self.names.host_group} & _groups_of(rule)
            ),
            drs=bool(drs.enabled),
            drs_overrides=drs.enableVmBehaviorOverrides is not False,
            ha=bool(self.config.dasConfig.enabled),
        )

    def _affinity(self) -> dict[str, object] | None:
        vms = self.group(self.names.vm_group, vim.cluster.VmGroup)
        hosts = self.group(self.names.host_group, vim.cluster.HostGroup)
        if vms is None and hosts is None and self.host_rule is None:
            return None
        return {
            "workers": self._names(vms.vm) if vms else None,
            "hosts": sorted(self._host_names(hosts)) if hosts else None,
            "rule": self._host_rule_text(),
        }

    def _host_rule_text(self) -> str | None:
        rule, names = self.host_rule, self.names
        if rule is None or rule.enabled is False:
            return rule and DISABLED
        if (rule.vmGroupName, rule.affineHostGroupName) != (names.vm_group, names.host_group):
            return "of other groups"
        return "required" if rule.mandatory else "preferred"

    def _foreign(self, rule: ApiObject, desired: frozenset[str]) -> Iterator[ForeignRule]:
        """Yield the part of a foreign rule that concerns the workers."""
        if rule.enabled is False:
            return
        if isinstance(rule, vim.cluster.AffinityRuleSpec):
            yield ForeignRule(str(rule.name), desired & set(self._names(rule.vm)))
        elif isinstance(rule, vim.cluster.VmHostRuleInfo):
            group = self.groups.get(rule.vmGroupName)
            affine, forbidden = self.groups.get(rule.affineHostGroupName), self.groups.get(rule.antiAffineHostGroupName)
            allowed = self._host_names(affine) if affine else set(self.hosts.values()) - self._host_names(forbidden)
            workers = desired & set(self._names(group.vm if group else []))
            yield ForeignRule(str(rule.name), workers, frozenset(allowed), mandatory=bool(rule.mandatory))

    def _names(self, refs: ApiObject) -> list[str]:
        return sorted(self.vms.get(ref._moId, ref._moId) for ref in refs or [])

    def _host_names(self, group: ApiObject) -> set[str]:
        return {self.hosts.get(ref._moId, ref._moId) for ref in (group.host if group else None) or []}

    def _rule(self, name: str, kind: ApiObject) -> ApiObject:
        rule = next((candidate for candidate in self.config.rule or [] if candidate.name == name), None)
        return self._of_type(rule, kind, f"rule {name!r}")

    def _of_type(self, item: ApiObject, kind: ApiObject, label: str) -> ApiObject:
        if item is not None and not isinstance(item, kind):
            raise Refused(label, "manage it", "it has another type, so another user created it", "rename it")
        return item


def drs_text(override: ApiObject) -> str | None:
    """Return the DRS override: an automation level, ``disabled`` or ``cluster``; None without an override."""
    if override is None:
        return None
    if override.enabled is False:
        return DISABLED
    return _OURS.get(str(override.behavior), CLUSTER)


def restart_text(override: ApiObject) -> str | None:
    if override is None:
        return None
    settings = override.dasSettings
    priority = settings.restartPriority if settings else override.restartPriority
    return CLUSTER if priority in (None, CLUSTER_PRIORITY) else str(priority)


def _groups_of(rule: object) -> set[str]:
    keys = ("vmGroupName", "affineHostGroupName", "antiAffineHostGroupName", "vmGroup", "dependsOnVmGroup")
    return {name for key in keys if (name := getattr(rule, key, None))}
