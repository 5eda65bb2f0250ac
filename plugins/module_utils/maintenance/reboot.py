# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Subject: a rebooted host: disconnected, connected with another boot time, and with its services running."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import Failed, TimedOut
from ..plan import Plan
from ..vsphere import properties
from ..vsphere.faults import translating_faults, words
from ..vsphere.inventory import Host
from ..vsphere.sdk import vim, vmodl
from . import boot, recent_tasks, service_note
from .leaving import Evacuations
from .service_options import ServiceOptions

BOOT = "reboot"
DUE, REQUESTED, UNDER_WAY, DONE = "due", "asked for", "under way", "done"
STILL_OUT = "it stays in maintenance mode; remove the cause and run again"
WAIT_ON = (
    "it stays in maintenance mode; check its console, and run again to continue waiting, for longer with "
    "reboot_timeout (of the playbooks: esxi_host_reboot_timeout)"
)


class HostReboot:
    """One host to reboot."""

    name = "power state"

    def __init__(self, host: Host, desired: ServiceOptions, _evacuations: Evacuations) -> None:
        self.host, self.desired, self.target = host, desired, host.name
        self.done = False

    def read(self) -> dict[str, Any]:
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
        due = boot.reboot_due(self.host) or boot.pending(self.host)
        return DUE if due or not requested else UNDER_WAY

    def plan(self, current: Mapping[str, Any]) -> Plan:
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
        with translating_faults(self.target, BOOT, STILL_OUT):
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

    def _refused(self, task: Any) -> Failed:
        error = properties.read_many(self.host.session, [task], ("info.error",))[task._moId].get("info.error")
        self._forget_reboot()
        return Failed(self.target, BOOT, words(error), STILL_OUT)

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
