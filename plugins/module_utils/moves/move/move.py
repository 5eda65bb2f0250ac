"""Subject: the host of one running worker. The move is followed to its end, and its events are recorded."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, cast

from ...continuity.judged_facts import Move, MoveEvidence
from ...core import findings
from ...core.findings import Finding
from ...errors import Failed, Refused, TimedOut
from ...maintenance.recent_tasks import RecentTask
from ...plan import Plan, State
from ...vsphere import properties
from ...vsphere.faults import translating_faults, words
from ...vsphere.sdk import ApiObject, vmodl
from ...workers.machine import Machine
from ...workers.worker_cluster import WorkerCluster
from ..checks import move_checks, move_events
from . import clock_offset, move_facts, move_watch

ENDED = ("success", "error")
CANCEL_SECONDS = 120
# A line for each percent would hide the other lines.
PROGRESS_SECONDS, POLL_SECONDS = 1.0, 2.0
GO_ON = "check on which host it is, and run again"


@dataclass(frozen=True)
class MoveRequest:
    """The worker, its target host, the time-out, and the rules whose findings are accepted.

    ``refusal`` returns why the workers of the call must not move at the same time, after each of them was checked.
    """

    worker: str
    target: str
    timeout: int = 1800
    accept: tuple[str, ...] = ()
    budget: move_facts.Budget = field(default_factory=move_facts.Budget)
    report: Callable[[str, str], None] = lambda _about, _what: None
    refusal: Callable[[], str] = lambda: ""


class ObservedMove(TypedDict):
    """The result of a move, as its task, its events and two readings of its worker show it."""

    ok: bool
    said: str
    chain: int
    by: str
    task: dict[str, str]
    vsphere: MoveEvidence
    events: list[move_events.MoveEvent]


class WorkerMove:
    """One worker and its host."""

    name = "host"

    def __init__(self, cluster: WorkerCluster, request: MoveRequest) -> None:
        self.cluster, self.session, self.request, self.target = cluster, cluster.session, request, request.worker
        self.found: list[Finding] = []
        self.record: Move | None = None
        self.stun: float | None = None
        self.tasks: list[RecentTask] = []
        self.running: Any = None
        # Whether the server may have received the request: a later failure leaves the outcome open.
        self.is_started = False

    def read(self) -> State:
        self.cluster.refresh([self.request.worker])
        self.tasks = move_facts.tasks_on(self.cluster, self.machine)
        self.running = move_facts.running_move(self.cluster, self.machine, self.tasks, self.request.target)
        # This call does not refuse a move that is already running, even if it refuses another move.
        self.is_started = self.is_started or self.running is not None
        return {"host": self.cluster.host_name(self.machine.host)}

    def plan(self, current: State) -> Plan:
        """Return the move to the target host; findings that forbid the move are its unmet conditions."""
        self._check()
        plan = Plan(before=current, after={"host": self.request.target})
        if not plan.changes or self.running:
            return plan
        facts = move_facts.facts(self.cluster, self.machine, self.request.target, self.tasks, self.request.budget)
        self.stun = facts["stun"].seconds
        self.found = move_checks.findings(facts)
        rows = findings.as_dicts(self.found)
        stops = findings.stops(rows, self.request.accept)
        return Plan(
            before=plan.before,
            after=plan.after,
            unmet=tuple(f"{findings.without_object(row['object'], row['text'])} ({row['rule']})" for row in stops),
            warnings=tuple(finding.text for finding in self.found if finding.severity == findings.WARN)
            + self._accepted(rows),
        )

    def _accepted(self, rows: Sequence[findings.FindingRecord]) -> tuple[str, ...]:
        """Return the findings that would stop the move and were accepted."""
        stops = [row["text"] for row in findings.stops(rows, self.request.accept)]
        every = [row["text"] for row in findings.stops(rows)]
        return tuple(f"accepted: {findings.without_object(self.target, text)}" for text in every if text not in stops)

    def apply(self, plan: Plan) -> None:
        """Start the move, or follow one that runs already; the record is written whether or not the move succeeds."""
        reason = "" if self.running else self.request.refusal()
        if reason:
            raise Refused(self.target, f"move it to {self.request.target}", reason, "move fewer workers at once")
        before = move_watch.runtime_of(self.session, self.machine.ref)
        offset = clock_offset.measure(self.session)
        attached = self.is_started = self.running is not None
        self.request.report(self.target, f"{'follows its move' if attached else 'moves'} from {before.host}")
        task = self.running or self._start()
        info, in_time = self._follow(task)
        later = clock_offset.measure(self.session)
        record = {
            "worker": self.target,
            "source": before.host,
            "target": plan.after["host"],
            "attached": attached,
            **clock_offset.times(info.startTime or info.queueTime, info.completeTime, offset, later),
            **self._observed(before, info),
        }
        self.record = cast("Move", record)
        self._judge(info, in_time=in_time)

    @property
    def machine(self) -> Machine:
        """Return the virtual machine of the worker as last read."""
        return self.cluster.find(self.request.worker, "worker")

    def _check(self) -> None:
        """Refuse a VM without the mark, a VM that is off, and a host of another cluster."""
        tried = f"move it to {self.request.target}"
        if self.cluster.mark_of(self.machine) is None:
            raise Refused(self.target, tried, "it carries no mark of this collection", "name a worker that has one")
        if self.request.target not in self.cluster.host_names:
            known = ", ".join(sorted(self.cluster.host_names))
            raise Refused(
                self.target, tried, f"cluster {self.cluster.name} has {known}", "correct the name of the host"
            )
        if not self.machine.on:
            raise Refused(self.target, tried, "it is powered off", "power it on: only a running worker can be tested")

    def _start(self) -> ApiObject:
        spec = move_facts.relocation(self.cluster, self.machine, self.cluster.host_named(self.request.target))
        self.is_started = True
        with translating_faults(self.target, f"move it to {self.request.target}"):
            try:
                return self.machine.ref.RelocateVM_Task(spec=spec)
            except vmodl.MethodFault:
                self.is_started = False  # the server refused it
                raise

    def _follow(self, task: ApiObject) -> tuple[Any, bool]:
        """Return the ended task and whether it ended in time; after the time-out, cancel the move."""
        if self._ended(task, self.request.timeout):
            return self._info(task), True
        self.request.report(self.target, f"did not arrive within {self.request.timeout} s; its move is cancelled")
        with translating_faults(self.target, "cancel its move", "see its task in the vSphere Client"):
            task.CancelTask()
        self._ended(task, CANCEL_SECONDS)
        return self._info(task), False

    def _ended(self, task: ApiObject, seconds: float) -> bool:
        shown_at = -math.inf
        # While the guest is stunned the server reports nothing, so progress is shown at intervals.
        for values in properties.watch(
            self.session, [task], ("info.state", "info.progress"), time.monotonic() + seconds, POLL_SECONDS
        ):
            state, percent = (values[task._moId].get(f"info.{key}") for key in ("state", "progress"))
            if percent is not None and time.monotonic() - shown_at >= PROGRESS_SECONDS:
                shown_at = time.monotonic()
                self.request.report(self.target, f"{percent} %")
            if state in ENDED:
                return True
        return False

    def _info(self, task: ApiObject) -> ApiObject:
        return properties.read_many(self.session, [task], ("info",))[task._moId]["info"]

    def _observed(self, before: move_watch.WorkerRuntime, info: ApiObject) -> ObservedMove:
        """Return the hosts and GPUs before and after the move, and its events."""
        after = move_watch.runtime_of(self.session, self.machine.ref)
        every = move_watch.events_since(self.session, self.machine.ref, self.target, info.queueTime)
        own = move_watch.of_chain(every, info.eventChainId)
        kinds = [event["kind"] for event in own]
        return {
            "ok": info.state == "success" and after.host == self.request.target,
            "said": words(info.error) if info.error else "",
            "chain": info.eventChainId,
            "by": getattr(info.reason, "userName", None) or "",
            "task": {"key": info.key, "what": info.descriptionId, "state": info.state},
            "vsphere": {
                "hot_migration": move_events.is_hot(kinds),
                "encrypted": move_events.is_encrypted(kinds),
                "power_cycled": move_watch.power_cycled(before, after, every),
                "host": {"before": before.host, "after": after.host},
                "gpus": {"before": list(before.gpus), "after": list(after.gpus)},
                "encryption": before.encryption,
                "stun_expected_s": self.stun,
            },
            "events": own,
        }

    def _judge(self, info: ApiObject, *, in_time: bool) -> None:
        tried = f"move it to {self.request.target}"
        if not in_time:
            raise TimedOut(self.target, tried, f"it did not arrive within {self.request.timeout} s", GO_ON)
        if info.state == "error":
            raise Failed(
                self.target, tried, words(info.error), "remove the cause and run again; the worker stayed on its host"
            )
