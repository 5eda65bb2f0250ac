"""Subject: one worker VM: hardware, host, cloud-init data and power."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..errors import NotFound, Refused, StillDiffers
from ..plan import POWER_OFF, Plan, State
from ..vsphere import tasks
from ..vsphere.libraries import LibraryItem
from ..vsphere.sdk import ApiObject, vim
from . import (
    candidate_hosts,
    clone,
    customise,
    encryption,
    foreign_disks,
    hardware_limits,
    library_items,
    nics,
    sizing,
    storage,
    unified_memory,
    vm_folder,
    worker_demand,
    worker_gpus,
    worker_mark,
    worker_power,
)
from .capacity import host_capacity
from .context import Assignment, Context
from .machine import VAPP, Machine
from .placement.place import DeviceRequest
from .worker_identity import UUID
from .worker_spec import WorkerSpec
from .worker_state import facts

# vSphere changes these only while the VM is off; cloud-init reads new data only at the next boot.
COLD = (
    "cpus",
    "cores_per_socket",
    "memory_mb",
    "latency_sensitivity",
    "numa",
    *("gpus", "mmio_gb", unified_memory.OPTION),
    nics.RDMA,
    "guest",
)
# A reconfiguration does not change these.
ELSEWHERE = (
    "exists",
    "folder",
    "host",
    "power",
    "mark",
    "address",
    "template",
    storage.OPTION,
    storage.STATE,
    *encryption.KEYS,
)
CHANGED_MEANWHILE = "another client changed the VM meanwhile, or the host lacks the requested resources; run again"
LARGE_BAR_GB = 64


class Worker:
    """One worker of a call."""

    name = "worker VM"

    def __init__(self, context: Context, desired: WorkerSpec, assigned: Assignment) -> None:
        self.context, self.desired, self.assigned = context, desired, assigned
        self.cluster, self.options, self.target = context.cluster, context.options, desired.name

    @property
    def machine(self) -> Machine | None:
        """The virtual machine of the worker; None if it does not exist."""
        return self.cluster.machines.get(self.target)

    @property
    def _building(self) -> bool:
        """Whether the VM is a clone without its hardware, left by a killed run; the server chose its MAC addresses."""
        return self.machine is not None and worker_mark.BUILDING in self.machine.extra

    @property
    def _item(self) -> LibraryItem | None:
        """The item of a content library that is its template."""
        return self.context.items.get(self.desired["template"] or "")

    @property
    def _properties(self) -> Mapping[str, str]:
        """The properties that its options give to an OVF item."""
        return self.desired.library.properties if self.desired.library else {}

    def read(self) -> State:
        """Return the state of the worker, with the same keys if the VM does not exist."""
        self.cluster.identities.refuse_unreadable(self.cluster.name, self.target, "read it")
        if self.machine and self.cluster.mark_of(self.machine):
            self.machine.must_be_known("read it")
        there = {**facts(self.cluster, self.machine), **self.context.policies.state(self.desired, self.machine)}
        if self.machine and self.desired["folder"]:
            there["folder"] = self.context.locations.folder_name(self.machine["parent"])
        return there

    def plan(self, current: State) -> Plan:
        """Return the plan of the changes; a missing object is refused before the first write."""
        if self.assigned.silent:
            raise worker_power.address_timeout(self.target, self.options.address_timeout)
        try:
            return self._planned(current)
        except NotFound as error:
            raise Refused(f"{self.target}: {error.target}", error.tried, error.reason, error.remedy) from error

    def _planned(self, current: State) -> Plan:
        host, owned = self._host(), self._mark(current)
        base = facts(self.cluster, clone.base_of(self.cluster, self.desired))
        if not current["exists"]:
            self.cluster.identities.refuse_doubtful(self.cluster.name, self.target)
            sizing.refuse_firmware(self.desired, base["firmware"])
            template = clone.base_of(self.cluster, self.desired)
            encryption.refuse_unable(self.cluster, self.target, template, host)
            self.context.policies.refuse_misfit(self.desired, self._clone_location().datastore)
        sizing.refuse_firmware(self.desired, current["firmware"])
        encryption.refuse_plain_moves(self.desired, current if current["exists"] else base)
        cards = self._cards(current)
        nics.refuse_removed(self.desired, cards, self.cluster.properties_of(host))
        nics.refuse_other_devices(self.desired, self.cluster.properties_of(host))
        after = {**current, **self._hardware(current, base, host), **nics.in_order_of(current, cards)}
        if any(after[key] != current[key] for key in ("gpus", nics.RDMA)):
            self._refuse_excess(after, host)
        after.update({"exists": True, "host": host, "mark": owned, "confirmed": True, "disks_recorded": True})
        if not current["exists"] and self._item:
            after["template"] = library_items.recorded({library_items.RECORD: library_items.record_of(self._item)})
        after.update(vm_folder.name_and_folder(self.context, self.desired, current))
        after["power"] = self.desired["power"]
        after[storage.OPTION] = self.desired[storage.OPTION] or current[storage.OPTION]
        guest_data = customise.desired_data(self.desired, cards)
        after["guest"] = guest_data or current["guest"]
        return self._plan(current, after)

    def _refuse_excess(self, after: State, host: str) -> None:
        """Refuse more devices than the virtual hardware supports on the host."""
        gpus = worker_gpus.demand_of(self.desired.gpus or (), 0, 0)
        classes = [nic for nic in self.desired[nics.RDMA] or () if nic.get("device_class")]
        devices = hardware_limits.RequestedDevices(nics.protocols(self.desired, after), gpus, len(classes))
        base = clone.base_of(self.cluster, self.desired)
        hardware_limits.refuse_excess(self.target, base.name, devices, self.cluster.limits(base, host))

    def _host(self) -> str:
        """Return the host that the worker is assigned to; refused if no host has room for it."""
        if self.assigned.refusal:
            remedy = "free a slot, add hosts, or request less; nothing was changed"
            raise Refused(self.target, "find a host for it", self.assigned.refusal, remedy)
        return self.assigned.host

    def _clone_location(self) -> clone.CloneLocation:
        """Return the folder, pool and datastore of a new worker; refused if one of them is missing."""
        return self.context.locations.find(self.desired, clone.base_of(self.cluster, self.desired))

    def apply(self, plan: Plan) -> None:
        """Clone, mark, stop, move, reconfigure once and start the VM, as the plan requires."""
        machine = self.machine or self._clone(plan.after["host"])
        owned = {**plan.after["mark"], **_uuid(machine)}
        if self.cluster.mark_of(machine) != owned:
            worker_mark.write(self.cluster.session, machine.ref, self.target, owned)
        if plan.before["exists"] and plan.before["folder"] != plan.after["folder"]:
            vm_folder.put_back(self.context, self.desired, machine)
        stops = POWER_OFF in plan.needs or plan.after["power"] == "off"
        if machine.on and stops:
            self._report("is shut down")
            worker_power.stop(machine, self.options.power_timeout, force=self.options.force_off)
            machine.refresh()
        if self.cluster.host_name(machine.host) != plan.after["host"]:
            self._move(machine, plan.after["host"])
        self._reconfigure(machine, plan.after)
        if plan.before[storage.OPTION] != plan.after[storage.OPTION]:
            self.context.policies.assign(self.cluster.session, self.desired, machine)
        if plan.after["power"] == "on" and not machine.on:
            self._report("is started")
            worker_power.start(machine, self.options.power_timeout)
            self.assigned.started = machine

    def _cards(self, current: State) -> dict[str, Any]:
        """Return the desired network cards in the order of the options."""
        # The guest's cloud-init data names the MAC addresses of cards before the cards exist.
        macs = self.assigned.macs if self.desired["guest"] is not None else {}
        there = current if current["exists"] and not (macs and self._building) else {}
        return nics.desired_cards(self.desired, there, self.context.networks, macs)

    def _hardware(self, current: State, base: Mapping[str, object], host: str) -> dict[str, Any]:
        """Return the desired size and GPUs."""
        mhz = int(self.cluster.properties_of(host)["summary.hardware.cpuMhz"])
        after = sizing.desired_size(self.desired, current if current["exists"] else base, mhz)
        if self.desired.gpus is not None:
            after["gpus"] = worker_gpus.names_after(
                self.desired, worker_gpus.assigned_gpus(self.machine) if self.machine else []
            )
            after["mmio_gb"] = self._window_gb() or None
        after[unified_memory.OPTION] = unified_memory.desired_state(self.desired, current)
        return after

    def _window_gb(self) -> int:
        described = [one for host in self.cluster.hosts.values() for one in host.get(host_capacity.DESCRIBED, ())]
        return worker_gpus.desired_window_gb(self.desired, self._gpu_memory, described)

    def _gpu_memory(self, desired: DeviceRequest) -> int | None:
        """Return the memory of a GPU of this cluster, in gigabytes."""
        return candidate_hosts.gpu_memory_gb(self.cluster.hosts.values(), desired)

    def _mark(self, current: State) -> dict[str, Any]:
        """Return the desired mark of the VM; without one that it confirms, refused unless adopt is set."""
        before = current["mark"] or ({"built": True} if self.assigned.cloned else None)
        if current["exists"] and current["mark"] and not current["confirmed"]:
            if not self.options.adopt:
                remedy = "if it is a worker, set adopt: true once; the collection then never deletes it"
                raise Refused(self.target, "take it as the worker", worker_mark.UNCONFIRMED, remedy)
            before = {**current["mark"], "built": False}
        if current["exists"] and not before and not self.options.adopt:
            raise Refused(
                self.target,
                "make it a worker",
                "a virtual machine of that name exists, and this collection did not build it",
                "choose another name, or set adopt: true to take it over",
            )
        if before and before.get("name", self.target) != self.target:
            reason = f"the virtual machine of that name is the worker {before['name']}, renamed in vCenter"
            raise Refused(self.target, "make it a worker", reason, f"name it {before['name']} again")
        of = {"cluster": self.cluster.name, "role": self.desired["role"], "tenant": self.desired["tenant"]}
        of.update(_uuid(self.machine))
        return worker_mark.desired_mark(self.target, before or {"built": not current["exists"]}, **of)

    def _plan(self, current: State, after: dict[str, object]) -> Plan:
        changed = {change.key for change in Plan(current, after).changes}
        running = bool(current["power"] == "on")
        cold = [key for key in COLD if key in changed] if running else []
        if running and "host" in changed and (why := self.cluster.move_obstacle(self.machine)):
            cold.append(f"host ({why})")
        return Plan(
            before=current,
            after=after,
            needs=frozenset({POWER_OFF}) if cold else frozenset(),
            why=tuple(self._why(current, after, cold)),
            warnings=tuple(self._warnings(current, after, changed)),
            unmet=(*self._awaits(after), *(self._without_consent(after, cold) if running else ())),
        )

    def _without_consent(self, after: State, cold: list[str]) -> Iterator[str]:
        """Yield why a running worker would be shut down; its playbook looks for training jobs only with power_cycle."""
        if self.options.power_cycle:
            return
        if after["power"] == "off":
            yield "it runs, and its power is to be off: set power_cycle: true to shut it down"
        elif cold:
            yield f"it runs, and {', '.join(cold)} can change only while it is off: set power_cycle: true"

    def _awaits(self, after: State) -> Iterator[str]:
        """Yield the port groups and GPUs that must be prepared before the worker can be built."""
        if awaited := worker_demand.missing_preparations(self.context, self.desired, after["host"]):
            yield f"{', '.join(awaited)} must be prepared first"

    def _why(self, current: State, after: State, cold: list[str]) -> Iterator[str]:
        if not current["exists"]:
            yield f"it is cloned from {self.desired['template']} to {after['host']}"
        elif current["host"] != after["host"]:
            room = f", to make room for {', '.join(names)}" if (names := self.assigned.makes_room_for) else ""
            yield f"it is on {current['host'] or 'a host of another cluster'} and belongs on {after['host']}{room}"
        differs = [change.key for change in Plan(current, after).changes if change.key != "host"]
        if current["exists"] and differs:
            yield f"it differs in {', '.join(differs)}"
        if cold:
            yield f"it is shut down for {', '.join(cold)}"

    def _warnings(self, current: State, after: State, changed: set[str]) -> Iterator[str]:
        firmware = after["firmware"] or facts(self.cluster, clone.base_of(self.cluster, self.desired))["firmware"]
        if worker_gpus.has_passthrough(self.desired) and (after["mmio_gb"] or 0) >= LARGE_BAR_GB and firmware == "bios":
            yield "its firmware is BIOS: GPUs with a BAR of more than 256 MB need EFI"
        if current["guest"] and "guest" in changed:
            yield "cloud-init treats it as a new machine at the next boot and creates new SSH host keys"
        if self._properties and after["guest"] and not current["exists"]:
            yield "cloud-init prefers the properties of its template to its guest options: set one of them, not both"
        yield from vm_folder.warnings(self.context, self.desired, after)
        if misfit := storage.warning(current):
            yield misfit
        if self.machine and (drift := library_items.drift(self.target, self.machine.extra, self._item)):
            yield drift
        if after[unified_memory.OPTION]:
            yield unified_memory.CONSEQUENCE
        silent = current["power"] == "on" and not current["address"]
        if silent and self.options.wait_for_address:
            yield "it is on, but its guest reports no address"

    def _clone(self, host: str) -> Machine:
        template, location = clone.base_of(self.cluster, self.desired), self._clone_location()
        location = replace(location, profile=self.context.policies.ids.get(self.desired[storage.OPTION] or "", ""))
        self._report(f"is cloned from {template.name} to {host}")
        shown = tasks.by_quarters(lambda percent: self._report(f"is cloned to {percent} %"))
        started = clone.begin(self.cluster, self.desired, template, location, host, self._item)
        made = tasks.created_object(self.cluster.session, started, self.options.clone_timeout, shown)
        machine = Machine(self.cluster.session, made, worker=self.target)
        machine.refresh()
        self.cluster.machines[self.target] = machine
        self.assigned.cloned = True
        return machine

    def _move(self, machine: Machine, host: str) -> None:
        self._report(f"moves to {host}")
        cluster = self.cluster
        target = cluster.host_named(host)
        spec = vim.vm.RelocateSpec(host=target, pool=cluster.pool_for(machine, target))
        worker_power.move(machine, spec, host, self.options.clone_timeout)
        machine.refresh()

    def _reconfigure(self, machine: Machine, after: State) -> None:
        """Change all hardware in one call; the server refuses it if the VM was changed since the latest read."""
        spec = self._spec(machine, after)
        if spec is None:
            return
        self._report("gets its hardware")
        before = spec.changeVersion = machine["config.changeVersion"]
        machine.reconfigure(spec, "reconfigure it", CHANGED_MEANWHILE)
        machine.refresh()
        if before and machine["config.changeVersion"] == before:
            # If it started now, it would have to be shut down again for the missing changes.
            left = ", ".join(_managed(after, facts(self.cluster, machine)))
            reason = f"the server accepted the change, yet did not apply it: {left or 'its configuration'}"
            raise StillDiffers(self.target, "reconfigure it", reason, "see vCenter's log (vpxd.log) and run again")
        foreign_disks.settle(machine)

    def _report(self, what: str) -> None:
        self.context.report(self.target, what)

    def _spec(self, machine: Machine, after: State) -> ApiObject:
        """Return the ConfigSpec of all changes; None without a change."""
        now = facts(self.cluster, machine)
        building = worker_mark.BUILDING in machine.extra
        if not building and all(now[key] == after[key] for key in after if key not in ELSEWHERE):
            return None
        spec, new_key = vim.vm.ConfigSpec(deviceChange=[], extraConfig=[]), itertools.count(-101, -1)
        if now["name"] != after["name"]:
            spec.name = after["name"]
        sizing.change(spec, _managed(after, now), machine, new_key)
        nics.change(spec, _managed(after, now), machine, self.cluster.networks, new_key)
        options = {foreign_disks.RECORD: foreign_disks.record(machine, spec.deviceChange)}
        options.update({worker_mark.BUILDING: ""} if building else {})
        if building or not now["confirmed"]:
            options[worker_mark.CONFIRMATION] = worker_mark.confirmation(after["mark"], machine)
        if self.desired.gpus is not None and now["gpus"] != after["gpus"]:
            worker_gpus.change(
                spec, self.desired, machine, worker_gpus.device_backings_of(self.cluster, after["host"]), new_key
            )
        if now["mmio_gb"] != after["mmio_gb"]:
            options.update(worker_gpus.window_options(after["mmio_gb"] or 0))
        if after[unified_memory.OPTION] != now[unified_memory.OPTION] or now["gpus"] != after["gpus"]:
            options.update(unified_memory.options(self.desired, machine))
        if after["guest"] and now["guest"] != after["guest"]:
            options.update(customise.guestinfo_options(after["guest"]))
            # With this configuration, cloud-init takes its data from the OVF environment, and not from guestinfo.
            spec.vAppConfigRemoved = True if machine[VAPP] and not self._properties else None
        spec.extraConfig += [vim.option.OptionValue(key=key, value=value) for key, value in options.items()]
        return spec


def _uuid(machine: Machine | None) -> dict[str, str]:
    """Return the instance UUID for the mark; empty if the VM does not exist or does not report it."""
    return {"uuid": str(machine[UUID])} if machine and machine[UUID] else {}


def _managed(after: State, now: Mapping[str, object]) -> dict[str, Any]:
    """Return the values to change; an option that is None is not managed."""
    mine = {key: value for key, value in after.items() if key not in ELSEWHERE}
    return {key: value for key, value in mine.items() if value is not None and now[key] != value}
