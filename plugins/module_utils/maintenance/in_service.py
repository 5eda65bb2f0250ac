# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Subject: a host in service again, if this collection took it out of service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..plan import Plan
from ..vsphere import properties, tasks
from ..vsphere.faults import translating_faults
from ..vsphere.inventory import Host
from . import recent_tasks, service_note
from .leaving import Evacuations
from .service_options import ServiceOptions

EXIT = "leave maintenance mode"
# The remedy after an error of the server, and after the time limit.
STILL_OUT = (
    "it stays in maintenance mode; see its Recent Tasks in the vSphere Client, give it more time with "
    "maintenance_timeout (of the playbooks: esxi_host_maintenance_timeout) if it needs that, and run again"
)
IN_MAINTENANCE = "runtime.inMaintenanceMode"


class InService:
    """One host that should be in service."""

    name = "maintenance mode"

    def __init__(self, host: Host, desired: ServiceOptions, _evacuations: Evacuations) -> None:
        self.host, self.desired, self.target = host, desired, host.name

    def read(self) -> dict[str, Any]:
        """Return whether the host is in maintenance mode, and who put it there."""
        self.host.must_answer("read its state")
        note = service_note.note_on(self.host)
        return {
            "maintenance": self.host.in_maintenance,
            "ours": service_note.own_note(self.host, self.desired) is not None,
            "by": str(note) if note else None,
        }

    def plan(self, current: Mapping[str, Any]) -> Plan:
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
