"""Subject: PVRDMA on a host: vmkernel adapter, tag, firewall and RDMA uplink, checked together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..errors import Refused
from ..plan import Plan, State
from ..runner import Params
from ..vsphere import properties
from ..vsphere.faults import translating_faults
from ..vsphere.inventory import Host
from ..vsphere.option_definitions import value_path
from ..vsphere.properties import Properties
from ..vsphere.sdk import vim
from . import network
from .network import HostNetwork, VirtualSwitch
from .part import Part, ProfileContext, one_subject
from .preflight.host_findings import COMES_WITH_FABRIC
from .reading import Entry, Group, Reading
from .rollback import restoring

OPTION = "Net.PVRDMAVmknic"
RULESET = "pvrdma"
TAG = value_path(OPTION)
FIREWALL_RULES = f'config.firewall.ruleset["{RULESET}"]'
SETTLED = (TAG, FIREWALL_RULES)
PATHS = ("configManager.advancedOption", "configManager.firewallSystem", "vm", *SETTLED, *network.PATHS)
DEVICES = "config.hardware.device"
FULL_MTU = 9000

OPTIONS: dict[str, Any] = {
    "vmk": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "close_firewall": {"type": "bool", "default": True},
}
REQUIRED_IF = [("state", "present", ["vmk"])]


@dataclass(frozen=True)
class PvrdmaSpec:
    """The adapter to tag; None removes the tag, and closes the firewall too if ``close_firewall`` is set.

    Adapters ``to_come`` are created before the plan is applied: a plan can be made without them, but not applied.
    """

    vmk: str | None
    close_firewall: bool = True
    to_come: frozenset[str] = frozenset()


def spec_of(params: Params) -> PvrdmaSpec:
    """Return the desired state for the options of the module."""
    return PvrdmaSpec(params["vmk"] if params["state"] == "present" else None, params["close_firewall"])


class Pvrdma:
    """PVRDMA on one host."""

    name = "PVRDMA"

    def __init__(self, host: Host, desired: PvrdmaSpec) -> None:
        self.host, self.target, self.desired = host, host.name, desired

    def read(self) -> State:
        """Return the tag, the ruleset, the network of the host, and the virtual machines that a change would affect."""
        self.host.must_answer("read its PVRDMA settings")
        current = {
            **facts(self.host),
            "network": network.read(self.host),
            "version": self.host["config.product.version"],
        }
        changing = current["vmk"] and current["vmk"] != (self.desired.vmk or "")
        return {**current, "machines": running_machines(self.host) if changing else []}

    def apply(self, plan: Plan) -> None:
        """Open the firewall before tagging, and untag before closing: the control channel needs an open firewall."""
        changes = {change.key: change.after for change in plan.due}
        opens = changes.get("firewall_open")
        if opens is True:
            self._switch_firewall(to_open=True)
        if "vmk" in changes:
            self._tag(changes["vmk"])
        if opens is False:
            self._switch_firewall(to_open=False)
        after = {**plan.before, **changes}
        self.host.settle(SETTLED, lambda values: _shown(values) == (after["vmk"], after["firewall_open"]))

    def plan(self, current: State) -> Plan:
        """Return the plan that brings the host to the desired state."""
        return plan_pvrdma(current, self.desired)

    def _tag(self, vmk: str) -> None:
        with translating_faults(self.target, f"set its option {OPTION} to {vmk!r}"):
            self.host["configManager.advancedOption"].UpdateOptions([vim.option.OptionValue(key=OPTION, value=vmk)])

    def _switch_firewall(self, *, to_open: bool) -> None:
        """Open or close the ruleset; its allowed addresses are never changed."""
        firewall = self.host["configManager.firewallSystem"]
        change = firewall.EnableRuleset if to_open else firewall.DisableRuleset
        with translating_faults(self.target, f"{'open' if to_open else 'close'} the firewall ruleset {RULESET}"):
            change(RULESET)


def facts(host: Host) -> dict[str, Any]:
    """Return the tag and the firewall ruleset; None if the host does not have the option or the ruleset."""
    rules = host[FIREWALL_RULES]
    return {
        "vmk": host[TAG],
        "firewall_open": bool(rules.enabled) if rules is not None else None,
        "firewall_allowed": _allowed(rules.allowedHosts) if rules is not None else [],
    }


def _allowed(hosts: Any) -> list[str]:
    """Return the addresses and networks that the ruleset lets in; empty if it lets in all."""
    if hosts is None or hosts.allIp:
        return []
    networks = [f"{net.network}/{net.prefixLength}" for net in hosts.ipNetwork or []]
    return sorted([*(hosts.ipAddress or []), *networks])


def running_machines(host: Host) -> list[str]:
    """Return the names of the powered-on virtual machines of a host that have a PVRDMA adapter."""
    paths = ("name", "runtime.powerState", DEVICES)
    machines = properties.read_many(host.session, host["vm"] or [], paths).values()
    return sorted(
        machine["name"]
        for machine in machines
        if machine.get("runtime.powerState") == "poweredOn"
        and any(isinstance(each, vim.vm.device.VirtualVmxnet3Vrdma) for each in machine.get(DEVICES, []))
    )


def plan_pvrdma(current: State, desired: PvrdmaSpec) -> Plan:
    """Plan to tag the adapter and open the firewall, or to undo both; a refusal contains all reasons."""
    before: dict[str, Any] = {"vmk": current["vmk"], "firewall_open": current["firewall_open"]}
    if desired.vmk is None:
        untagged = "" if before["vmk"] else before["vmk"]
        closed = False if desired.close_firewall and before["firewall_open"] else before["firewall_open"]
        after = {"vmk": untagged, "firewall_open": closed}
        return Plan(before=before, after=after, unmet=_disturbed(current, untagged))
    coming = desired.vmk in desired.to_come and desired.vmk not in current["network"]["vmkernel"]
    reasons = [*_missing(current), *(() if coming else _misplaced(current["network"], desired.vmk))]
    if reasons:
        raise Refused("PVRDMA", f"prepare {desired.vmk} for it", "; ".join(reasons), "correct that first")
    if coming:
        text = f"there is no vmkernel adapter {desired.vmk} yet; {COMES_WITH_FABRIC}"
        return Plan(before=before, after={"vmk": desired.vmk, "firewall_open": True}, warnings=(text,), unmet=(text,))
    path = _path(current["network"], desired.vmk)
    return Plan(
        before={**before, **path},
        after={"vmk": desired.vmk, "firewall_open": True, **path},
        warnings=(*_unwise(current["network"], desired.vmk), *_narrow(current)),
        unmet=_disturbed(current, desired.vmk),
    )


def _path(net: HostNetwork, vmk: str) -> dict[str, Any]:
    """Return the path from the adapter to the uplink, which the plan contains to show the checked objects."""
    adapter = net["vmkernel"][vmk]
    switch = net["switches"][adapter["switch"] or ""]
    (uplink,) = switch["uplinks"]
    return {
        "vmk_mtu": adapter["mtu"],
        "switch": adapter["switch"],
        "switch_mtu": switch["mtu"],
        "uplink": uplink,
        "rdma_device": net["uplinks"][uplink]["rdma"],
    }


def _missing(current: State) -> Iterator[str]:
    """Yield the reasons why no adapter of this host can carry PVRDMA."""
    version = f"ESXi {current['version']}"
    if current["vmk"] is None:
        yield f"{version} of this host has no option {OPTION}"
    if current["firewall_open"] is None:
        yield f"the firewall of {version} on this host has no ruleset {RULESET}"
    if not current["network"]["rdma"]:
        yield "the host has no RDMA device: its network cards have none, or their RDMA driver is not loaded"


def _misplaced(net: HostNetwork, vmk: str) -> Iterator[str]:
    """Yield the reasons why this adapter cannot carry PVRDMA."""
    adapter = net["vmkernel"].get(vmk)
    if adapter is None:
        has = ", ".join(sorted(net["vmkernel"])) or "none"
        yield f"there is no vmkernel adapter {vmk}; there is {has} (the playbook fabric builds others)"
        return
    name = adapter["switch"] or ""
    switch = net["switches"].get(name)
    if switch is None:
        yield f"{vmk} is not on a virtual switch of the host; PVRDMA works over a distributed switch only"
    elif switch["kind"] != network.DISTRIBUTED:
        yield f"{vmk} is on the standard switch {name}; PVRDMA works over a distributed switch only"
    else:
        yield from _bad_uplinks(net, name, switch)
        if adapter["mtu"] > switch["mtu"]:
            yield f"{vmk} has MTU {adapter['mtu']}, more than the {switch['mtu']} of its switch {name}"


def _bad_uplinks(net: HostNetwork, name: str, switch: VirtualSwitch) -> Iterator[str]:
    """Yield the reasons against the uplinks: PVRDMA silently falls back to TCP unless a single RDMA card is used."""
    uplinks = switch["uplinks"]
    capable = ", ".join(card for card, nic in net["uplinks"].items() if nic["rdma"]) or "none"
    if len(uplinks) != 1:
        have = f"the uplinks {', '.join(uplinks)}" if uplinks else "no uplink"
        yield f"switch {name} has {have} of this host; an RDMA card (here {capable}) must be its only uplink"
        return
    if switch["lag"]:
        yield f"the uplink {uplinks[0]} of switch {name} is in a link aggregation group, which is teaming"
    nic = net["uplinks"].get(uplinks[0])
    device = nic["rdma"] if nic else None
    if not device:
        yield f"the only uplink {uplinks[0]} of switch {name} has no RDMA device (the host's RDMA cards: {capable})"
    elif net["rdma"][device]["roce"] is False:
        yield f"{device} of the uplink {uplinks[0]} does not support RoCE, which PVRDMA requires"


def _unwise(net: HostNetwork, vmk: str) -> Iterator[str]:
    """Yield warnings about settings that work, but reduce the performance or the reach of PVRDMA."""
    path, adapter = _path(net, vmk), net["vmkernel"][vmk]
    device = net["rdma"][path["rdma_device"]]
    if path["switch_mtu"] < FULL_MTU:
        yield f"switch {path['switch']} has MTU {path['switch_mtu']}; RDMA needs {FULL_MTU} for its largest packets"
    if adapter["mtu"] < path["switch_mtu"]:
        yield f"{vmk} has MTU {adapter['mtu']}, less than the {path['switch_mtu']} of its switch {path['switch']}"
    if adapter["services"]:
        yield f"{vmk} also carries {', '.join(adapter['services'])}; give PVRDMA a separate adapter"
    if not adapter["address"]:
        yield f"{vmk} has no IPv4 address; the other hosts' adapters must reach it over TCP"
    if device["state"] != "active":
        yield f"{path['rdma_device']} is {device['state']}, not active: check the link of {path['uplink']}"


def _narrow(current: State) -> Iterator[str]:
    if current["firewall_allowed"]:
        allowed = ", ".join(current["firewall_allowed"])
        yield f"the ruleset {RULESET} lets in only {allowed}; the tagged adapters of all hosts must be among them"


def _disturbed(current: State, vmk: str | None) -> tuple[str, ...]:
    if not current["machines"] or vmk == current["vmk"]:
        return ()
    verb = "runs" if len(current["machines"]) == 1 else "run"
    users = f"{', '.join(current['machines'])} {verb} here with a PVRDMA adapter"
    return (f"{users} and would lose {current['vmk']}: move the virtual machines or power them off",)


def _shown(values: Properties) -> tuple[str | None, bool | None]:
    rules = values.get(FIREWALL_RULES)
    return values.get(TAG), bool(rules.enabled) if rules is not None else None


def _subject(host: Host, requested: State, context: ProfileContext) -> Pvrdma:
    return Pvrdma(host, replace(spec_of(requested), to_come=frozenset(context.to_come)))


def _read(reading: Reading) -> Entry:
    return {"pvrdma": facts(reading.host)}


PART = Part(
    key="pvrdma",
    module="esxi_pvrdma",
    spec={"type": "dict", "options": OPTIONS, "required_if": REQUIRED_IF},
    members=one_subject(_subject),
    groups=(Group("pvrdma", "tag and firewall of PVRDMA", SETTLED, _read),),
    kept=("pvrdma",),
    restore=restoring.pvrdma,
    restores="the tagged adapter, and the firewall ruleset if it was closed",
    calls=("HostSystem.DisableRuleset", "HostSystem.EnableRuleset", "HostSystem.UpdateOptions"),
    paths=PATHS,
    after=("roce",),
)
