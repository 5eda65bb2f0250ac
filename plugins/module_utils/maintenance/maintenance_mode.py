"""Subject: a host in maintenance mode, evacuated first, with a note about the run that did it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ..errors import Abandoned, CollectionError, Failed, Refused, TimedOut
from ..plan import Plan, State
from ..vsphere import properties, tasks
from ..vsphere.faults import is_caused_by, translating_faults, words
from ..vsphere.inventory import Host
from ..vsphere.properties import Properties
from ..vsphere.sdk import ApiObject, vim, vmodl
from ..vsphere.session import Session
from ..workers import worker_power
from ..workers.capacity.running_vm import Vm
from . import evacuation, placements, recent_tasks, service_note
from .evacuation import EvacuationMove, HostEvacuation
from .recent_tasks import RecentTask
from .service_options import VSAN, ServiceOptions

ENTER = "enter maintenance mode"
FAILED = "remove the cause and run again; it is still in service"
STILL_IN = (
    "the host is still in service; move or power off these virtual machines, or give them more time with "
    "maintenance_timeout (of the playbooks: esxi_host_maintenance_timeout), and run again"
)
NON_DISRUPTIVE_SINCE = (9, 1)
# The server should time out first; this margin is for a server that ignores its timeout.
GRACE = 30


def refuse_unknown_mode(session: Session, hosts: str) -> None:
    """Refuse an evacuation that does not disturb workloads if vCenter or pyVmomi does not support it."""
    about, remedy = session.content.about, "omit non_disruptive"
    if session.api_version < NON_DISRUPTIVE_SINCE:
        cause = f"vCenter {about.version} has no non-disruptive evacuation, which came with 9.1"
        raise Refused(hosts, ENTER, cause, remedy)
    if not hasattr(vim.host.MaintenanceSpec, "EvacuationMode"):
        cause = "the installed pyVmomi does not support non-disruptive evacuations"
        raise Refused(hosts, ENTER, cause, f"install pyVmomi 9.1.0.0 or later, or {remedy}")


def maintenance_spec(host: Host, desired: ServiceOptions) -> ApiObject:
    """Return the specification for vSAN and for the evacuation; None if both are the defaults of vCenter."""
    parts: dict[str, Any] = {}
    if host["config.vsanHostConfig.enabled"]:
        parts["vsanMode"] = vim.vsan.host.DecommissionMode(objectAction=VSAN[desired.vsan])
    if desired.non_disruptive:
        parts["evacMode"] = vim.host.MaintenanceSpec.EvacuationMode(workloadNonDisruptive=True)
    return vim.host.MaintenanceSpec(**parts) if parts else None


class MaintenanceMode:
    """One host that should be in maintenance mode."""

    name = "maintenance mode"

    def __init__(self, host: Host, desired: ServiceOptions, evacuations: Evacuations) -> None:
        self.host, self.desired, self.evacuations = host, desired, evacuations
        self.target = host.name

    def read(self) -> State:
        """Return whether the host is in maintenance mode, who put it there, and the verdict on its evacuation."""
        self.host.must_answer("read its state")
        note = service_note.own_note(self.host, self.desired)
        return {
            "maintenance": self.host.in_maintenance,
            "ours": note is not None and self.host.in_maintenance,
            "by": str(note) if note else None,
            "evacuation": evacuation.as_dict(self.evacuations.verdict(self.host)),
        }

    def plan(self, current: State) -> Plan:
        """Return the change to maintenance mode; virtual machines that block the evacuation are unmet."""
        if current["maintenance"] and not current["ours"] and self.target in self.desired.take_over:
            why = "another user put it into maintenance mode, and take_over names it"
            return Plan(before=current, after={**current, "ours": True}, why=(why,))
        if current["maintenance"]:
            reasons = () if current["ours"] else ("it was in maintenance mode already and will stay there",)
            return Plan(before=current, after=current, why=reasons, warnings=self._returned_by_a_rollout())
        if self.desired.non_disruptive:
            refuse_unknown_mode(self.host.session, self.host.name)
        verdict = self.evacuations.verdict(self.host)
        leave = [f"{move.vm.name} ({move.vm.whose}) moves, for example to {move.to}" for move in verdict.moves]
        end = [f"{vm.name} ({vm.whose}) is shut down: {' and '.join(vm.fixed)}" for vm in verdict.power_off]
        return Plan(
            before=current,
            after={**current, "maintenance": True},
            why=(*leave, *end),
            unmet=(*(str(block) for block in verdict.blocks), *self._other_entry()),
        )

    def apply(self, plan: Plan) -> None:
        """Evacuate the host and enter maintenance mode; if that fails, the host stays in service."""
        if not plan.changes:
            return
        if self.desired.each_alone:
            cause = "each host was planned as if it were the only one to leave"
            raise Refused(self.target, ENTER, cause, "each_alone is for check mode: omit it")
        self.desired.require_free(self.host, ENTER)
        if plan.before["maintenance"]:
            service_note.write(self.host, service_note.new_note(self.host, self.desired))
            return
        deadline = time.monotonic() + self.desired.maintenance_timeout
        under_way = self.evacuations.entering_task(self.host)
        try:
            if under_way is None:
                service_note.write(self.host, service_note.new_note(self.host, self.desired))
            else:
                self.desired.report(self.target, "is entering maintenance mode already, as an earlier run requested")
            self._empty(deadline)
            task = under_way.ref if under_way else self._start(deadline)
        except (Abandoned, Failed, TimedOut):
            self._give_up()
            raise
        try:
            self._enter(task, deadline)
        except (Failed, TimedOut):
            self._give_up()
            raise

    def _returned_by_a_rollout(self) -> tuple[str, ...]:
        note = service_note.note_of_a_rollout(self.host)
        if note is None or self.desired.rollout:
            return ()
        return (f"a rollout took it out of service ({note}), and the next run of that playbook returns it",)

    def _other_entry(self) -> tuple[str, ...]:
        task = self.evacuations.entering_task(self.host)
        if task is None or service_note.own_note(self.host, self.desired):
            return ()
        return (f"{task.user} is putting it into maintenance mode now: wait for that task, or cancel it",)

    def _empty(self, deadline: float) -> None:
        verdict = self.evacuations.verdict(self.host)
        power_off(self.host, verdict.power_off, self.desired)
        if self.desired.moved_by == evacuation.MODULE and verdict.moves:
            move(self.host, verdict.moves, self.desired, deadline)

    def _start(self, deadline: float) -> ApiObject:
        self.desired.go_on(self.target, ENTER)
        spec = maintenance_spec(self.host, self.desired)
        seconds = max(int(deadline - time.monotonic()), 1)
        self.desired.report(self.target, "enters maintenance mode")
        with translating_faults(self.target, ENTER, FAILED):
            return self.host.ref.EnterMaintenanceMode_Task(
                timeout=seconds, evacuatePoweredOffVms=False, maintenanceSpec=spec
            )

    def _enter(self, task: ApiObject, deadline: float) -> None:
        """Wait for the task, and report which virtual machines have left."""
        state, waiting = None, {one.vm.key: one.vm.name for one in self.evacuations.verdict(self.host).moves}
        refs = [vim.VirtualMachine(key, self.host.session.stub) for key in waiting]
        paths = {vim.Task: ("info.state",), vim.VirtualMachine: ("runtime.host", "runtime.powerState")}
        # Owners may delete their machines meanwhile.
        watched = properties.watch(
            self.host.session, [task, *refs], paths, deadline + GRACE, removable=vim.VirtualMachine
        )
        for values in watched:
            self._report_departures(values, waiting)
            state = values[task._moId].get("info.state")
            if state in properties.ENDED:
                break
            self.desired.go_on(self.target, ENTER)  # the task continues on the host, and the next run finds it
        if state not in properties.ENDED:  # the server ignored the timeout of the task
            state = recent_tasks.cancel_entry(self.host, task, GRACE)
        if state != "success":
            raise self._ended_badly(task)
        self.desired.report(self.target, "is in maintenance mode")

    def _report_departures(self, values: Properties, waiting: dict[str, str]) -> None:
        for key in list(waiting):
            machine = values.get(key, {"runtime.powerState": "poweredOff"})
            place = machine.get("runtime.host")
            off = machine.get("runtime.powerState") == "poweredOff"
            if off or (place is not None and place._moId != self.host.ref._moId):
                self.desired.report(self.target, f"{waiting.pop(key)} {'is off' if off else 'has left'}")

    def _ended_badly(self, task: ApiObject) -> Failed | TimedOut:
        error = properties.read_many(self.host.session, [task], ("info.error",))[task._moId].get("info.error")
        if error is not None and not isinstance(error, (vim.fault.Timedout, vmodl.fault.RequestCanceled)):
            return Failed(self.target, ENTER, words(error), FAILED)
        return TimedOut(
            self.target, ENTER, f"after {self.desired.maintenance_timeout} s {self._who_is_left()}", STILL_IN
        )

    def _who_is_left(self) -> str:
        """Return the virtual machines that still run on the host, each with its reason, if known."""
        host = self.host
        cluster = placements.read_cluster(host.session, host["parent"], [host.ref._moId])
        left = [vm for vm in cluster.vms if vm.host == host.name]
        verdict = evacuation.plan(cluster, [host.name], power_off=False, moved_by=self.desired.moved_by)[host.name]
        why = {block.vm.key: block.why for block in verdict.blocks} | self._failed_moves(left)
        left_vms = [f"{vm.name} ({vm.whose}), which {why.get(vm.key, 'could have moved but did not')}" for vm in left]
        return (
            f"it still runs {'; '.join(left_vms)}"
            if left_vms
            else "the task has not ended, although no virtual machine runs on the host"
        )

    def _failed_moves(self, left: Sequence[Vm]) -> dict[str, str]:
        refs = [vim.VirtualMachine(vm.key, self.host.session.stub) for vm in left]
        found = recent_tasks.recent(self.host.session, refs)
        return {
            task.entity: f"could not be moved ({task.error})"
            for task in found
            if task.error and task.what in recent_tasks.MOVES
        }

    def _give_up(self) -> None:
        """Remove the note of this collection from a host that stays in service.

        While the task runs, the host may still leave it: without the note, it would count as taken out by others.
        """
        with suppress(CollectionError):  # the user needs the first error; a leftover note is handled later
            session, ref = self.host.session, self.host.ref
            is_entering = any(
                one.running and one.what == recent_tasks.ENTER for one in recent_tasks.recent(session, [ref])
            )
            values = properties.read_many(session, [ref], ("runtime.inMaintenanceMode",))
            if not is_entering and not values[ref._moId].get("runtime.inMaintenanceMode"):
                service_note.clear(self.host)


class Evacuations:
    """The verdict on the evacuation of each host of one call: either all leave service together, or one at a time."""

    def __init__(self, session: Session, desired: ServiceOptions) -> None:
        self.session, self.desired = session, desired
        self.verdicts: dict[str, HostEvacuation] = {}
        self.entering: dict[str, RecentTask] = {}

    def refresh(self, hosts: Sequence[Host]) -> None:
        """Plan the hosts together, cluster by cluster, and read which of them are entering maintenance mode already."""
        clusters: dict[str, list[Host]] = {}
        for host in hosts:
            clusters.setdefault(host["parent"]._moId, []).append(host)
        for together in clusters.values():
            keys = [host.ref._moId for host in together]
            cluster = placements.read_cluster(
                self.session, together[0]["parent"], keys, each_alone=self.desired.each_alone
            )
            names = [host.name for host in together]
            for leaving in [[name] for name in names] if self.desired.each_alone else [names]:
                self.verdicts.update(self._plan(cluster, leaving))
        running = [task for task in recent_tasks.recent(self.session, [host.ref for host in hosts]) if task.running]
        self.entering = {task.entity: task for task in running if task.what == recent_tasks.ENTER}

    def _plan(self, cluster: evacuation.EvacuationCluster, leaving: list[str]) -> dict[str, HostEvacuation]:
        how = self.desired
        return evacuation.plan(cluster, leaving, power_off=how.power_off, moved_by=how.moved_by)

    def verdict(self, host: Host) -> HostEvacuation:
        """Return the verdict on one host; empty for a host that is in maintenance mode already."""
        return HostEvacuation() if host.in_maintenance else self.verdicts.get(host.name, HostEvacuation())

    def entering_task(self, host: Host) -> RecentTask | None:
        """Return the running task that takes a host into maintenance mode; None without one."""
        return None if host.in_maintenance else self.entering.get(host.ref._moId)


def power_off(host: Host, vms: Sequence[Vm], desired: ServiceOptions) -> None:
    """Shut the guests down; power off the machines whose guests do not shut down in time."""
    if not vms:
        return
    refs = {vm.key: vim.VirtualMachine(vm.key, host.session.stub) for vm in vms}
    ending = set()
    for vm in vms:
        desired.go_on(host.name, f"shut down {vm.name}")
        desired.report(host.name, f"shuts down {vm.name}: {' and '.join(vm.fixed)}")
        if _shut_down(host, vm, refs[vm.key]):
            ending.add(vm.key)
    begin = time.monotonic()
    running = _still_running(host, list(refs.values()), ending, begin + desired.power_off_timeout)
    waited, started = round(time.monotonic() - begin), []
    for vm in vms:
        if vm.key in running:
            why = f"its guest still ran after {waited} s" if vm.key in ending else "its guest has no VMware Tools"
            desired.report(host.name, f"powers {vm.name} off: {why}")
            with translating_faults(vm.name, "power it off"):
                started.append(tasks.Started(refs[vm.key].PowerOffVM_Task(), vm.name, "power it off"))
    _raise_first(tasks.wait_all(host.session, started, desired.power_off_timeout))


def _shut_down(host: Host, vm: Vm, ref: ApiObject) -> bool:
    """Ask a guest to shut down; return whether it may be shutting down: one without tools does not receive it."""
    try:
        with translating_faults(vm.name, "shut down its guest"):
            ref.ShutdownGuest()
    except Failed as error:
        # A guest without tools, or one that shuts down by itself meanwhile. InvalidPowerState is an InvalidState.
        if not is_caused_by(error, vim.fault.ToolsUnavailable, vim.fault.InvalidState):
            raise error.about(host.name) from error
        return not is_caused_by(error, vim.fault.ToolsUnavailable) or worker_power.may_be_ending(host.session, ref)
    return True


def _still_running(host: Host, refs: list[ApiObject], ending: set[str], deadline: float) -> set[str]:
    """Return the keys of the machines that still run at the deadline, or when all guests that shut down have ended.

    The tools of a guest end early in its shutdown, so their state does not show whether it is over.
    """
    running = {ref._moId for ref in refs}
    paths = ("runtime.powerState",)
    for values in properties.watch(host.session, refs, paths, deadline, removable=vim.VirtualMachine):
        running = {key for key, vm in values.items() if vm.get("runtime.powerState") != "poweredOff"}
        if not running & ending:
            break
    return running


def move(host: Host, moves: Sequence[EvacuationMove], desired: ServiceOptions, deadline: float) -> None:
    """Move the virtual machines; those with a vGPU move one at a time, because each move stuns a GPU."""
    targets, under_way = _targets(host), _under_way(host, moves)
    slow = [step for step in moves if step.vm.vgpus]
    quick = [step for step in moves if not step.vm.vgpus]
    for batch in (*([step] for step in slow), quick):
        started = [under_way.get(step.vm.key) or _relocate(host, step, targets[step.to], desired) for step in batch]
        _raise_first(tasks.wait_all(host.session, started, max(deadline - time.monotonic(), 1)))


def _relocate(host: Host, step: EvacuationMove, target: ApiObject, desired: ServiceOptions) -> tasks.Started:
    desired.go_on(host.name, f"move {step.vm.name} away")
    tried = f"move it from {host.name} to {step.to}"
    desired.report(host.name, f"moves {step.vm.name} to {step.to}")
    ref = vim.VirtualMachine(step.vm.key, host.session.stub)
    with translating_faults(step.vm.name, tried):
        task = ref.RelocateVM_Task(spec=vim.vm.RelocateSpec(host=target))
    return tasks.Started(task, step.vm.name, tried, f"{host.name} is still in service; remove the cause and run again")


def _under_way(host: Host, moves: Sequence[EvacuationMove]) -> dict[str, tasks.Started]:
    """Return the running moves of the machines; the server would refuse to start them again."""
    refs = [vim.VirtualMachine(step.vm.key, host.session.stub) for step in moves]
    names = {step.vm.key: step.vm.name for step in moves}
    return {
        task.entity: tasks.Started(task.ref, names[task.entity], f"move it away from {host.name}")
        for task in recent_tasks.recent(host.session, refs)
        if task.running and task.what in recent_tasks.MOVES
    }


def _targets(host: Host) -> dict[str, object]:
    """Return the hosts of the same cluster by name."""
    (cluster,) = properties.read_many(host.session, [host["parent"]], ("host",)).values()
    named = properties.read_many(host.session, cluster["host"], ("name",))
    return {named[ref._moId]["name"]: ref for ref in cluster["host"]}


def _raise_first(outcomes: Sequence[object]) -> None:
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
