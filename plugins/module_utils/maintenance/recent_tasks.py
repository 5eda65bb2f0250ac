"""The running and recent tasks of hosts and virtual machines, with which a run continues an earlier one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..errors import TimedOut
from ..vsphere import properties, tasks
from ..vsphere.faults import translating_faults, words
from ..vsphere.inventory import Host
from ..vsphere.properties import read_linked
from ..vsphere.sdk import ApiObject, vim
from ..vsphere.session import Session

ENTER, REBOOT = "enterMaintenanceMode", "reboot"
# The last one is the task with which DRS moves virtual machines.
MOVES = ("relocate", "migrate", "ExecuteVMotionLRO")
PATHS = ("info.entity", "info.descriptionId", "info.state", "info.reason", "info.error", "info.queueTime")


@dataclass(frozen=True)
class RecentTask:
    """One task on a host or a virtual machine; ``error`` is the reason if it failed."""

    ref: Any
    entity: str
    what: str
    running: bool
    user: str
    error: str = ""
    queued: datetime | None = None


def wait_for_others(host: Host, tried: str, seconds: float, report: Callable[[str, str], None]) -> None:
    """Wait until no task runs on a host: another user may install a patch on one that is in maintenance mode."""
    running = [task for task in recent(host.session, [host.ref]) if task.running and task.what != REBOOT]
    for task in running:
        report(host.name, f"waits for the task {task.what} of {task.user}")
    started = [tasks.Started(task.ref, host.name, tried) for task in running]
    for task, outcome in zip(running, tasks.wait_all(host.session, started, seconds)):
        if isinstance(outcome, TimedOut):
            cause = f"the task {task.what} of {task.user} still runs on it"
            raise TimedOut(host.name, tried, cause, "it stays in maintenance mode; wait until that ends, and run again")


def cancel_entry(host: Host, task: ApiObject, seconds: float) -> ApiObject:
    """Cancel the task that takes a host into maintenance mode; return its final state."""
    tried = "cancel entering maintenance mode"
    with translating_faults(host.name, tried):
        task.CancelTask()
    tasks.wait_all(host.session, [tasks.Started(task, host.name, tried)], seconds)
    return properties.read_many(host.session, [task], ("info.state",))[task._moId]["info.state"]


def recent(session: Session, refs: Sequence[ApiObject]) -> list[RecentTask]:
    """Return the running and recently ended tasks of some objects, in one read."""
    linked = read_linked(session, refs, "recentTask", vim.Task, PATHS)
    return [_described(ref, values) for ref, values in linked if values.get("info.entity") is not None]


def _described(ref: object, values: dict[str, Any]) -> RecentTask:
    what = str(values.get("info.descriptionId") or "").rsplit(".", maxsplit=1)[-1].removesuffix("_Task")
    user = getattr(values.get("info.reason"), "userName", None) or "the system"
    error = values.get("info.error")
    running = values.get("info.state") in {"running", "queued"}
    reason, queued = words(error) if error else "", values.get("info.queueTime")
    return RecentTask(ref, str(values["info.entity"]._moId), what, running, str(user), reason, queued)
