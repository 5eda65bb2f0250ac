"""Subject: the rules and overrides of a cluster for one set of workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...errors import Refused
from ...plan import Plan, State
from ...vsphere import custom_fields, properties, tasks
from ...vsphere.faults import translating_faults
from ...vsphere.inventory import find_cluster
from ...vsphere.sdk import ApiObject, vim
from ...vsphere.session import Session
from .. import worker_identity, worker_mark
from ..placement import placement_rules
from ..placement.placement_rules import DRS, RESTART
from ..placement.rule_set import RuleSetSpec, names_of
from .rule_reader import BEHAVIOURS, CLUSTER, CLUSTER_PRIORITY, DISABLED, Config

RECONFIGURE_SECONDS = 300
VM_PATHS = (*worker_identity.PATHS, "runtime.host")
NOTES = "rules"  # within the mark: the set, and the overrides that it replaced
_OF_CLUSTER = ("clusterIsolationResponse", None)


def plan(current: State, desired: RuleSetSpec, facts: placement_rules.ClusterRules) -> Plan:
    """Return the plan for the desired rules; rules that contradict foreign rules are refused."""
    if (conflict := placement_rules.conflict_of(desired, facts)) is not None:
        raise Refused(*conflict)
    if lost := placement_rules.dropped(desired, facts):
        names, tried = ", ".join(lost), f"remove the rules and overrides of {', '.join(lost)}"
        reason = f"the set {desired.name!r} contains these workers, and the call does not name them"
        remedy = f"give each list of workers another set name (worker_rules_name), or confirm with drop: [{names}]"
        raise Refused(f"cluster {facts.cluster}", tried, reason, remedy)
    after = placement_rules.after(current, desired)
    unmet = () if after == current else placement_rules.unmet(current, after, facts)
    return Plan(current, after, warnings=tuple(placement_rules.warnings(after, desired, facts)), unmet=unmet)


class WorkerRules:
    """The rules, groups and overrides of one set of workers."""

    name = "rules of workers"

    def __init__(self, session: Session, cluster: str, desired: RuleSetSpec) -> None:
        self.session, self.target, self.desired = session, cluster, desired
        self.names = names_of(desired.name)
        self.ref: Any = None
        self.host_refs: dict[str, Any] = {}
        self.homes: dict[str, str] = {}
        self.workers: dict[str, Any] = {}
        self.marks: dict[str, dict[str, Any]] = {}
        self.elsewhere: dict[str, str] = {}
        self.noted: Mapping[str, Any] | None = None

    def read(self) -> State:
        """Return the rules, the overrides of the workers, and the overrides that they replaced."""
        self.ref, values = find_cluster(self.session, self.target, ("configurationEx", "host"))
        hosts = properties.read_many(self.session, values.get("host") or [], ("name",))
        machines = properties.find_all(self.session, vim.VirtualMachine, VM_PATHS)
        self.host_refs = {hosts[ref._moId]["name"]: ref for ref in values.get("host") or []}
        self.homes = {ref._moId: name for name, ref in self.host_refs.items()}
        self._find(machines)
        self.config = Config(values["configurationEx"], self.names, self._labels(machines), self.homes)
        self._read_facts(machines)
        ours = {
            name: ref._moId for name, ref in self.workers.items() if name in self.desired.workers or self._notes(name)
        }
        previous = {name: self._notes(name) for name in ours if self._notes(name)}
        return {**self.config.state(ours), "previous": previous}

    def plan(self, current: State) -> Plan:
        """Return the changes; rules that contradict foreign rules are refused."""
        for worker in self.desired.overrides:
            owner = (self.marks.get(worker, {}).get(NOTES) or {}).get("set", self.desired.name)
            if owner != self.desired.name:
                reason = f"the set {owner!r} of this cluster already sets its overrides"
                raise Refused(worker, "set its overrides", reason, "name it in only one set")
        planned = plan(current, self.desired, self.facts)
        # After the write, a missing record of a replaced override cannot be detected.
        return planned if self.noted is None else replace(planned, after={**planned.after, "previous": self.noted})

    def apply(self, plan: Plan) -> None:
        """Record replaced overrides, reconfigure the cluster once, and remove the records of restored overrides."""
        before, after = plan.before["previous"], plan.after["previous"]
        kept = {name: {**after.get(name, {}), **before.get(name, {})} for name in {**before, **after}}
        left = {name: after.get(name, {}) for name in kept}
        self._note(kept)
        spec = build(self.config, plan, ObjectRefs(self.workers, self.host_refs))
        if spec is not None:
            tried = "change the rules and overrides of its workers"
            with translating_faults(self.target, tried):
                task = self.ref.ReconfigureComputeResource_Task(spec=spec, modify=True)
            tasks.wait(self.session, tasks.Started(task, self.target, tried), RECONFIGURE_SECONDS)
            if left != kept and not self._applied(plan):
                return  # vCenter accepted the change, yet did not apply it: the next run needs the record
        self._note(left)
        self.noted = after

    def _applied(self, plan: Plan) -> bool:
        current = self.read()
        return all(current[aspect] == plan.after[aspect] for aspect in placement_rules.ASPECTS)

    def _note(self, notes: Mapping[str, Mapping[str, object]]) -> None:
        """Record replaced overrides in the marks of the workers whose record differs."""
        for name, note in sorted(notes.items()):
            if note == self._notes(name):
                continue
            left = {key: value for key, value in self.marks[name].items() if key != NOTES}
            self.marks[name] = {**left, NOTES: {"set": self.desired.name, **note}} if note else left
            worker_mark.write(self.session, self.workers[name], name, self.marks[name])

    def _notes(self, name: str) -> dict[str, Any]:
        notes = self.marks[name].get(NOTES) or {}
        mine = notes.get("set") == self.desired.name
        return {aspect: notes[aspect] for aspect in placement_rules.ASPECTS if mine and aspect in notes}

    def _find(self, machines: Sequence[properties.Found]) -> None:
        """Find the workers of this cluster by their mark and their host."""
        known = worker_identity.WorkerIdentities(custom_fields.definitions(self.session), machines)
        self.workers, self.marks, self.elsewhere = {}, {}, {}
        for marked in known.all():
            name = str(marked.mark["name"])
            if marked.mark.get("cluster", self.target) != self.target:
                self.elsewhere[name] = f"is a worker of cluster {marked.mark['cluster']}"
            elif getattr(marked.values.get("runtime.host"), "_moId", None) not in self.homes:
                self.elsewhere[name] = "is on a host of another cluster"
            else:
                known.worker(str(marked.mark.get("cluster", "")), name)
                self.workers[name], self.marks[name] = marked.ref, dict(marked.mark)

    def _labels(self, machines: Sequence[properties.Found]) -> dict[str, str]:
        """Return the names of all virtual machines by object ID, with the ID added to a name that a worker also has."""
        ids = {ref._moId for ref in self.workers.values()}
        return {
            ref._moId: f"{values['name']} ({ref._moId})"
            if values["name"] in self.workers and ref._moId not in ids
            else str(values["name"])
            for ref, values in machines
        }

    def _read_facts(self, machines: Sequence[properties.Found]) -> None:
        there = {str(values["name"]) for _ref, values in machines}
        running = {
            ref._moId: v.get("runtime.host") for ref, v in machines if v.get("runtime.powerState") == "poweredOn"
        }
        homes = {name: running.get(ref._moId) for name, ref in self.workers.items() if name in self.desired.workers}
        self.facts = replace(
            self.config.facts(self.target, self.desired.workers),
            homes={name: self.homes[ref._moId] for name, ref in homes.items() if ref is not None},
            members=self._members(),
            missing={name: self._why(name, there) for name in self.desired.workers if name not in self.workers},
        )

    def _members(self) -> frozenset[str]:
        """Return the marked workers that have rules or overrides of this set."""
        ids = {ref._moId for ref in self.config.members()}
        return frozenset(name for name, ref in self.workers.items() if ref._moId in ids or self._notes(name))

    def _why(self, name: str, there: set[str]) -> str:
        unmarked = "is not a worker: it carries no mark of this collection" if name in there else "does not exist"
        return f"{self.elsewhere.get(name, unmarked)}; dml.vsphere.worker_vm builds workers and takes them over"


@dataclass(frozen=True)
class ObjectRefs:
    """The references of workers and hosts, by name."""

    vms: Mapping[str, Any]
    hosts: Mapping[str, Any]


def build(config: Config, plan: Plan, refs: ObjectRefs) -> ApiObject:
    """Return the ConfigSpecEx; None if the plan does not change the cluster."""
    before, after = plan.before, plan.after
    parts = {
        "rulesSpec": [*_apart(config, before, after, refs), *_host_rule(config, before, after)],
        "groupSpec": list(_groups(config, before, after, refs)),
        "drsVmConfigSpec": [_drs(config, refs.vms[name], text) for name, text in _differing(before, after, DRS)],
        "dasVmConfigSpec": [_das(config, refs.vms[name], text) for name, text in _differing(before, after, RESTART)],
    }
    return vim.cluster.ConfigSpecEx(**parts) if any(parts.values()) else None


def _differing(before: State, after: State, aspect: str) -> list[tuple[str, str | None]]:
    return [(name, text) for name, text in after[aspect].items() if text != before[aspect].get(name)]


def _apart(config: Config, before: State, after: State, refs: ObjectRefs) -> Iterator[ApiObject]:
    desired = after["one_per_host"]
    if desired == before["one_per_host"]:
        return
    if desired is None:
        yield _rule_change(config.rule, None)
        return
    vms = [refs.vms[name] for name in desired["workers"]]
    info = vim.cluster.AntiAffinityRuleSpec(name=config.names.rule, enabled=True, userCreated=True, vm=vms)
    yield _rule_change(config.rule, info)


def _host_rule(config: Config, before: State, after: State) -> Iterator[ApiObject]:
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


def _rule_change(there: ApiObject, info: ApiObject) -> ApiObject:
    if info is None:
        return vim.cluster.RuleSpec(operation="remove", removeKey=there.key)
    if there is None:
        return vim.cluster.RuleSpec(operation="add", info=info)
    info.key, info.ruleUuid = there.key, there.ruleUuid
    return vim.cluster.RuleSpec(operation="edit", info=info)


def _groups(config: Config, before: State, after: State, refs: ObjectRefs) -> Iterator[ApiObject]:
    desired, now = after["affinity"] or {}, before["affinity"] or {}
    if desired.get("workers") != now.get("workers"):
        vms = [refs.vms[name] for name in desired.get("workers") or []]
        info: Any = vim.cluster.VmGroup(name=config.names.vm_group, userCreated=True, vm=vms)
        yield _group_change(config.group(info.name, vim.cluster.VmGroup), info, desired=bool(desired))
    if desired.get("hosts") != now.get("hosts"):
        hosts = [refs.hosts[name] for name in desired.get("hosts") or []]
        info = vim.cluster.HostGroup(name=config.names.host_group, userCreated=True, host=hosts)
        yield _group_change(config.group(info.name, vim.cluster.HostGroup), info, desired=bool(desired))


def _group_change(there: ApiObject, info: ApiObject, *, desired: bool) -> ApiObject:
    if not desired:
        return vim.cluster.GroupSpec(operation="remove", removeKey=info.name)
    return vim.cluster.GroupSpec(operation="edit" if there else "add", info=info)


def _drs(config: Config, vm: ApiObject, text: str | None) -> ApiObject:
    kind = vim.cluster.DrsVmConfigSpec
    # An override without a setting is the same as no override.
    if text in (None, CLUSTER):
        return kind(operation="remove", removeKey=vm)
    info = vim.cluster.DrsVmConfigInfo(key=vm, enabled=text != DISABLED, behavior=BEHAVIOURS.get(text or ""))
    return kind(operation="edit" if vm._moId in config.drs else "add", info=info)


def _das(config: Config, vm: ApiObject, text: str | None) -> ApiObject:
    kind, there = vim.cluster.DasVmConfigSpec, config.das.get(vm._moId)
    if text is None and _has_only_priority(there):
        return kind(operation="remove", removeKey=vm)
    # All existing settings are sent back, because other users may have set more than the priority.
    settings = there.dasSettings if there and there.dasSettings else vim.cluster.DasVmSettings()
    settings.restartPriority = CLUSTER_PRIORITY if text in (None, CLUSTER) else text
    info = vim.cluster.DasVmConfigInfo(key=vm, dasSettings=settings)
    return kind(operation="edit" if there else "add", info=info)


def _has_only_priority(override: ApiObject) -> bool:
    """Return whether an HA override contains only the restart priority."""
    settings = override.dasSettings
    if settings is None:
        return True
    monitoring = settings.vmToolsMonitoringSettings
    own = monitoring is not None and monitoring.clusterSettings is False
    return settings.isolationResponse in _OF_CLUSTER and not own
