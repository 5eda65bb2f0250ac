"""Subject: the RDMA fabric of a cluster, read in few calls and built or removed with one plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..errors import CollectionError, SeveralErrors, StillDiffers, Unreachable
from ..plan import Plan, State
from ..vsphere import inventory, properties
from ..vsphere.faults import is_caused_by
from ..vsphere.inventory import Host
from ..vsphere.properties import Properties
from ..vsphere.sdk import vim
from ..vsphere.session import Session
from ..workers.capacity.machines import DEVICES, class_cards, devices
from . import fabric_marks, planner, port_groups, switch, vmkernel
from .fabric_spec import FabricSpec, PortGroupSpec
from .planner import GROUP, HOST, SWITCH

PARALLEL = 16
SETTLE_SECONDS = 15
ATTEMPTS = 5
MACHINES = ("name", "network", "runtime.powerState", "runtime.host", DEVICES)


class Fabric:
    """The RDMA fabric of one cluster."""

    name = "RDMA fabric"

    def __init__(self, session: Session, spec: FabricSpec, *, present: bool = True) -> None:
        self.session, self.spec, self.present, self.target = session, spec, present, spec.cluster
        self.hosts: dict[str, Host] = {}
        self.groups: dict[str, port_groups.PortGroup] = {}
        self.switch: Any = None
        self.location: Any = None

    def read(self) -> State:
        """Return the switch, its port groups, the network of every host, and the machines on it."""
        cluster, _values = inventory.find_cluster(self.session, self.target)
        self.location = switch.location_of(self.session, cluster)
        host_set = inventory.find_hosts(self.session, {"cluster": self.target}, vmkernel.PATHS)
        host_set.refresh()
        self.hosts = {host.name: host for host in host_set.hosts}
        self._must_answer()
        others = self._read_switch()
        keys = {group.key: group.name for group in self.groups.values()}
        return {
            "switch": self.switch and {"mtu": self.switch.config.maxMtu or 1500, "ours": self.switch.ours},
            "port_groups": {name: {"vlan": group.vlan, "ours": group.ours} for name, group in self.groups.items()},
            "taken": others,
            "hosts": {name: vmkernel.facts(host, self.spec.switch, keys) for name, host in self.hosts.items()},
            # Only a removal relies on the notes.
            "notes_of_others": {} if self.present else self.notes_of_others(),
            "members": self._members(),
            "others": self._others(),
            "machines": self._machines(),
        }

    def info(self) -> dict[str, Any]:
        """Return the current fabric, sorted for the result."""
        state = {**self.read(), "notes_of_others": self.notes_of_others()}
        hosts = {name: planner.host_facts(net, self.spec.switch) for name, net in state["hosts"].items()}
        shown = {key: state[key] for key in ("switch", "port_groups", "machines")}
        return {**shown, "hosts": hosts, "removal": planner.removal(state, self.spec)}

    def plan(self, current: State) -> Plan:
        """Return the changes from the current to the desired fabric."""
        make = planner.plan_present if self.present else planner.plan_absent
        return make(current, self.spec)

    def apply(self, plan: Plan, attempts: int = ATTEMPTS) -> None:
        """Apply the plan; if another cluster changes the same switch meanwhile, plan the rest again."""
        try:
            self._apply(plan)
        except CollectionError as error:
            if attempts == 1:
                raise
            self.apply(self._rest(error), attempts - 1)

    def _rest(self, error: CollectionError) -> Plan:
        """Return the plan of the remaining changes after a race; for other errors, raise the error."""
        # Another cluster that builds or removes the same switch at this time causes these faults.
        if not is_caused_by(error, vim.fault.AlreadyExists, vim.fault.ConcurrentAccess, vim.fault.DuplicateName):
            raise error
        rest = self.plan(self.read())
        if rest.unmet:
            raise error
        return rest

    def _apply(self, plan: Plan) -> None:
        """Make the changes, then wait until vCenter shows the result."""
        changed = {change.key: change for change in plan.changes}
        hosts = {key.removeprefix(HOST): change for key, change in changed.items() if key.startswith(HOST)}
        if self.present:
            self._build(changed, hosts)
        else:
            self._remove(plan, hosts)
        self._settle([self.hosts[name] for name in hosts])

    def notes_of_others(self) -> dict[str, str]:
        """Return the accounts that wrote the notes of hosts in place of this one, by host."""
        noted = [host for host in self.hosts.values() if fabric_marks.built_on(host, self.spec.switch)]
        authors = {host.name: fabric_marks.other_author(host) for host in noted}
        return {name: author for name, author in authors.items() if author}

    def _must_answer(self) -> None:
        silent = [host.name for host in self.hosts.values() if not host.reachable]
        if silent:
            cause = f"vCenter does not reach {', '.join(silent)}"
            raise Unreachable(self.target, "read its RDMA fabric", cause, "bring them back and run again")

    def _read_switch(self) -> dict[str, str]:
        """Read the switch and its port groups; return the names of other networks, each with its location."""
        groups, plain = port_groups.read(self.session, self.location)
        owners = list({group.switch._moId: group.switch for group in groups}.values())
        self.switch = switch.find(self.session, owners, self.spec.switch)
        own = self.switch.ref._moId if self.switch else None
        mine = [group for group in groups if group.switch._moId == own]
        up = {ref._moId for ref in (self.switch.config.uplinkPortgroup or [])} if self.switch else set()
        self.groups = {group.name: group for group in mine if not group.carries_uplinks and group.ref._moId not in up}
        others = {group.name: "another distributed switch" for group in groups if group.switch._moId != own}
        return {**dict.fromkeys(plain, "a standard switch"), **others}

    def _members(self) -> list[str]:
        """Return the hosts that have joined, those of other clusters by their object id."""
        names = {host.ref._moId: name for name, host in self.hosts.items()}
        return [names.get(member, member) for member in (self.switch.members if self.switch else [])]

    def _others(self) -> dict[str, list[str]]:
        """Return the hosts of other clusters on the switch, and our port groups that these clusters use.

        A cluster whose host has a note about the switch may use any of its port groups.
        """
        known = {host.ref._moId for host in self.hosts.values()}
        outside = {ref._moId: ref for ref in (self.switch.member_refs if self.switch else []) if ref._moId not in known}
        # The account may not see all of them, and a read that names one of these is an error.
        paths = ("name", *fabric_marks.PATHS)
        found = properties.find_all(self.session, vim.HostSystem, paths) if outside else []
        read = {ref._moId: values for ref, values in found}
        sharing = any(fabric_marks.built_on(read[key], self.spec.switch) for key in outside if key in read)
        names = [str(read[key]["name"]) if key in read else key for key in outside]
        ours = [group for group in self.groups.values() if group.ours]
        used = [group.name for group in ours if sharing or self._is_used_elsewhere(group, known)]
        return {"hosts": sorted(names), "port_groups": sorted(used)}

    def _is_used_elsewhere(self, group: port_groups.PortGroup, known: Collection[str]) -> bool:
        """Return whether virtual machines of other clusters are connected to a port group."""
        found = properties.read_linked(self.session, [group.ref], "vm", vim.VirtualMachine, ("runtime.host",))
        return any(properties.id_of(values.get("runtime.host")) not in known for _ref, values in found)

    def _machines(self) -> list[dict[str, object]]:
        """Return the virtual machines on the port groups, if there are any."""
        if not self.groups:
            return []
        keys = {group.ref._moId: group.name for group in self.groups.values()}
        refs = [host.ref for host in self.hosts.values()]
        names = {host.ref._moId: name for name, host in self.hosts.items()}
        vms = properties.read_linked(self.session, refs, "vm", vim.VirtualMachine, MACHINES)
        machines = [_machine(values, names, keys) for _ref, values in vms]
        return sorted(
            (machine for machine in machines if machine["port_groups"]), key=lambda machine: str(machine["name"])
        )

    def _build(self, changed: Mapping[str, Any], hosts: Mapping[str, Any]) -> None:
        """Build switch, port groups, notes, hosts, adapters, in an order in which each step finds what it needs."""
        spec = self.spec
        if self.switch is None:
            self.switch = switch.make(self.session, self.location, spec.switch, spec.cluster, spec.mtu)
        self._make_groups({key.removeprefix(GROUP): change for key, change in changed.items() if key.startswith(GROUP)})
        self._each(hosts, lambda name: self._note(self.hosts[name], hosts[name]))
        joining = {
            self.hosts[name]: change.after["uplinks"][0]
            for name, change in hosts.items()
            if self.hosts[name].ref._moId not in self.switch.members
            or change.before["uplinks"] != change.after["uplinks"]
        }
        if joining or (SWITCH in changed and changed[SWITCH].before is not None):
            self.switch = switch.reread(self.session, spec.switch, self.switch.ref)
            switch.change(self.session, self.switch, spec.mtu, joining)
        self._each(hosts, lambda name: self._adapters(self.hosts[name], hosts[name]))

    def _make_groups(self, changed: Mapping[str, Any]) -> None:
        new = [PortGroupSpec(name, change.after["vlan"]) for name, change in changed.items() if change.before is None]
        if new:
            port_groups.make(self.session, self.switch, self.spec.cluster, new)
        for name, change in changed.items():
            if change.before is not None:
                port_groups.set_vlan(self.session, self.groups[name], change.after["vlan"])
        if not new:
            return
        self._read_switch()
        if missing := sorted({group.name for group in new} - set(self.groups)):
            cause = f"the server accepted it, yet shows no {', '.join(missing)}"
            raise StillDiffers(self.spec.switch, "add its port groups", cause, "run again")

    def _note(self, host: Host, change: Any) -> None:
        """Add the coming changes to the note of a host, unless the note contains them."""
        known = fabric_marks.built_on(host, self.spec.switch) or {"joined": False, "adapters": []}
        there = change.before["adapters"] if change.before else {}
        added = [group for group in change.after["adapters"] if group not in there]
        built = {
            "joined": known["joined"] or host.ref._moId not in self.switch.members,
            "adapters": sorted({*known["adapters"], *added}),
        }
        if built != known:
            fabric_marks.write(host, self.spec.switch, built)

    def _adapters(self, host: Host, change: Any) -> None:
        there = change.before["adapters"] if change.before else {}
        for name, after in change.after["adapters"].items():
            if there.get(name) != after:
                port = vim.dvs.PortConnection(switchUuid=self.switch.config.uuid, portgroupKey=self.groups[name].key)
                vmkernel.put(host, port, there.get(name), after)

    def _remove(self, plan: Plan, hosts: Mapping[str, Any]) -> None:
        """Remove adapters, hosts, port groups, switch and notes, in the order of their dependencies."""
        self._each(hosts, lambda name: vmkernel.remove(self.hosts[name], _devices(hosts[name].before)))
        members = self._members()
        leaving = [self.hosts[name] for name, change in hosts.items() if change.before["uplinks"] and name in members]
        if self.switch and leaving:
            switch.leave(self.session, self.switch, leaving)
        if self.switch and SWITCH in plan.after:
            switch.remove(self.session, self.switch)
        else:
            gone = [self.groups[key.removeprefix(GROUP)] for key in plan.after if key.startswith(GROUP)]
            port_groups.remove(self.session, gone)
        self._settle([self.hosts[name] for name in hosts])
        self._each(hosts, self._forget)

    def _forget(self, name: str) -> None:
        """Remove the note of a host on which nothing of the fabric is left; remaining objects still need the note."""
        host = self.hosts[name]
        if not self._done(host, {group.key: group.name for group in self.groups.values()}):
            cause = f"the server accepted its removal from switch {self.spec.switch}, yet still shows it there"
            raise StillDiffers(name, f"change {self.name}", cause, "look at the host's log (hostd.log) and run again")
        fabric_marks.write(host, self.spec.switch, None)

    def _each(self, names: Iterable[str], action: Callable[[str], None]) -> None:
        """Run an action for many hosts at once; the error names all hosts that failed."""
        chosen = list(names)
        with ThreadPoolExecutor(max_workers=max(1, min(PARALLEL, len(chosen)))) as pool:
            errors = [error for error in pool.map(lambda name: _attempt(action, name), chosen) if error]
        if errors:
            raise SeveralErrors(errors, "completed changes are kept")

    def _settle(self, hosts: Sequence[Host]) -> None:
        """Wait until vCenter's copy of the hosts shows the plan or a deadline passes; the read-back then decides."""
        if not hosts:
            return
        keys = {group.key: group.name for group in self.groups.values()}
        refs, deadline = [host.ref for host in hosts], time.monotonic() + SETTLE_SECONDS
        for values in properties.watch(self.session, refs, vmkernel.PUSHED, deadline):
            for host in hosts:
                host.properties = {**host.properties, **values[host.ref._moId]}
            if all(self._done(host, keys) for host in hosts):
                return

    def _done(self, host: Host, keys: Mapping[str, str]) -> bool:
        net = vmkernel.facts(host, self.spec.switch, keys)
        if self.present:
            return planner.host_done(net, self.spec, host.name)
        return planner.host_clear(net, self.spec)


def _machine(values: Properties, names: Mapping[str, str], keys: Mapping[str, str]) -> dict[str, Any]:
    networks = [ref._moId for ref in values.get("network") or []]
    host = values.get("runtime.host")
    return {
        "name": values["name"],
        "host": names.get(host._moId, "") if host else "",
        "on": values.get("runtime.powerState") == "poweredOn",
        "rdma": bool(devices(values, vim.vm.device.VirtualVmxnet3Vrdma) or class_cards(values)),
        "port_groups": sorted(keys[key] for key in networks if key in keys),
    }


def _devices(before: State) -> list[str]:
    return [adapter["device"] for adapter in before["adapters"].values()]


def _attempt(action: Callable[[str], None], name: str) -> CollectionError | None:
    try:
        action(name)
    except CollectionError as error:
        return error
    return None
