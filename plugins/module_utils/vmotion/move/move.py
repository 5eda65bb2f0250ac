# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Subject: the host of one running worker. The move is followed to its end, and its events are recorded."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core import findings
from ...core.findings import Finding
from ...errors import Failed, Refused, TimedOut
from ...maintenance.recent_tasks import RecentTask
from ...plan import Plan
from ...vsphere import properties
from ...vsphere.faults import translating_faults, words
from ...vsphere.sdk import vim, vmodl
from ...workers.machine import Machine
from ...workers.worker_cluster import WorkerCluster
from ..checks import move_checks, move_events
from . import clock_offset, move_facts, move_watch

ENDED = ("success", "error")
CANCEL_SECONDS = 120
# A line for each percent would bury the others.
TELL_SECONDS, WORD_SECONDS = 1.0, 2.0
GO_ON = "see on which host it is, and run again"


@dataclass(frozen=True)
class Desired:
    """The worker, its target host, the time-out, and the rules whose findings are accepted."""

    worker: str
    target: str
    timeout: int = 1800
    accept: tuple[str, ...] = ()
    budget: move_facts.Budget = field(default_factory=move_facts.Budget)
    tell: Callable[[str, str], None] = lambda _about, _what: None


class Move:
    """One worker and its host."""

    name = "host"

    def __init__(self, site: WorkerCluster, desired: Desired) -> None:
        self.site, self.session, self.desired, self.target = site, site.session, desired, desired.worker
        self.found: list[Finding] = []
        self.record: dict[str, Any] | None = None
        self.stun: float | None = None
        self.tasks: list[RecentTask] = []
        self.running: Any = None
        # Whether the server may have been told to begin: what then goes wrong leaves the outcome open.
        self.begun = False

    def read(self) -> dict[str, Any]:
        """The host of the worker."""
        self.site.refresh([self.desired.worker])
        self.tasks = move_facts.tasks_on(self.site, self.machine)
        self.running = move_facts.running_move(self.site, self.machine, self.tasks, self.desired.target)
        return {"host": self.site.host_name(self.machine.host)}

    def plan(self, current: Mapping[str, Any]) -> Plan:
        """The move to the target host; findings of the rules that stop it are unmet."""
        self._check()
        plan = Plan(before=current, after={"host": self.desired.target})
        if not plan.changes or self.running:
            return plan
        facts = move_facts.facts(self.site, self.machine, self.desired.target, self.tasks, self.desired.budget)
        self.stun = facts["stun"].seconds
        self.found = move_checks.findings(facts)
        told = findings.as_dicts(self.found)
        against = findings.stops(told, self.desired.accept)
        return Plan(
            before=plan.before,
            after=plan.after,
            unmet=tuple(f"{findings.said_of(one['object'], one['text'])} ({one['rule']})" for one in against),
            warnings=tuple(one.text for one in self.found if one.severity == findings.WARN) + self._accepted(told),
        )

    def _accepted(self, told: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Findings that would stop the move and were accepted."""
        against = [one["text"] for one in findings.stops(told, self.desired.accept)]
        every = [one["text"] for one in findings.stops(told)]
        return tuple(f"accepted: {findings.said_of(self.target, text)}" for text in every if text not in against)

    def apply(self, plan: Plan) -> None:
        """Start the move, or follow one that runs already; the record is written whether or not the move succeeds."""
        before = move_watch.place(self.session, self.machine.ref)
        theirs = clock_offset.offset(self.session)
        attached = self.begun = self.running is not None
        self.desired.tell(self.target, f"{'follows its move' if attached else 'moves'} from {before.host}")
        task = self.running or self._start()
        info, in_time = self._follow(task)
        self.record = {
            "worker": self.target,
            "source": before.host,
            "target": plan.after["host"],
            "attached": attached,
            **self._times(info, theirs),
            **self._observed(before, info),
        }
        self._judge(info, in_time=in_time)

    @property
    def machine(self) -> Machine:
        """The virtual machine of the worker as last read."""
        return self.site.find(self.desired.worker, "worker")

    def _check(self) -> None:
        """Refuse a VM without the mark, a VM that is off, and a host of another cluster."""
        tried = f"move it to {self.desired.target}"
        if self.site.mark_of(self.machine) is None:
            raise Refused(self.target, tried, "it carries no mark of this collection", "name a worker that does")
        if self.desired.target not in self.site.host_names:
            known = ", ".join(sorted(self.site.host_names))
            raise Refused(self.target, tried, f"cluster {self.site.name} has {known}", "correct the name of the host")
        if not self.machine.on:
            raise Refused(self.target, tried, "it is powered off", "power it on: only a running worker can be tested")

    def _start(self) -> Any:
        spec = vim.vm.RelocateSpec(host=self.site.host_named(self.desired.target))
        self.begun = True
        with translating_faults(self.target, f"move it to {self.desired.target}"):
            try:
                return self.machine.ref.RelocateVM_Task(spec=spec)
            except vmodl.MethodFault:
                self.begun = False  # the server refused it
                raise

    def _follow(self, task: Any) -> tuple[Any, bool]:
        """The end of the task, and whether it came in time; after the time-out the move is cancelled."""
        if self._ended(task, self.desired.timeout):
            return self._info(task), True
        self.desired.tell(self.target, f"did not arrive within {self.desired.timeout} s; its move is cancelled")
        with translating_faults(self.target, "cancel its move", "see its task in the vSphere Client"):
            task.CancelTask()
        self._ended(task, CANCEL_SECONDS)
        return self._info(task), False

    def _ended(self, task: Any, seconds: float) -> bool:
        told = -math.inf
        # While the guest is stunned the server reports nothing, so progress is shown at intervals.
        for values in properties.watch(
            self.session, [task], ("info.state", "info.progress"), time.monotonic() + seconds, WORD_SECONDS
        ):
            state, percent = (values[task._moId].get(f"info.{key}") for key in ("state", "progress"))
            if percent is not None and time.monotonic() - told >= TELL_SECONDS:
                told = time.monotonic()
                self.desired.tell(self.target, f"{percent} %")
            if state in ENDED:
                return True
        return False

    def _info(self, task: Any) -> Any:
        return properties.read_many(self.session, [task], ("info",))[task._moId]["info"]

    def _times(self, info: Any, theirs: clock_offset.Offset) -> dict[str, Any]:
        """Start and end of the task on the controller's clock; the duration by the server's clock alone."""
        began, ended = info.startTime or info.queueTime, info.completeTime
        return {
            "started": theirs.ours(began),
            "completed": theirs.ours(ended) if ended else None,
            "seconds": (ended - began).total_seconds() if ended else None,
            "clock_offset_s": theirs.seconds,
            "clock_error_s": theirs.error,
        }

    def _observed(self, before: move_watch.Place, info: Any) -> dict[str, Any]:
        """The hosts and GPUs before and after the move, and its events."""
        after = move_watch.place(self.session, self.machine.ref)
        every = move_watch.events(self.session, self.machine.ref, self.target, info.queueTime)
        ours = move_watch.of_chain(every, info.eventChainId)
        kinds = [one["kind"] for one in ours]
        return {
            "ok": info.state == "success" and after.host == self.desired.target,
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
            "events": ours,
        }

    def _judge(self, info: Any, *, in_time: bool) -> None:
        tried = f"move it to {self.desired.target}"
        if not in_time:
            raise TimedOut(self.target, tried, f"it did not arrive within {self.desired.timeout} s", GO_ON)
        if info.state == "error":
            raise Failed(
                self.target, tried, words(info.error), "remove the cause and run again; the worker stayed on its host"
            )
