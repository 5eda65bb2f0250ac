# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Subject: one worker VM: its hardware, its place, its guest's data, its power."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import NotFound, Refused
from ..plan import POWER_OFF, Plan
from ..vsphere import tasks
from ..vsphere.faults import translating_faults
from ..vsphere.sdk import vim
from . import clone, customise, gpu, mark, nics, power, sizing
from .desired import Desired
from .machine import Machine
from .worker_set import WorkerSet

# What vSphere changes only while the machine is off; what cloud-init is told it reads at the next boot.
COLD = (
    "cpus",
    "cores_per_socket",
    "memory_mb",
    "latency_sensitivity",
    "numa",
    "gpus",
    "mmio_gb",
    "rdma_nic",
    "rdma_nics",
    "guest",
)
# What is not changed by a reconfiguration.
ELSEWHERE = ("exists", "host", "power", "mark", "address")
CHANGED_MEANWHILE = "somebody else changed it meanwhile, or see what it asks for; run again"
RECONFIGURE_SECONDS = 600
LARGE_BAR_GB = 64


class Worker:
    """One worker of a call."""

    name = "worker VM"

    def __init__(self, worker_set: WorkerSet, desired: Desired) -> None:
        self.worker_set, self.desired, self.target = worker_set, desired, desired.name

    @property
    def machine(self) -> Machine | None:
        return self.worker_set.site.machines.get(self.target)

    def read(self) -> dict[str, Any]:
        """The worker in our words; every key is there for one that does not exist, too."""
        return self.worker_set.facts(self.machine)

    def plan(self, current: Mapping[str, Any]) -> Plan:
        """What differs, and what must happen for it; what cannot be found is refused before anything is written."""
        if self.target in self.worker_set.silent:
            raise power.no_address(self.target, self.worker_set.call.address_timeout)
        try:
            return self._planned(current)
        except NotFound as error:
            raise Refused(f"{self.target}: {error.target}", error.tried, error.said, error.remedy) from error

    def _planned(self, current: Mapping[str, Any]) -> Plan:
        place, owned = self.worker_set.place_of(self.desired), self._mark(current)
        base = self.worker_set.facts(self.worker_set.base_of(self.desired))
        if not current["exists"]:
            sizing.refuse_firmware(self.desired, base["firmware"])
            self.worker_set.clone_place(self.desired)
        sizing.refuse_firmware(self.desired, current["firmware"])
        after = {**current, **self._hardware(current, base, place), "exists": True, "host": place, "mark": owned}
        after["power"] = self.desired["power"]
        told = customise.wanted(self.desired, after)
        after["guest"] = told or current["guest"]
        return self._plan(current, after)

    def apply(self, plan: Plan) -> None:
        """Clone, mark, stop, move, reconfigure once, start: what of it is needed."""
        machine = self.machine or self._clone(plan.after["host"])
        if self.worker_set.site.mark_of(machine) != plan.after["mark"]:
            mark.write(self.worker_set.site.session, machine.ref, self.target, plan.after["mark"])
        stops = POWER_OFF in plan.needs or plan.after["power"] == "off"
        if machine.on and stops:
            self._tell("is shut down")
            power.stop(machine, self.worker_set.call.power_timeout)
            machine.refresh()
        if self.worker_set.site.host_name(machine.host) != plan.after["host"]:
            self._move(machine, plan.after["host"])
        self._reconfigure(machine, plan.after)
        if plan.after["power"] == "on" and not machine.on:
            self._tell("is started")
            power.start(machine, self.worker_set.call.power_timeout)
            self.worker_set.started[self.target] = machine

    def _hardware(self, current: Mapping[str, Any], base: Mapping[str, Any], place: str) -> dict[str, Any]:
        worker_set = self.worker_set
        after = sizing.wanted(self.desired, current if current["exists"] else base, worker_set.host_mhz(place))
        macs = worker_set.macs_for(self.desired)
        after.update(nics.wanted(self.desired, current if current["exists"] else {}, worker_set.networks, macs))
        if self.desired.gpus is not None:
            there = worker_set.site.machines.get(self.target)
            after["gpus"] = gpu.after(self.desired, gpu.held(there) if there else [])
            after["mmio_gb"] = gpu.window_of(self.desired, worker_set.memory_of) or None
        return after

    def _mark(self, current: Mapping[str, Any]) -> dict[str, Any]:
        """The mark that it is to carry; somebody else's machine is not taken unless that was asked for."""
        before = current["mark"] or ({"built": True} if self.target in self.worker_set.cloned else None)
        if current["exists"] and not before and not self.worker_set.call.adopt:
            raise Refused(
                self.target,
                "make it a worker",
                "a virtual machine of that name exists, and this collection did not build it",
                "choose another name, or set adopt: true to take it over",
            )
        of = {"cluster": self.worker_set.site.name, "role": self.desired["role"], "tenant": self.desired["tenant"]}
        return mark.wanted(self.target, before or {"built": not current["exists"]}, **of)

    def _plan(self, current: Mapping[str, Any], after: dict[str, Any]) -> Plan:
        changed = {change.key for change in Plan(current, after).changes}
        running = bool(current["power"] == "on")
        cold = [key for key in COLD if key in changed] if running else []
        if running and "host" in changed and (why := self.worker_set.ties(self.machine)):
            cold.append(f"host ({why})")
        cycle = bool(cold) and after["power"] == "on"
        refused = f"it runs, and {', '.join(cold)} can change only while it is off: set power_cycle: true"
        return Plan(
            before=current,
            after=after,
            needs=frozenset({POWER_OFF}) if cold else frozenset(),
            why=tuple(self._why(current, after, cold)),
            warnings=tuple(self._warnings(current, after, changed)),
            unmet=(*self._awaits(after), *((refused,) if cycle and not self.worker_set.call.power_cycle else ())),
        )

    def _awaits(self, after: Mapping[str, Any]) -> Iterator[str]:
        """What must be there before it is built and is not."""
        if awaited := self.worker_set.awaited(self.desired, after["host"]):
            yield f"{', '.join(awaited)} must be prepared first"

    def _why(self, current: Mapping[str, Any], after: Mapping[str, Any], cold: list[str]) -> Iterator[str]:
        if not current["exists"]:
            yield f"it is cloned from {self.desired['template']} to {after['host']}"
        elif current["host"] != after["host"]:
            yield f"it is on {current['host'] or 'a host of another cluster'} and belongs on {after['host']}"
        differs = [change.key for change in Plan(current, after).changes if change.key != "host"]
        if current["exists"] and differs:
            yield f"it differs in {', '.join(differs)}"
        if cold:
            yield f"it is shut down for {', '.join(cold)}"

    def _warnings(self, current: Mapping[str, Any], after: Mapping[str, Any], changed: set[str]) -> Iterator[str]:
        firmware = after["firmware"] or self.worker_set.facts(self.worker_set.base_of(self.desired))["firmware"]
        if gpu.passthrough(self.desired) and (after["mmio_gb"] or 0) >= LARGE_BAR_GB and firmware == "bios":
            yield "its firmware is BIOS: GPUs with a BAR of more than 256 MB need EFI"
        if current["guest"] and "guest" in changed:
            yield "cloud-init takes it for a new machine at the next boot, and makes new SSH host keys"
        silent = current["power"] == "on" and not current["address"]
        if silent and self.worker_set.call.wait_for_address:
            yield "it is on, but its guest tells no address"

    def _clone(self, host: str) -> Machine:
        worker_set = self.worker_set
        template, place = worker_set.base_of(self.desired), worker_set.clone_place(self.desired)
        self._tell(f"is cloned from {template.name} to {host}")
        shown = tasks.by_quarters(lambda percent: self._tell(f"is cloned to {percent} %"))
        started = clone.begin(worker_set.site, self.desired, template, place, host)
        made = tasks.wait(worker_set.site.session, started, worker_set.call.clone_timeout, shown)
        machine = Machine(worker_set.site.session, made.result)
        machine.refresh()
        worker_set.site.machines[self.target] = machine
        worker_set.cloned.add(self.target)
        return machine

    def _move(self, machine: Machine, host: str) -> None:
        self._tell(f"moves to {host}")
        site = self.worker_set.site
        pool = None if site.host_name(machine.host) else site.values["resourcePool"]
        spec = vim.vm.RelocateSpec(host=site.host_named(host), pool=pool)
        power.move(machine, spec, host, self.worker_set.call.clone_timeout)
        machine.refresh()

    def _reconfigure(self, machine: Machine, after: Mapping[str, Any]) -> None:
        """One change for all of its hardware, on the condition that nobody else changed it since it was read."""
        spec = self._spec(machine, after)
        if spec is None:
            return
        self._tell("gets its hardware")
        spec.changeVersion = machine["config.changeVersion"]
        with translating_faults(self.target, "reconfigure it", CHANGED_MEANWHILE):
            task = machine.ref.ReconfigVM_Task(spec)
        started = tasks.Started(task, self.target, "reconfigure it", CHANGED_MEANWHILE)
        tasks.wait(self.worker_set.site.session, started, RECONFIGURE_SECONDS)

    def _tell(self, what: str) -> None:
        self.worker_set.tell(self.target, what)

    def _spec(self, machine: Machine, after: Mapping[str, Any]) -> Any:
        """What differs, as a ConfigSpec; None for nothing."""
        now = self.worker_set.facts(machine)
        building = mark.BUILDING in machine.extra
        if not building and all(now[key] == after[key] for key in after if key not in ELSEWHERE):
            return None
        spec, new_key = vim.vm.ConfigSpec(deviceChange=[], extraConfig=[]), itertools.count(-101, -1)
        sizing.change(spec, _managed(after, now), machine, new_key)
        nics.change(spec, _managed(after, now), machine, self.worker_set.site.networks, new_key)
        options = {mark.BUILDING: ""} if building else {}
        if self.desired.gpus is not None and now["gpus"] != after["gpus"]:
            gpu.change(spec, self.desired, machine, self.worker_set.sources_on(after["host"]), new_key)
        if now["mmio_gb"] != after["mmio_gb"]:
            options.update(gpu.window_options(after["mmio_gb"] or 0))
        if after["guest"] and now["guest"] != after["guest"]:
            options.update(customise.options(after["guest"]))
        spec.extraConfig += [vim.option.OptionValue(key=key, value=value) for key, value in options.items()]
        return spec


def _managed(after: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """What is to differ from now; an unset value means that nobody asked for one."""
    return {key: value for key, value in after.items() if value is not None and now[key] != value}
