"""Subject: lossless RoCE on a host: the driver options of its RDMA cards, and the flow control that they report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import Refused
from ..plan import REBOOT, Plan, State
from ..runner import Params
from ..vsphere import properties
from ..vsphere.escaped_names import plain
from ..vsphere.esxcli import CommandFailed
from ..vsphere.inventory import Host
from ..vsphere.sdk import ApiObject, vim
from ..vsphere.session import Session
from . import kernel_module, network, rdma_users, roce_settings
from .kernel_module import KernelModule
from .network import HostNetwork, RdmaDevice
from .part import Part, ProfileContext, one_subject
from .pci_address import with_domain
from .reading import NUMA, Entry, Group, Reading
from .roce_settings import LosslessRoce
from .rollback import restoring

CALL = "esxcli network nic dcb status get"


def flow_control(host: Host, card: str) -> dict[str, object]:
    """Return a card's current priorities with flow control, and its DCBX; None if its driver does not report them.

    A driver without DCB answers with an error; the other cards of the host are still read.
    """
    try:
        rows = host.esxcli.rows(CALL.removeprefix("esxcli "), nicname=card)
    except CommandFailed as error:
        return _unknown(error.reason)
    if not rows:
        return _unknown("esxcli returned no row")
    return {"pfc": roce_settings.pfc_of(rows[0]), "dcbx": roce_settings.dcbx_of(rows[0]), "pfc_unknown": ""}


def missing_priority(flow_control_by_card: Mapping[str, Mapping[str, Any]], priority: int) -> str:
    """Return the cards that have no flow control on a priority although it is set, and the cause; empty if none."""
    lacking = {
        card: flow
        for card, flow in flow_control_by_card.items()
        if flow["pfc"] is not None and priority not in flow["pfc"]
    }
    if not lacking:
        return ""
    why = "; ".join(f"{card}: {_decided_by(flow['dcbx'])}" for card, flow in lacking.items())
    return (
        f"{', '.join(lacking)} shows no flow control on priority {priority} although the options are set: "
        f"reboot the host if it has not booted since, otherwise check DCBX ({why})"
    )


def further_priorities(flow_control_by_card: Mapping[str, Mapping[str, Any]], priority: int) -> str:
    """Return the cards that have flow control on priorities that the options do not set; empty if none."""
    more = {
        card: extra for card, flow in flow_control_by_card.items() if (extra := set(flow["pfc"] or []) - {priority})
    }
    return "; ".join(
        f"{card} does flow control on priority {', '.join(map(str, sorted(extra)))} too, which its options do not set: "
        f"{_decided_by(flow_control_by_card[card]['dcbx'])}"
        for card, extra in more.items()
    )


def unknown_cards(flow_control_by_card: Mapping[str, Mapping[str, object]]) -> str:
    """Return the cards that do not report their flow control; empty if none."""
    unknown = {card: flow["pfc_unknown"] for card, flow in flow_control_by_card.items() if flow["pfc"] is None}
    return "; ".join(f"whether {card} does flow control is unknown: {reason}" for card, reason in unknown.items())


def _unknown(reason: str) -> dict[str, object]:
    return {"pfc": None, "dcbx": roce_settings.dcbx_of({}), "pfc_unknown": reason}


def _decided_by(dcbx: Mapping[str, Any]) -> str:
    """Return the possible origin: from ESXi 7 on, settings announced with DCBX can replace the options."""
    mode, willing = dcbx["mode"], dcbx["willing"]
    if mode is None and willing is None:
        return "the card does not report its DCBX; if it takes part, the switch decides"
    in_mode = f"DCBX in mode {mode.upper()}" if mode else "DCBX"
    if willing is None:
        return f"{in_mode}, the card does not report whether it adopts the settings that the switch announces"
    adopts = "adopts" if willing else "does not adopt"
    return f"{in_mode}, the card {adopts} the settings that the switch announces"


PATHS = (*kernel_module.PATHS, *network.PATHS, *rdma_users.PATHS, "network")
OPTIONS: dict[str, Any] = {
    "priority": {"type": "int", "default": 3},
    "trust": {"type": "str", "choices": [roce_settings.DSCP, roce_settings.PCP], "default": roce_settings.DSCP},
    "dscp": {"type": "int"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "acknowledge_shared_nic": {"type": "bool", "default": False},
}
FLOW_CONTROL = ("pfc", "dcbx", "pfc_unknown")
HOST_SIDE_ONLY = (
    "pfc is the DCB status that the host reports, null if a driver reports none; dcbx shows whether the switch may "
    "have set it, as it can from ESXi 7 on; verify the same settings on the switch, and verify with traffic that they "
    "work: pause frames, no drops, growing RDMA counters"
)


@dataclass(frozen=True)
class RoceSpec:
    """The desired lossless RoCE, if any, and whether the user acknowledges that others use the same cards."""

    lossless: LosslessRoce | None
    acknowledged: bool = False


def spec_of(params: Params) -> RoceSpec:
    """Return the desired state for the options; options that contradict each other are refused."""
    if params["state"] == "absent":
        return RoceSpec(None, params["acknowledge_shared_nic"])
    try:
        lossless = roce_settings.lossless_roce(params["priority"], params["trust"], params["dscp"])
    except ValueError as error:
        raise Refused("RoCE", "combine its options", str(error), "correct priority, trust or dscp") from error
    return RoceSpec(lossless, params["acknowledge_shared_nic"])


def _advice(requested: State) -> dict[str, object]:
    """Return the note on the limits of the reported states, and the settings of the switch."""
    desired = spec_of(requested)
    settings = {"switch": roce_settings.switch_settings(desired.lossless)} if desired.lossless else {}
    return {"note": HOST_SIDE_ONLY, **settings}


class Roce:
    """Lossless RoCE on one host."""

    name = "RoCE"

    def __init__(self, host: Host, desired: RoceSpec) -> None:
        self.host, self.target, self.desired = host, host.name, desired

    def read(self) -> State:
        """Return the cards, their configured and active driver options, flow control, other users and port groups."""
        self.host.must_answer("read its RoCE settings")
        net = network.read(self.host)
        drivers, cards = rdma_drivers(net)
        modules = {
            name: KernelModule(self.host, name).read()
            for driver in drivers
            for name in roce_settings.DRIVER_OPTIONS[driver]
        }
        flow = {card: flow_control(self.host, card) for card, driver in cards.items() if driver in drivers}
        needs_tag = self.desired.lossless is not None and self.desired.lossless.trust == roce_settings.PCP
        return {
            "drivers": drivers,
            "cards": cards,
            "configured": {name: state["options"] for name, state in modules.items()},
            "active": {name: state["active"] for name, state in modules.items()},
            **{key: {card: status[key] for card, status in flow.items()} for key in FLOW_CONTROL},
            "users": rdma_users.users(self.host, net),
            "port_groups": _port_groups(self.host, net) if needs_tag else [],
            "switches": sorted({name for card in cards if (name := network.switch_with(net, card))}),
        }

    def plan(self, current: State) -> Plan:
        """Return the plan that brings the host to the desired state."""
        return plan_roce(current, self.desired)

    def apply(self, plan: Plan) -> None:
        """Write the option strings of the modules that differ."""
        for change in plan.due:
            active = plan.before["active"][change.key]
            module_plan = Plan(
                before={"options": change.before, "active": active}, after={"options": change.after, "active": active}
            )
            KernelModule(self.host, change.key).apply(module_plan)


def rdma_drivers(net: HostNetwork) -> tuple[list[str], dict[str, str]]:
    """Return the supported drivers of the RDMA cards, and every RDMA card with its driver."""
    cards = {card: nic["driver"] for card, nic in net["uplinks"].items() if nic["rdma"]}
    return sorted(set(cards.values()) & set(roce_settings.DRIVER_OPTIONS)), cards


def _port_groups(host: Host, net: HostNetwork) -> list[dict[str, object]]:
    """Return the port groups of the switches of the RDMA cards."""
    _drivers, cards = rdma_drivers(net)
    switches = {network.switch_with(net, card) for card in cards}
    return [group for group in reachable_port_groups(host.session, [host]).values() if group["switch"] in switches]


def plan_roce(current: State, desired: RoceSpec) -> Plan:
    """Return the plan that sets the options of every driver on the host; other options stay."""
    if desired.lossless is not None:
        _refuse_impossible(current, desired.lossless)
    try:
        after = _merged(current, desired.lossless)
        waiting = _waiting(current, desired.lossless)
    except ValueError as error:
        raise Refused("RoCE", "plan the options of its driver", str(error), "correct trust") from error
    facts = {key: current[key] for key in ("cards", "active", *FLOW_CONTROL, "users")}
    plan = Plan(
        before={**current["configured"], **facts},
        after={**after, **facts},
        needs=frozenset({REBOOT}) if waiting else frozenset(),
        why=tuple(f"{key} of {module} takes effect only when the host boots" for module, key in waiting),
        warnings=tuple(
            _warnings(current, desired.lossless, changed=after != current["configured"], waiting=bool(waiting))
        ),
    )
    _refuse_shared(current, desired, plan)
    return plan


def _merged(current: State, lossless: LosslessRoce | None) -> dict[str, object]:
    after: dict[str, Any] = {}
    for driver in current["drivers"]:
        after.update(roce_settings.merged(driver, current["configured"], lossless))
    return after


def _waiting(current: State, lossless: LosslessRoce | None) -> list[tuple[str, str]]:
    """Return the options whose active value is not the desired one, each with its module."""
    return [
        (module, key)
        for driver in current["drivers"]
        for module, keys in roce_settings.differing(driver, current["active"], lossless).items()
        for key in keys
    ]


def _refuse_impossible(current: State, lossless: LosslessRoce) -> None:
    if not current["cards"]:
        reason = "the host has no RDMA device: its network cards have none, or their RDMA driver is not loaded"
        raise Refused("RoCE", "make it lossless", reason, "install the driver first")
    unknown = {card: driver for card, driver in current["cards"].items() if driver not in roce_settings.DRIVER_OPTIONS}
    if unknown:
        shown = ", ".join(f"{card} uses {driver}" for card, driver in unknown.items())
        known = ", ".join(roce_settings.DRIVER_OPTIONS)
        raise Refused("RoCE", "make it lossless", f"{shown}; options are known for {known}", "set them by hand")
    groups = current["port_groups"]
    if lossless.trust == roce_settings.PCP and groups and not any(group["tagged"] for group in groups):
        reason = f"no port group of {', '.join(current['switches'])} has a VLAN, and the priority travels in its tag"
        raise Refused("RoCE", "trust PCP", reason, "give the port groups a VLAN, or use trust dscp")


def _refuse_shared(current: State, desired: RoceSpec, plan: Plan) -> None:
    changed_cards = [card for card, driver in current["cards"].items() if driver in current["drivers"]]
    others = rdma_users.on_uplinks(current["users"], changed_cards)
    if others and plan.changes and not desired.acknowledged:
        raise Refused(
            "RoCE",
            "change the options of the driver",
            f"they act on all ports of the host, also for {', '.join(rdma_users.descriptions(others))}",
            "agree with their owners on the priority, then set acknowledge_shared_nic: true",
        )


def _warnings(current: State, lossless: LosslessRoce | None, *, changed: bool, waiting: bool) -> Iterator[str]:
    if changed:
        yield from _before_the_boot(current, lossless)
    if lossless is None:
        return
    untagged = [group["name"] for group in current["port_groups"] if not group["tagged"]]
    if untagged:
        yield f"the port groups {', '.join(untagged)} have no VLAN: their RoCE traffic carries no priority"
    flow = {card: {key: current[key][card] for key in FLOW_CONTROL} for card in current["pfc"]}
    settled = not changed and not waiting
    if settled:
        priority = lossless.priority
        yield from filter(None, (missing_priority(flow, priority), further_priorities(flow, priority)))
    yield from filter(None, (unknown_cards(flow),))


def _before_the_boot(current: State, lossless: LosslessRoce | None) -> Iterator[str]:
    if lossless is not None:
        yield f"set the switch to priority {lossless.priority} before the host boots: see switch in the result"
    dropped = {
        priority
        for driver in current["drivers"]
        for priority in roce_settings.dropped_priorities(driver, current["configured"], lossless)
    }
    if dropped:
        yield f"flow control on priority {', '.join(map(str, sorted(dropped)))} is switched off"


def reachable_port_groups(session: Session, hosts: Iterable[Host]) -> dict[str, dict[str, object]]:
    """Return the port groups of these hosts by key, without those of uplinks, and whether their traffic is tagged."""
    kind = vim.dvs.DistributedVirtualPortgroup
    refs = {ref._moId: ref for host in hosts for ref in host["network"] or [] if isinstance(ref, kind)}
    configs = [values["config"] for values in properties.read_many(session, list(refs.values()), ("config",)).values()]
    groups = [config for config in configs if not getattr(config, "uplink", False)]
    switches = {group.distributedVirtualSwitch._moId: group.distributedVirtualSwitch for group in groups}
    names = properties.read_many(session, list(switches.values()), ("name",))
    return {group.key: _port_group(group, names[group.distributedVirtualSwitch._moId]["name"]) for group in groups}


def _port_group(config: ApiObject, switch: str) -> dict[str, Any]:
    return {"name": plain(config.name), "switch": switch, **_vlan(getattr(config.defaultPortConfig, "vlan", None))}


def _vlan(vlan: object) -> dict[str, object]:
    """Return the VLAN and whether traffic is tagged; guests tag it on a trunk, the switch on a private VLAN."""
    if isinstance(vlan, vim.dvs.VmwareDistributedVirtualSwitch.VlanIdSpec):
        return {"vlan": vlan.vlanId or None, "tagged": bool(vlan.vlanId)}
    return {"vlan": None, "tagged": vlan is not None}


def _subject(host: Host, requested: State, _context: ProfileContext) -> Roce:
    return Roce(host, spec_of(requested))


def _read_devices(reading: Reading) -> Entry:
    devices = [_device(reading, name, device) for name, device in reading.net["rdma"].items()]
    return {"rdma_devices": devices, "rdma_users": rdma_users.users(reading.host, reading.net)}


def _read(reading: Reading) -> Entry:
    devices = [
        {**_device(reading, name, device), **_traffic(reading, name, device)}
        for name, device in reading.net["rdma"].items()
    ]
    return {**_read_devices(reading), "rdma_devices": devices}


def _device(reading: Reading, name: str, device: RdmaDevice) -> Entry:
    card = reading.net["uplinks"].get(device["uplink"] or "")
    numa_node = reading.numa.get(with_domain((card["pci"] if card else None) or ""))
    return {"device": name, **device, "numa_node": numa_node}


def _traffic(reading: Reading, name: str, device: RdmaDevice) -> Entry:
    """Return the flow control and the traffic of an RDMA device, which take three calls."""
    uplink = device["uplink"] or ""
    card = reading.net["uplinks"].get(uplink)
    has_dcb = card is not None and card["driver"] in roce_settings.DRIVER_OPTIONS
    return {
        **(flow_control(reading.host, uplink) if has_dcb else dict.fromkeys(FLOW_CONTROL)),
        "counters": network.rdma_counters(reading.host, name),
        "uplink_counters": network.uplink_counters(reading.host, uplink) if card else {},
    }


# Preflight reads all hosts and needs no call for each of them.
DEVICES = Group(
    "rdma_devices",
    "RDMA devices and their other users, without their traffic and flow control",
    (*network.PATHS, *rdma_users.PATHS, NUMA),
    _read_devices,
)
GROUP = Group(
    "rdma",
    "RDMA devices, their traffic, flow control and other users",
    (*network.PATHS, *rdma_users.PATHS, NUMA),
    _read,
    (CALL, network.RDMA_COUNTERS, network.UPLINK_COUNTERS),
)
PART = Part(
    key="roce",
    module="esxi_roce",
    spec={"type": "dict", "options": OPTIONS},
    members=one_subject(_subject),
    groups=(DEVICES, GROUP, kernel_module.GROUP),
    kept=("kernel_modules",),
    restore=restoring.roce,
    restores="all options of the driver's modules; options added since then are removed",
    calls=(*kernel_module.CALLS, CALL),
    paths=PATHS,
    after=("kernel_modules",),
    result=_advice,
)
