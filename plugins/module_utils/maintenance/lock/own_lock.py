"""The lock of a cluster for one module, from its first write to its end, and requests to the run that holds it."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from ...errors import Failed, Refused
from ...plan import Plan, State
from ...runner import PlanningSubject
from ...vsphere.host_clocks import server_time
from ...vsphere.inventory import Host
from ...vsphere.properties import id_of
from ...vsphere.session import Session
from . import holder
from .cluster_lock import ClusterLock, lock_request, record_at
from .folders import LockFolders

# A module that is killed leaves the lock for at most this time; the next run on its machine takes or releases it.
SECONDS = 7200
ARGUMENTS: dict[str, Any] = {"force_unlock": {"type": "bool", "default": False}}
PAUSE, RESUME, END = "pause", "resume", "end"
# The holder may renew its lock at the same moment.
TRIES = 3


class OwnLock:
    """The lock of a cluster, which subjects take before they change.

    A module without changes takes no lock, and releases that of a killed module: runs on other machines would wait.
    """

    def __init__(self, session: Session, cluster: str, *, force: bool, check: bool = False) -> None:
        self._session, self._cluster, self._force, self._check = session, cluster, force, check
        self._one_at_a_time, self._is_settled, self._is_taken = threading.Lock(), False, False

    def __enter__(self) -> OwnLock:
        return self

    def __exit__(self, *_exception: object) -> None:
        may_release = self._cluster and not self._is_settled and not self._check and holder.running() is not None
        if self._is_taken or may_release:
            lock = self._lock("free")
            current = lock.read()
            if self._is_taken or lock.is_of_killed_module():
                lock.apply(lock.plan(current))

    def guarded(self, subject: PlanningSubject) -> Guarded:
        """Return the same subject, which takes the lock before it is changed."""
        return Guarded(subject, self)

    def take(self) -> None:
        """Take the lock unless this module has it; raise if another run holds it."""
        # Each subject that asks gets the refusal.
        with self._one_at_a_time:
            if not self._is_settled:
                self._take()
                self._is_settled = True

    def _take(self) -> None:
        # A lock without an ansible command would have no holder whose end the next run could notice.
        if holder.running() is None:
            return
        lock = self._lock("held")
        current = lock.read()
        plan = lock.plan(current)
        # The run of this module holds it: a playbook renews and releases its lock itself.
        if current["held"] and current["run"] == lock.desired.run:
            return
        lock.apply(plan)
        self._is_taken = True

    def _lock(self, state: str) -> ClusterLock:
        request = lock_request({"ttl": SECONDS, "force_unlock": self._force and state == "held"})
        return ClusterLock(self._session, self._cluster, state, request)


def require_free(session: Session, host: Host, tried: str) -> None:
    """Refuse to change a host while another run holds the lock of its cluster, and takes its hosts out of service."""
    # A host outside a cluster has no lock.
    record = LockFolders(session, host.name, host["parent"], id_of(host["parent"])).read().record
    running = holder.running()
    # A module that no ansible command runs may belong to any run.
    if record is None or running is None or record.process == running:
        return
    known = record_at(record, server_time(session).replace(microsecond=0))
    if known["held"] and not known["over"]:
        raise Refused(host.name, tried, f"the lock of its cluster is held by {record}", "wait for that run, or end it")


class Guarded:
    """A subject that is changed under the lock of its cluster."""

    def __init__(self, subject: PlanningSubject, lock: OwnLock) -> None:
        self._subject, self._lock = subject, lock
        self.name, self.target = subject.name, subject.target

    def read(self) -> State:
        return self._subject.read()

    def plan(self, current: State) -> Plan:
        return self._subject.plan(current)

    def apply(self, plan: Plan) -> None:
        """Take the lock, and change the subject."""
        self._lock.take()
        self._subject.apply(plan)


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
