# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Taking hosts out of service and back: the options, and the subject for each desired state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..vsphere.inventory import HostSet
from . import boot, recent_tasks, service_note
from .evacuation import DRS, MODULE
from .in_service import InService
from .leaving import Evacuations
from .maintenance_mode import MaintenanceMode
from .reboot import HostReboot
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
            tasks = recent_tasks.recent(fleet.session, [host.ref for host in hosts if service_note.note_on(host)])
            desired.rebooting.update(task.entity for task in tasks if task.what == recent_tasks.REBOOT)

    return PowerWork([STATES[state](host, desired, evacuations) for host in fleet.hosts], refresh)
