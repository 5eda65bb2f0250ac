"""A cluster in memory that keeps rules, groups and overrides, logs writes and can misbehave."""

from __future__ import annotations

import copy
import itertools
import json
from functools import partial
from types import SimpleNamespace
from typing import Any

from pyVmomi import vim

from plugins.module_utils.workers import worker_mark
from tests.fakes.calling import over

MARK_KEY = 101


class FakeCluster:
    """The cluster ``gpu`` of three hosts and the workers w1, w2, w3, one on each."""

    _moId = "domain-c1"  # noqa: N815 - the name that pyVmomi gives it

    def __init__(self, workers: int = 3, hosts: int = 3) -> None:
        self.writes: list[str] = []
        self.deaf: set[str] = set()
        self.faults: dict[str, Exception] = {}
        self.keys = itertools.count(1)
        self.hosts = {f"esx{number}": vim.HostSystem(f"host-{number}") for number in range(1, hosts + 1)}
        self.vms: dict[str, Any] = {}
        self.homes: dict[str, Any] = {}
        self.marks: dict[str, str] = {}
        self.config = vim.cluster.ConfigInfoEx(
            drsConfig=vim.cluster.DrsConfigInfo(enabled=True), dasConfig=vim.cluster.DasConfigInfo(enabled=True)
        )
        for number in range(1, workers + 1):
            self.add(f"w{number}", host=f"esx{(number - 1) % hosts + 1}")
        content = SimpleNamespace(customFieldsManager=self, setting=self)
        self.session = SimpleNamespace(server="vcenter.lab:443", content=content)

    def add(self, name: str, host: str = "esx1", **marked: Any) -> Any:
        """A worker on a host; ``cluster`` says what its mark says, None for no mark."""
        self.vms[name] = vim.VirtualMachine(f"vm-{len(self.vms) + 1}", self)
        self.homes[name] = self.hosts.get(host, vim.HostSystem("host-99"))
        cluster = marked.get("cluster", "gpu")
        self.marks[name] = json.dumps({"name": _shown(name), "cluster": cluster}) if cluster else ""
        return self.vms[name]

    def InvokeAccessor(self, ref: Any, _info: Any) -> list[Any]:  # as pyVmomi spells it
        """The custom values of a virtual machine, which a single read returns."""
        name = next(name for name, one in self.vms.items() if one._moId == ref._moId)
        return [vim.CustomFieldsManager.StringValue(key=MARK_KEY, value=self.marks[name])]

    def delete(self, name: str) -> None:
        """A virtual machine that is deleted, which vCenter takes out of everything."""
        gone = self.vms.pop(name)._moId
        for one in [*self.config.rule, *self.config.group]:
            if isinstance(one, (vim.cluster.AntiAffinityRuleSpec, vim.cluster.AffinityRuleSpec, vim.cluster.VmGroup)):
                left = [ref for ref in one.vm if ref._moId != gone]
                one.__dict__["vm"] = type(one.vm)(left)
        for key in ("drsVmConfig", "dasVmConfig"):
            setattr(self.config, key, [one for one in getattr(self.config, key) if one.key._moId != gone])

    def notes(self, name: str) -> dict[str, Any]:
        """Return what is noted in the mark of a worker."""
        return dict(json.loads(self.marks[name]).get("rules", {}))

    @property
    def field(self) -> list[Any]:
        return [SimpleNamespace(name=worker_mark.ATTRIBUTE, key=MARK_KEY)]

    def SetField(self, entity: Any, key: int, value: str) -> None:
        assert key == MARK_KEY
        name = next(name for name, ref in self.vms.items() if ref._moId == entity._moId)
        if self._write("SetField"):
            self.marks[name] = value

    def ReconfigureComputeResource_Task(self, spec: Any, *, modify: bool) -> Any:
        assert modify
        if self._write("ReconfigureComputeResource_Task"):
            self.take(spec)
        return SimpleNamespace(result=None)

    def take(self, spec: Any) -> None:
        """Keep what a specification says, whoever gives it."""
        for update in spec.rulesSpec:
            if update.operation == "add":
                update.info.key = next(self.keys)
            self._replace("rule", update, lambda one: one.key)
        for update in spec.groupSpec:
            self._replace("group", update, lambda one: one.name)
        for key in ("drsVmConfig", "dasVmConfig"):
            for update in getattr(spec, f"{key}Spec"):
                self._replace(key, update, lambda one: one.key)

    def _replace(self, key: str, update: Any, key_of: Any) -> None:
        desired = update.removeKey if update.operation == "remove" else key_of(update.info)
        there = [key_of(one) for one in getattr(self.config, key)]
        if (desired in there) == (update.operation == "add"):
            raise vim.fault.InvalidName(name=f"{key} {desired}")
        left = [one for one in getattr(self.config, key) if key_of(one) != desired]
        setattr(self.config, key, left if update.operation == "remove" else [*left, update.info])

    def _write(self, call_name: str) -> bool:
        self.writes.append(call_name)
        if call_name in self.faults:
            raise self.faults[call_name]
        return call_name not in self.deaf

    def values(self, ref: Any) -> dict[str, Any]:
        """All properties of an object, as a server would copy them out."""
        if ref is self:
            return {"name": "gpu", "configurationEx": copy.deepcopy(self.config), "host": list(self.hosts.values())}
        if isinstance(ref, vim.HostSystem):
            return {"name": next(name for name, one in self.hosts.items() if one == ref)}
        name = next(name for name, one in self.vms.items() if one == ref)
        value = vim.CustomFieldsManager.StringValue(key=MARK_KEY, value=self.marks[name])
        return {
            "name": _shown(name),
            "customValue": [value],
            "runtime.host": self.homes[name],
            "runtime.powerState": "poweredOn",
        }

    def all(self, kind: Any) -> list[Any]:
        """Every object of a kind."""
        return [self] if kind is vim.ClusterComputeResource else list(self.vms.values())


def override(cluster: FakeCluster, name: str, *, drs: Any = None, ha: Any = None) -> None:
    """An override that someone set by hand."""
    vm, spec = cluster.vms[name], vim.cluster.ConfigSpecEx()
    if drs:
        info = vim.cluster.DrsVmConfigInfo(key=vm, enabled=True, behavior=drs)
        there = any(one.key == vm for one in cluster.config.drsVmConfig)
        spec.drsVmConfigSpec = [vim.cluster.DrsVmConfigSpec(operation="edit" if there else "add", info=info)]
    if ha:
        settings = vim.cluster.DasVmSettings(**ha)
        info = vim.cluster.DasVmConfigInfo(key=vm, dasSettings=settings)
        there = any(one.key == vm for one in cluster.config.dasVmConfig)
        spec.dasVmConfigSpec = [vim.cluster.DasVmConfigSpec(operation="edit" if there else "add", info=info)]
    cluster.take(spec)


def add_rule(cluster: FakeCluster, rule: Any, *groups: Any) -> None:
    """A rule that someone else made."""
    spec = vim.cluster.ConfigSpecEx(
        rulesSpec=[vim.cluster.RuleSpec(operation="add", info=rule)],
        groupSpec=[vim.cluster.GroupSpec(operation="add", info=group) for group in groups],
    )
    cluster.take(spec)


def together(cluster: FakeCluster, *names: str, enabled: bool = True) -> Any:
    return vim.cluster.AffinityRuleSpec(name="pair", enabled=enabled, vm=[cluster.vms[name] for name in names])


def pinned(cluster: FakeCluster, workers: list[str], hosts: list[str], *, mandatory: bool, away: bool = False) -> None:
    side = {"antiAffineHostGroupName" if away else "affineHostGroupName": "their hosts"}
    rule = vim.cluster.VmHostRuleInfo(name="pin", enabled=True, mandatory=mandatory, vmGroupName="their vms", **side)
    vms = vim.cluster.VmGroup(name="their vms", vm=[cluster.vms[name] for name in workers])
    add_rule(cluster, rule, vms, vim.cluster.HostGroup(name="their hosts", host=[cluster.hosts[one] for one in hosts]))


def drs_of(cluster: FakeCluster) -> dict[str, str]:
    names = {ref._moId: name for name, ref in cluster.vms.items()}
    return {names[one.key._moId]: str(one.behavior) for one in cluster.config.drsVmConfig}


def priorities_of(cluster: FakeCluster) -> dict[str, str]:
    names = {ref._moId: name for name, ref in cluster.vms.items()}
    return {names[one.key._moId]: one.dasSettings.restartPriority for one in cluster.config.dasVmConfig}


def _shown(name: str) -> str:
    """The name that vCenter shows: two machines in two folders may share it."""
    return name.partition("/")[0]


call = partial(over, "worker_rules")
