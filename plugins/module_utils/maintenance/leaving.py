"""The evacuation of hosts: the verdicts for all hosts of a call, and the moves and power-offs of one."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ..errors import Failed
from ..vsphere import properties, tasks
from ..vsphere.faults import is_caused_by, translating_faults
from ..vsphere.inventory import Host
from ..vsphere.sdk import ApiObject, vim
from ..vsphere.session import Session
from ..workers.capacity.running_vm import Vm
from . import evacuation, placements, recent_tasks
from .evacuation import EvacuationMove, HostEvacuation
from .recent_tasks import RecentTask
from .service_options import ServiceOptions


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
    for vm in vms:
        desired.go_on(host.name, f"shut down {vm.name}")
        desired.report(host.name, f"shuts down {vm.name}: {' and '.join(vm.fixed)}")
        _shut_down(host, vm, refs[vm.key])
    running = _still_running(host, list(refs.values()), time.monotonic() + desired.power_off_timeout)
    started = []
    for vm in vms:
        if vm.key in running:
            desired.report(host.name, f"powers {vm.name} off: its guest still ran after {desired.power_off_timeout} s")
            with translating_faults(vm.name, "power it off"):
                started.append(tasks.Started(refs[vm.key].PowerOffVM_Task(), vm.name, "power it off"))
    _raise_first(tasks.wait_all(host.session, started, desired.power_off_timeout))


def _shut_down(host: Host, vm: Vm, ref: ApiObject) -> None:
    try:
        with translating_faults(vm.name, "shut down its guest"):
            ref.ShutdownGuest()
    except Failed as error:
        # A guest without tools, or one that shuts down by itself meanwhile. InvalidPowerState is an InvalidState.
        if not is_caused_by(error, vim.fault.ToolsUnavailable, vim.fault.InvalidState):
            raise error.about(host.name) from error


def _still_running(host: Host, refs: list[ApiObject], deadline: float) -> set[str]:
    """Return the keys of the machines that still run at the deadline."""
    running = {ref._moId for ref in refs}
    paths = ("runtime.powerState", "guest.toolsRunningStatus")
    for values in properties.watch(host.session, refs, paths, deadline, removable=vim.VirtualMachine):
        running = {key for key, vm in values.items() if vm.get("runtime.powerState") != "poweredOff"}
        listening = [key for key in running if values[key].get("guest.toolsRunningStatus") == "guestToolsRunning"]
        if not listening:  # a guest without tools does not receive the shutdown request
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
