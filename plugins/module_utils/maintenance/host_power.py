"""Taking hosts out of service and back: the options, and the subject for each desired state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import Failed, TimedOut
from ..plan import Plan, State
from ..vsphere import properties, tasks
from ..vsphere.faults import translating_faults, words
from ..vsphere.inventory import Host, HostSet
from ..vsphere.sdk import ApiObject, vim, vmodl
from . import boot, recent_tasks, service_note
from .evacuation import DRS, MODULE
from .maintenance_mode import Evacuations, MaintenanceMode
from .service_options import ServiceOptions

PATHS = (
    "parent",
    "vm",
    "config.service.service",
    "config.vsanHostConfig.enabled",
    "configManager.serviceSystem",
    *service_note.PATHS,
    *boot.PATHS,
)
MOVED_BY = (DRS, MODULE)
EXIT = "leave maintenance mode"
# The remedy after an error of the server, and after the time limit.
STILL_OUT = (
    "it stays in maintenance mode; see its Recent Tasks in the vSphere Client, give it more time with "
    "maintenance_timeout (of the playbooks: esxi_host_maintenance_timeout) if it needs that, and run again"
)
IN_MAINTENANCE = "runtime.inMaintenanceMode"
BOOT = "reboot"
DUE, REQUESTED, UNDER_WAY, DONE = "due", "asked for", "under way", "done"
STAYS_OUT = "it stays in maintenance mode; remove the cause and run again"
WAIT_ON = (
    "it stays in maintenance mode; check its console, and run again to continue waiting, for longer with "
    "reboot_timeout (of the playbooks: esxi_host_reboot_timeout)"
)


class InService:
    """One host that should be in service."""

    name = "maintenance mode"

    def __init__(self, host: Host, desired: ServiceOptions, _evacuations: Evacuations) -> None:
        self.host, self.desired, self.target = host, desired, host.name

    def read(self) -> State:
        """Return whether the host is in maintenance mode, and who put it there."""
        self.host.must_answer("read its state")
        note = service_note.note_on(self.host)
        return {
            "maintenance": self.host.in_maintenance,
            "ours": service_note.own_note(self.host, self.desired) is not None,
            "by": str(note) if note else None,
        }

    def plan(self, current: State) -> Plan:
        """Leave maintenance mode, and remove the note of this collection."""
        is_theirs = not current["ours"] and self.desired.only_if_ours
        if is_theirs and self.desired.rollout and not current["maintenance"]:
            return Plan(before=current, after=current)  # maybe a person empties it now
        if is_theirs and current["maintenance"]:
            whose = "no rollout" if self.desired.rollout else "this collection did not"
            how = "put it there with this vCenter account (only_if_ours: false ends it)"
            left = f"stays in maintenance mode: {whose} {how}"
            return Plan(before=current, after=current, warnings=(left,))
        return Plan(before=current, after={"maintenance": False, "ours": False, "by": None})

    def apply(self, plan: Plan) -> None:
        """Leave maintenance mode, then remove the note: if the run is killed in between, the next run removes it."""
        self.desired.go_on(self.target, EXIT)
        self.desired.require_free(self.host, EXIT)
        if plan.before["maintenance"] or self._was_entering():
            recent_tasks.wait_for_others(self.host, EXIT, self.desired.maintenance_timeout, self.desired.report)
            self.desired.report(self.target, "leaves maintenance mode")
            with translating_faults(self.target, EXIT, STILL_OUT):
                task = self.host.ref.ExitMaintenanceMode_Task(timeout=self.desired.maintenance_timeout)
            started = tasks.Started(task, self.target, EXIT, STILL_OUT)
            tasks.wait(self.host.session, started, self.desired.maintenance_timeout)
            if self._is_out():
                return  # the server ignored the change, which the caller will detect: the next run needs the note
            self.desired.report(self.target, "is in service")
        service_note.clear(self.host)

    def _was_entering(self) -> bool:
        """Cancel the entry that a killed run left; return whether the host is in maintenance mode nevertheless."""
        found = recent_tasks.recent(self.host.session, [self.host.ref])
        entries = [task for task in found if task.running and task.what == recent_tasks.ENTER]
        for entry in entries:
            self.desired.report(self.target, "no longer enters maintenance mode")
            recent_tasks.cancel_entry(self.host, entry.ref, self.desired.maintenance_timeout)
        return bool(entries) and self._is_out()

    def _is_out(self) -> bool:
        values = properties.read_many(self.host.session, [self.host.ref], (IN_MAINTENANCE,))
        return bool(values[self.host.ref._moId].get(IN_MAINTENANCE))


class HostReboot:
    """One host to reboot."""

    name = "power state"

    def __init__(self, host: Host, desired: ServiceOptions, _evacuations: Evacuations) -> None:
        self.host, self.desired, self.target = host, desired, host.name
        self.done = False

    def read(self) -> State:
        """Return whether the reboot is due, requested by an earlier run that ended early, under way, or done."""
        state = DONE if self.done else self._state()
        return {"reboot": state, "boot_time": self.host.boot_time, "maintenance": self.host.in_maintenance}

    def _state(self) -> str:
        note = service_note.note_on(self.host)
        requested = note.ending_boot if note else ""
        if not self.host.reachable and requested:
            return UNDER_WAY
        self.host.must_answer(BOOT)
        ended, booted = self.desired.boot_times.get(self.target), self.host.boot_time
        if not booted:
            # Its present boot would count as the next one.
            cause = "vCenter does not show when it booted, so that its return could not be noticed"
            raise Failed(self.target, BOOT, cause, "wait until its Summary shows its uptime, and run again")
        if ended and not boot.is_same_boot(ended, booted):
            return UNDER_WAY
        if boot.is_same_boot(requested, booted):
            return REQUESTED if self.host.ref._moId in self.desired.rebooting else DUE
        # The boot that the caller wants to end is the present one, whatever an earlier request ended.
        due = ended or boot.reboot_due(self.host) or boot.pending(self.host)
        return DUE if due or not requested else UNDER_WAY

    def plan(self, current: State) -> Plan:
        """Return the plan for one reboot; a reboot that an earlier run requested counts."""
        if current["reboot"] == DONE:
            return Plan(before=current, after=current)
        outside = () if current["maintenance"] else ("it is not in maintenance mode: use state: maintenance first",)
        earlier = () if current["reboot"] == DUE else ("an earlier run requested the reboot: waits until it ends",)
        return Plan(before=current, after={**current, "reboot": DONE}, why=earlier, unmet=outside)

    def apply(self, plan: Plan) -> None:
        """Reboot the host, unless it is rebooting already, and wait until it serves again."""
        self.desired.require_free(self.host, BOOT)
        is_due, expected = plan.before["reboot"] == DUE, self._services()
        if is_due:
            recent_tasks.wait_for_others(self.host, BOOT, self.desired.reboot_timeout, self.desired.report)
        deadline = time.monotonic() + self.desired.reboot_timeout
        if is_due:
            earlier = self._start()
            self._wait_for_return(earlier, deadline)
        else:
            note = service_note.note_on(self.host)
            self._wait_for_return((note.ending_boot if note else "", None), deadline)
        self._wait_for_services(expected, deadline)
        self._forget_reboot()
        self.done = True

    def _start(self) -> tuple[str, Any]:
        """Note which boot should end, then request the reboot."""
        self.desired.go_on(self.target, BOOT)
        was, mine = str(self.host.boot_time), service_note.our_note(self.host)
        note = replace(mine or service_note.new_note(self.host, self.desired), ending_boot=was, visiting=mine is None)
        service_note.write(self.host, note)
        self.desired.report(self.target, "reboots")
        with translating_faults(self.target, BOOT, STAYS_OUT):
            return was, self.host.ref.RebootHost_Task(force=False)

    def _wait_for_return(self, started: tuple[str, Any], deadline: float) -> None:
        """Wait until the host is connected with a new boot time."""
        was, task = started
        host, gone = self.host, False
        refs = [host.ref, *([task] if task else [])]
        paths = {vim.HostSystem: ("runtime.connectionState", "runtime.bootTime"), vim.Task: ("info.state",)}
        if task is None:
            paths.pop(vim.Task)
        for values in properties.watch(host.session, refs, paths, deadline):
            if task and values[task._moId].get("info.state") == "error":
                raise self._refused(task)
            self.desired.go_on(self.target, f"wait for the end of its {BOOT}")
            state, booted = (values[host.ref._moId].get(path) for path in paths[vim.HostSystem])
            if state != "connected" and not gone:
                gone = True
                self.desired.report(self.target, "is down")
            if state == "connected" and booted and not boot.is_same_boot(booted.isoformat(timespec="seconds"), was):
                self.desired.report(self.target, "is back")
                return
        cause = "it went down and did not return" if gone else "it did not go down"
        raise TimedOut(self.target, BOOT, f"{cause} within {self.desired.reboot_timeout} s", WAIT_ON)

    def _refused(self, task: ApiObject) -> Failed:
        error = properties.read_many(self.host.session, [task], ("info.error",))[task._moId].get("info.error")
        self._forget_reboot()
        return Failed(self.target, BOOT, words(error), STAYS_OUT)

    def _services(self) -> set[str]:
        """Return the running services that start with the host, and those that the user named."""
        services = self.host["config.service.service"] or []
        started = {service.key for service in services if service.policy == "on" and service.running}
        return started | set(self.desired.services)

    def _wait_for_services(self, expected: set[str], deadline: float) -> None:
        """Wait until the host itself answers and its services run; a returned host does not answer at once."""
        path, missing = "config.service.service", sorted(expected)
        for values in properties.watch(self.host.session, [self.host.ref], (path,), deadline):
            self.desired.go_on(self.target, "wait for its services after the reboot")
            answers = self._answers()
            running = {service.key for service in values[self.host.ref._moId].get(path) or [] if service.running}
            missing = sorted(expected - running)
            if answers and not missing:
                self.desired.report(self.target, "serves again")
                return
        cause = f"not running: {', '.join(missing)}" if missing else "its management agent does not answer"
        raise TimedOut(self.target, "wait for its services after the reboot", cause, WAIT_ON)

    def _answers(self) -> bool:
        """Return whether the agent of the host answers; the query also refreshes vCenter's copy of the services."""
        try:
            with translating_faults(self.target, "read its services"):
                self.host["configManager.serviceSystem"].RefreshServices()
        except Failed as error:
            if isinstance(error.__cause__, (vim.fault.HostConnectFault, vmodl.fault.HostCommunication)):
                return False
            raise
        return True

    def _forget_reboot(self) -> None:
        mine = service_note.our_note(self.host)
        if mine:
            service_note.write(self.host, replace(mine, ending_boot=""))
        else:
            service_note.clear(self.host)


STATES: dict[str, Any] = {"maintenance": MaintenanceMode, "in_service": InService, "rebooted": HostReboot}


@dataclass(frozen=True)
class PowerWork:
    """The subjects of one call, and a function that reads all of them at once."""

    subjects: Sequence[Any]
    refresh: Callable[[Sequence[Any]], None]


def work_on(fleet: HostSet, state: str, desired: ServiceOptions) -> PowerWork:
    """Return one subject for each host; their evacuations are planned together."""
    evacuations = Evacuations(fleet.session, desired)

    def refresh(subjects: Sequence[Any]) -> None:
        fleet.refresh_for(subjects)
        hosts = [subject.host for subject in subjects]
        if state == "maintenance":
            evacuations.refresh([host for host in hosts if host.reachable and not host.in_maintenance])
        elif state == "rebooted":
            desired.rebooting.update(_rebooting([host for host in hosts if service_note.note_on(host)]))

    return PowerWork([STATES[state](host, desired, evacuations) for host in fleet.hosts], refresh)


def _rebooting(hosts: Sequence[Host]) -> Iterator[str]:
    """Yield the hosts whose present boot a recent task ends: one that failed, or that led to this boot, does not."""
    known = {host.ref._moId: host for host in hosts}
    for task in recent_tasks.recent(hosts[0].session, [host.ref for host in hosts]) if hosts else ():
        booted = known[task.entity]["runtime.bootTime"] if task.entity in known else None
        if task.what == recent_tasks.REBOOT and not task.error and not boot.is_older(task.queued, booted):
            yield task.entity
