"""Subject: a worker VM to be deleted; for a VM that this collection did not build, only the mark is removed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..plan import POWER_OFF, Plan, State
from . import foreign_disks, worker_mark, worker_power
from .context import Context
from .worker_spec import WorkerSpec
from .worker_state import facts

KEYS = ("exists", "name", "host", "power", "mark", "confirmed")


class AbsentWorker:
    """One worker to be deleted."""

    name = "worker VM"

    def __init__(self, context: Context, desired: WorkerSpec) -> None:
        self.context, self.cluster, self.options, self.target = context, context.cluster, context.options, desired.name
        self._disks: list[Any] = []
        self._held: list[Any] = []
        self._suspended = False

    def read(self) -> State:
        """Return whether the VM exists and runs, and its mark."""
        machine = self.cluster.machines.get(self.target)
        self.cluster.identities.refuse_unreadable(self.cluster.name, self.target, "delete it")
        if machine and self.cluster.mark_of(machine):
            machine.must_be_known("delete it")
        there = facts(self.cluster, machine)
        self._disks = foreign_disks.attached(machine) if machine else []
        self._held = foreign_disks.in_snapshots(machine) if machine else []
        self._suspended = machine is not None and machine.suspended
        return {key: there[key] for key in KEYS}

    def plan(self, current: State) -> Plan:
        """Plan to delete a VM that this collection built, or to remove the mark of an adopted VM."""
        before = current["mark"] or {}
        if not current["exists"]:
            return Plan(current, current)
        if not before or before.get("cluster", self.cluster.name) != self.cluster.name:
            whose = f"its mark names cluster {before['cluster']}" if before else "it carries no mark of this collection"
            return Plan(current, current, warnings=(f"it was left alone: {whose}",))
        if before.get("name", self.target) != self.target:
            reason = f"it was left alone: it is the worker {before['name']}, renamed in vCenter"
            return Plan(current, current, warnings=(reason,))
        if not before.get("built") or not current["confirmed"]:
            return self._unmarked(current)
        running = current["power"] == "on"
        return Plan(
            before=current,
            after={**dict.fromkeys(KEYS), "exists": False},
            needs=frozenset({POWER_OFF}) if running else frozenset(),
            why=(f"vCenter shows it as {current['name']}",) if current["name"] != self.target else (),
            warnings=(f"foreign, detached and kept: {foreign_disks.files(self._disks)}",) if self._disks else (),
            unmet=tuple(self._unmet(running)),
        )

    def _unmarked(self, current: State) -> Plan:
        """Plan to remove only the mark of a VM that this collection adopted, or that does not confirm its mark."""
        after = {**current, "mark": None, "confirmed": False}
        if current["confirmed"]:
            return Plan(current, after, why=("this collection adopted it and did not build it: it stays",))
        stays = f"it stays, and only its mark is removed: {worker_mark.UNCONFIRMED}"
        return Plan(current, after, warnings=(stays,))

    def _unmet(self, is_running: bool) -> Iterator[str]:
        if is_running and not self.options.power_cycle:
            yield "it runs: set power_cycle: true to shut it down first"
        if self._suspended and not self.options.power_cycle:
            yield "it is suspended, with its processes in memory: resume it, or set power_cycle: true to lose them"
        if self._held:
            files = foreign_disks.files(self._held)
            yield f"its snapshots contain {files}, which vSphere would delete with it: delete the snapshots first"

    def apply(self, plan: Plan) -> None:
        """Remove the mark, or stop the VM and delete it."""
        machine = self.cluster.machines[self.target]
        if plan.after["exists"]:
            worker_mark.withdraw(machine)
            worker_mark.write(self.cluster.session, machine.ref, self.target, None)
            return
        if machine.on:
            self.context.report(self.target, "is shut down")
            worker_power.stop(machine, self.options.power_timeout, force=self.options.force_off)
        foreign_disks.detach(machine)
        self.context.report(self.target, "is deleted")
        worker_power.destroy(machine, self.options.clone_timeout)
