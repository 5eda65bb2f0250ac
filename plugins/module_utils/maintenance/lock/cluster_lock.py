"""Subject: the lock of one cluster, held by one run of one controller until a time on the server's clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from ...errors import Failed, Refused
from ...plan import Plan, State
from ...runner import Params
from ...vsphere.host_clocks import server_time
from ...vsphere.inventory import find_cluster
from ...vsphere.properties import id_of
from ...vsphere.session import Session
from . import holder, lock_rules
from .folders import LockFolders, LockState

STATES = ("held", "free", "absent")
# A user may request something of the window that holds the lock, at the moment of its renewal.
TRIES = 3
WAIT_FOR_IT = "wait for that run, or end it; if you are certain that it has ended, run with force_unlock: true"


class ClusterLock:
    """The lock of one cluster."""

    name = "lock"

    def __init__(self, session: Session, cluster: str, state: str, desired: lock_rules.LockRequest) -> None:
        self.session, self.target, self.state, self.desired = session, cluster, state, desired
        ref, values = find_cluster(session, cluster, ("parent",))
        self.ref = ref
        self.folders = LockFolders(session, cluster, values["parent"], id_of(ref))
        self.lock_state: LockState = LockState(None, 0, None)
        self.now = _now(session)

    def read(self) -> State:
        """Return who holds the lock, since when and until when."""
        self.lock_state, self.now = self.folders.read(), _now(self.session)
        return state_of(self.lock_state.record)

    def plan(self, current: State) -> Plan:
        """Return the plan that takes, renews, releases or keeps the lock."""
        decision = self._decide()
        if decision.refusal:
            raise Refused(self.target, self._tried, decision.refusal, WAIT_FOR_IT)
        if self.state == "absent":
            there = {**current, "folder": self.lock_state.root is not None or self.lock_state.remains != ()}
            gone = {**state_of(None), "folder": False}
            return Plan(before=there, after=gone, warnings=(decision.warning,) if decision.warning else ())
        after = current if decision.write is None else state_of(decision.write)
        warnings = [decision.warning, self._unbound() if decision.write and self.state == "held" else ""]
        return Plan(before=current, after=after, warnings=tuple(filter(None, warnings)))

    def _unbound(self) -> str:
        """Return which vCenter is about to be changed, and how to bind the inventory to it; empty if it is bound."""
        if self.session.params.get("vcenter_uuid"):
            return ""
        name, uuid = self.session.server, self.session.uuid
        return f"{name} has the instance UUID {uuid}: vcenter_uuid: {uuid} in the inventory refuses any other vCenter"

    def apply(self, plan: Plan) -> None:
        """Write the planned record; if another controller won, name it.

        A request to this run, or a renewal by one of its modules, is kept, and the write is repeated.
        """
        for _try in range(TRIES):
            record = self._decide().write if plan.changes else None
            if record is None or self.folders.write(self.lock_state, record, self.now):
                if self.state == "absent":
                    self.folders.remove(self.folders.read())
                return
            self.read()
            rival = self.lock_state.record
            if rival is None or rival.free or rival.run != self.desired.run:
                break
        cause = f"it now belongs to {rival}" if rival and not rival.free else "another controller won"
        raise Refused(self.target, self._tried, cause, WAIT_FOR_IT)

    def is_of_killed_module(self) -> bool:
        """Return whether the process of the lock has ended; a killed window, whose lock has a note, goes on later."""
        record = self.lock_state.record
        return record is not None and not record.free and not record.note and _holder(record)[0]

    def _decide(self) -> lock_rules.LockDecision:
        if self.lock_state.unreadable and not self.desired.force:
            raise Failed(
                self.target,
                "read its lock",
                "the folders of the lock are not as this collection writes them",
                "check in the vSphere Client who changed them; force_unlock: true replaces them",
            )
        # The run that removes the lock must hold it: a rival that read it earlier cannot take it during the removal.
        rule: Callable[..., lock_rules.LockDecision] = lock_rules.release if self.state == "free" else lock_rules.hold
        record = self.lock_state.record
        dead, alive, working = _holder(record)
        decision = rule(record, self.desired, self.now, dead=dead, alive=alive)
        if not decision.refusal or not working:
            return decision
        left = f"{decision.refusal}, whose ansible has ended, yet its process {working[0]} still runs"
        return replace(decision, refusal=left)

    @property
    def _tried(self) -> str:
        return {"held": "take its lock", "free": "release its lock", "absent": "remove its lock"}[self.state]


def lock_request(params: Params) -> lock_rules.LockRequest:
    """Return the requesting run, from a module's options and from the process that runs it."""
    process = holder.running()
    run = params.get("run") or (f"{process.machine}.{process.pid}.{process.started}" if process else "")
    if not run:
        raise Refused("cluster_lock", "tell this run from others", "no ansible command runs it", "give the option run")
    owner = lock_rules.safe_text(params.get("owner") or holder.owner())
    note = lock_rules.safe_text(params.get("note") or "")
    return lock_rules.LockRequest(
        owner, lock_rules.safe_text(run), params["ttl"], process, params["force_unlock"], note
    )


def _now(session: Session) -> datetime:
    """Return the server's time, truncated to seconds as in the record."""
    return server_time(session).replace(microsecond=0)


def _holder(record: lock_rules.LockRecord | None) -> tuple[bool, bool, list[int]]:
    """Return whether the holder has certainly ended, whether it certainly runs, and its modules that still run."""
    process = record.process if record else None
    ended = holder.is_dead(process)
    working = holder.survivors(process, record.owner) if record and ended else []
    return ended and not working, holder.is_alive(process), working


def record_at(record: lock_rules.LockRecord | None, now: datetime) -> dict[str, object]:
    """Return a record for read-only use; ``over`` is the reason why the next run gets the lock although it is held."""
    if record is None or record.free:
        return {**state_of(record), "over": None}
    dead, alive, _working = _holder(record)
    return {**state_of(record), "over": lock_rules.why_expired(record, now, dead=dead, alive=alive) or None}


def state_of(record: lock_rules.LockRecord | None) -> dict[str, object]:
    if record is None or record.free:
        return {"held": False, "owner": None, "run": None, "since": None, "until": None}
    times = {"since": lock_rules.stamp(record.since), "until": lock_rules.stamp(record.until)}
    notes = {"note": record.note, "request": record.request, "requester": record.requester}
    shown = {key: value for key, value in notes.items() if value}
    return {"held": True, "owner": record.owner, "run": record.run, **times, **shown}
