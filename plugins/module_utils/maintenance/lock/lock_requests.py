"""Subject: a request by another user to the run that holds the lock of a cluster, in the record of the lock."""

from __future__ import annotations

from dataclasses import replace

from ...errors import Failed, Refused
from ...plan import Plan, State
from ...vsphere.host_clocks import server_time
from . import holder
from .cluster_lock import ClusterLock, record_at

PAUSE, RESUME, END = "pause", "resume", "end"
# The holder may renew its lock at the same moment.
TRIES = 3


class WindowRequest:
    """A request to the maintenance window of a cluster, which it reads before the next host."""

    name = "request to the maintenance window"

    def __init__(self, lock: ClusterLock, action: str) -> None:
        self._lock, self._action, self.target = lock, action, lock.target

    def read(self) -> State:
        """Return the current request; empty without one."""
        self._lock.read()
        record = self._lock.lock_state.record
        if record is None or record.free or not record.note:
            remedy = "see window_action=status; a window that no run continues is continued by the playbook hosts"
            raise Refused(self.target, f"ask its maintenance window to {self._action}", "no window runs there", remedy)
        over = record_at(record, self._lock.now)["over"]
        if over and self._action != RESUME:
            machine = record.process.machine if record.process else "the controller with its folder"
            cause = f"no run reads the request, because {record} is not at work: {over}"
            remedy = f"on {machine}, continue the window with the playbook hosts, or end it with window_action=end"
            raise Refused(self.target, f"ask its maintenance window to {self._action}", cause, remedy)
        return {"request": record.request}

    def plan(self, current: State) -> Plan:
        return Plan(before=current, after={"request": "" if self._action == RESUME else self._action})

    def apply(self, plan: Plan) -> None:
        """Write the request into the record of the holder, which keeps it when it renews its lock."""
        for _try in range(TRIES):
            state = self._lock.folders.read()
            if state.record is None or state.record.free:
                break
            request = str(plan.after["request"])
            record = replace(state.record, request=request, requester=holder.owner() if request else "")
            if self._lock.folders.write(state, record, server_time(self._lock.session).replace(microsecond=0)):
                return
        cause = "the record of its lock changed at the same time"
        raise Failed(self.target, f"ask its maintenance window to {self._action}", cause, "run again")
