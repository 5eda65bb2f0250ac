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
from ..vsphere.faults import speaking
from ..vsphere.sdk import vim
from . import clone, customise, gpu, mark, nics, power, sizing
from .crew import Crew
from .machine import Machine
from .wish import Wish

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

    def __init__(self, crew: Crew, wish: Wish) -> None:
        self.crew, self.wish, self.target = crew, wish, wish.name

    @property
    def machine(self) -> Machine | None:
        return self.crew.site.machines.get(self.target)

    def read(self) -> dict[str, Any]:
        """The worker in our words; every key is there for one that does not exist, too."""
        return self.crew.facts(self.machine)

    def plan(self, current: Mapping[str, Any]) -> Plan:
        """What differs, and what must happen for it; what cannot be found is refused before anything is written."""
        if self.target in self.crew.silent:
            raise power.no_address(self.target, self.crew.call.address_timeout)
        try:
            return self._planned(current)
        except NotFound as error:
            raise Refused(f"{self.target}: {error.target}", error.tried, error.said, error.remedy) from error

    def _planned(self, current: Mapping[str, Any]) -> Plan:
        place, owned = self.crew.place_of(self.wish), self._mark(current)
        base = self.crew.facts(self.crew.base_of(self.wish))
        if not current["exists"]:
            sizing.refuse_firmware(self.wish, base["firmware"])
            self.crew.clone_place(self.wish)
        sizing.refuse_firmware(self.wish, current["firmware"])
        after = {**current, **self._hardware(current, base, place), "exists": True, "host": place, "mark": owned}
        after["power"] = self.wish["power"]
        told = customise.wanted(self.wish, after)
        after["guest"] = told or current["guest"]
        return self._plan(current, after)

    def apply(self, plan: Plan) -> None:
        """Clone, mark, stop, move, reconfigure once, start: what of it is needed."""
        machine = self.machine or self._clone(plan.after["host"])
        if self.crew.site.mark_of(machine) != plan.after["mark"]:
            mark.write(self.crew.site.session, machine.ref, self.target, plan.after["mark"])
        stops = POWER_OFF in plan.needs or plan.after["power"] == "off"
        if machine.on and stops:
            self._tell("is shut down")
            power.stop(machine, self.crew.call.power_timeout)
            machine.refresh()
        if self.crew.site.host_name(machine.host) != plan.after["host"]:
            self._move(machine, plan.after["host"])
        self._reconfigure(machine, plan.after)
        if plan.after["power"] == "on" and not machine.on:
            self._tell("is started")
            power.start(machine, self.crew.call.power_timeout)
            self.crew.started[self.target] = machine

    def _hardware(self, current: Mapping[str, Any], base: Mapping[str, Any], place: str) -> dict[str, Any]:
        crew = self.crew
        after = sizing.wanted(self.wish, current if current["exists"] else base, crew.host_mhz(place))
        macs = crew.macs_for(self.wish)
        after.update(nics.wanted(self.wish, current if current["exists"] else {}, crew.networks, macs))
        if self.wish.gpus is not None:
            there = crew.site.machines.get(self.target)
            after["gpus"] = gpu.after(self.wish, gpu.held(there) if there else [])
            after["mmio_gb"] = gpu.window_of(self.wish, crew.memory_of) or None
        return after

    def _mark(self, current: Mapping[str, Any]) -> dict[str, Any]:
        """The mark that it is to carry; somebody else's machine is not taken unless that was asked for."""
        before = current["mark"] or ({"built": True} if self.target in self.crew.cloned else None)
        if current["exists"] and not before and not self.crew.call.adopt:
            raise Refused(
                self.target,
                "make it a worker",
                "a virtual machine of that name exists, and this collection did not build it",
                "choose another name, or set adopt: true to take it over",
            )
        of = {"cluster": self.crew.site.name, "role": self.wish["role"], "tenant": self.wish["tenant"]}
        return mark.wanted(self.target, before or {"built": not current["exists"]}, **of)

    def _plan(self, current: Mapping[str, Any], after: dict[str, Any]) -> Plan:
        changed = {change.key for change in Plan(current, after).changes}
        running = bool(current["power"] == "on")
        cold = [key for key in COLD if key in changed] if running else []
        if running and "host" in changed and (why := self.crew.ties(self.machine)):
            cold.append(f"host ({why})")
        cycle = bool(cold) and after["power"] == "on"
        refused = f"it runs, and {', '.join(cold)} can change only while it is off: set power_cycle: true"
        return Plan(
            before=current,
            after=after,
            needs=frozenset({POWER_OFF}) if cold else frozenset(),
            why=tuple(self._why(current, after, cold)),
            warnings=tuple(self._warnings(current, after, changed)),
            unmet=(*self._awaits(after), *((refused,) if cycle and not self.crew.call.power_cycle else ())),
        )

    def _awaits(self, after: Mapping[str, Any]) -> Iterator[str]:
        """What must be there before it is built and is not."""
        if awaited := self.crew.awaited(self.wish, after["host"]):
            yield f"{', '.join(awaited)} must be prepared first"

    def _why(self, current: Mapping[str, Any], after: Mapping[str, Any], cold: list[str]) -> Iterator[str]:
        if not current["exists"]:
            yield f"it is cloned from {self.wish['template']} to {after['host']}"
        elif current["host"] != after["host"]:
            yield f"it is on {current['host'] or 'a host of another cluster'} and belongs on {after['host']}"
        differs = [change.key for change in Plan(current, after).changes if change.key != "host"]
        if current["exists"] and differs:
            yield f"it differs in {', '.join(differs)}"
        if cold:
            yield f"it is shut down for {', '.join(cold)}"

    def _warnings(self, current: Mapping[str, Any], after: Mapping[str, Any], changed: set[str]) -> Iterator[str]:
        firmware = after["firmware"] or self.crew.facts(self.crew.base_of(self.wish))["firmware"]
        if gpu.passthrough(self.wish) and (after["mmio_gb"] or 0) >= LARGE_BAR_GB and firmware == "bios":
            yield "its firmware is BIOS: GPUs with a BAR of more than 256 MB need EFI"
        if current["guest"] and "guest" in changed:
            yield "cloud-init takes it for a new machine at the next boot, and makes new SSH host keys"
        silent = current["power"] == "on" and not current["address"]
        if silent and self.crew.call.wait_for_address:
            yield "it is on, but its guest tells no address"

    def _clone(self, host: str) -> Machine:
        crew = self.crew
        template, place = crew.base_of(self.wish), crew.clone_place(self.wish)
        self._tell(f"is cloned from {template.name} to {host}")
        shown = tasks.by_quarters(lambda percent: self._tell(f"is cloned to {percent} %"))
        started = clone.begin(crew.site, self.wish, template, place, host)
        made = tasks.wait(crew.site.session, started, crew.call.clone_timeout, shown)
        machine = Machine(crew.site.session, made.result)
        machine.refresh()
        crew.site.machines[self.target] = machine
        crew.cloned.add(self.target)
        return machine

    def _move(self, machine: Machine, host: str) -> None:
        self._tell(f"moves to {host}")
        site = self.crew.site
        pool = None if site.host_name(machine.host) else site.values["resourcePool"]
        spec = vim.vm.RelocateSpec(host=site.host_named(host), pool=pool)
        power.move(machine, spec, host, self.crew.call.clone_timeout)
        machine.refresh()

    def _reconfigure(self, machine: Machine, after: Mapping[str, Any]) -> None:
        """One change for all of its hardware, on the condition that nobody else changed it since it was read."""
        spec = self._spec(machine, after)
        if spec is None:
            return
        self._tell("gets its hardware")
        spec.changeVersion = machine["config.changeVersion"]
        with speaking(self.target, "reconfigure it", CHANGED_MEANWHILE):
            task = machine.ref.ReconfigVM_Task(spec)
        started = tasks.Started(task, self.target, "reconfigure it", CHANGED_MEANWHILE)
        tasks.wait(self.crew.site.session, started, RECONFIGURE_SECONDS)

    def _tell(self, what: str) -> None:
        self.crew.tell(self.target, what)

    def _spec(self, machine: Machine, after: Mapping[str, Any]) -> Any:
        """What differs, as a ConfigSpec; None for nothing."""
        now = self.crew.facts(machine)
        building = mark.BUILDING in machine.extra
        if not building and all(now[key] == after[key] for key in after if key not in ELSEWHERE):
            return None
        spec, new_key = vim.vm.ConfigSpec(deviceChange=[], extraConfig=[]), itertools.count(-101, -1)
        sizing.change(spec, _managed(after, now), machine, new_key)
        nics.change(spec, _managed(after, now), machine, self.crew.site.networks, new_key)
        options = {mark.BUILDING: ""} if building else {}
        if self.wish.gpus is not None and now["gpus"] != after["gpus"]:
            gpu.change(spec, self.wish, machine, self.crew.sources_on(after["host"]), new_key)
        if now["mmio_gb"] != after["mmio_gb"]:
            options.update(gpu.window_options(after["mmio_gb"] or 0))
        if after["guest"] and now["guest"] != after["guest"]:
            options.update(customise.options(after["guest"]))
        spec.extraConfig += [vim.option.OptionValue(key=key, value=value) for key, value in options.items()]
        return spec


def _managed(after: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """What is to differ from now; an unset value means that nobody asked for one."""
    return {key: value for key, value in after.items() if value is not None and now[key] != value}
