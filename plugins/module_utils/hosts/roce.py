# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Subject: lossless RoCE on a host: the options of its RDMA cards' driver, and what the cards say of flow control."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import Refused
from ..plan import REBOOT, Plan
from ..vsphere import properties
from ..vsphere.escaped_names import plain
from ..vsphere.inventory import Host
from ..vsphere.sdk import vim
from ..vsphere.session import Session
from . import dcb, kernel_module, network, rdma_users, roce_settings
from .kernel_module import KernelModule
from .part import Part, ProfileContext, one_subject
from .pci_address import with_domain
from .reading import NUMA, Entry, Group, Reading
from .roce_settings import Lossless
from .rollback import restoring

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
    "pfc is what the host's own DCB status says, null where a driver tells nothing; dcbx says whether the switch "
    "may have set it, as it can from ESXi 7 on; whether the switch does the same, only the switch tells, "
    "and whether it works, only traffic: pause frames, no drops, growing RDMA counters"
)


@dataclass(frozen=True)
class RoceSpec:
    """Lossless RoCE, or none; and whether others on the same cards are known and agree."""

    lossless: Lossless | None
    acknowledged: bool = False


def spec_of(params: Mapping[str, Any]) -> RoceSpec:
    """The desired state that the options mean; options that contradict each other are refused."""
    if params["state"] == "absent":
        return RoceSpec(None, params["acknowledge_shared_nic"])
    try:
        checked = roce_settings.lossless(params["priority"], params["trust"], params["dscp"])
    except ValueError as error:
        raise Refused("RoCE", "combine its options", str(error), "correct priority, trust or dscp") from error
    return RoceSpec(checked, params["acknowledge_shared_nic"])


def _advice(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits of the states of the hosts, and the settings of the switch."""
    wanted = spec_of(asked)
    settings = {"switch": roce_settings.switch_settings(wanted.lossless)} if wanted.lossless else {}
    return {"note": HOST_SIDE_ONLY, **settings}


class Roce:
    """Lossless RoCE on one host."""

    name = "RoCE"

    def __init__(self, host: Host, wanted: RoceSpec) -> None:
        self.host, self.target, self.wanted = host, host.name, wanted

    def read(self) -> dict[str, Any]:
        """The cards, their driver's options as configured and as active, flow control, other users, port groups."""
        self.host.must_answer("read its RoCE settings")
        net = network.read(self.host)
        drivers, cards = driver_of(net)
        modules = {
            name: KernelModule(self.host, name).read() for driver in drivers for name in roce_settings.OURS[driver]
        }
        flow = {
            card: dcb.flow_control(self.host, card) for card, driver in cards.items() if driver in roce_settings.OURS
        }
        needs_tag = self.wanted.lossless is not None and self.wanted.lossless.trust == roce_settings.PCP
        return {
            "drivers": drivers,
            "cards": cards,
            "configured": {name: state["options"] for name, state in modules.items()},
            "active": {name: state["active"] for name, state in modules.items()},
            **{key: {card: one[key] for card, one in flow.items()} for key in FLOW_CONTROL},
            "users": rdma_users.users(self.host, net),
            "port_groups": _port_groups(self.host, net) if needs_tag else [],
            "switches": sorted({name for card in cards if (name := network.switch_with(net, card))}),
        }

    def plan(self, current: Mapping[str, Any]) -> Plan:
        """The plan that brings the host to the desired state."""
        return plan_roce(current, self.wanted)

    def apply(self, plan: Plan) -> None:
        """Write the option strings of the modules that differ."""
        for change in plan.due:
            active = plan.before["active"][change.key]
            its = Plan(
                before={"options": change.before, "active": active}, after={"options": change.after, "active": active}
            )
            KernelModule(self.host, change.key).apply(its)


def driver_of(net: Mapping[str, Any]) -> tuple[list[str], dict[str, str]]:
    """The drivers of the RDMA cards that this subject knows, and every RDMA card with its driver."""
    cards = {card: facts["driver"] for card, facts in net["uplinks"].items() if facts["rdma"]}
    return sorted(set(cards.values()) & set(roce_settings.OURS)), cards


def _port_groups(host: Host, net: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The port groups of the switches that the RDMA cards belong to."""
    _drivers, cards = driver_of(net)
    switches = {network.switch_with(net, card) for card in cards}
    return [one for one in reachable_port_groups(host.session, [host]).values() if one["switch"] in switches]


def plan_roce(current: Mapping[str, Any], wanted: RoceSpec) -> Plan:
    """The plan that sets the options of every driver that is there; foreign options stay."""
    if wanted.lossless is not None:
        _refuse_impossible(current, wanted.lossless)
    try:
        after = _merged(current, wanted.lossless)
        waiting = _waiting(current, wanted.lossless)
    except ValueError as error:
        raise Refused("RoCE", "plan the options of its driver", str(error), "correct trust") from error
    facts = {key: current[key] for key in ("cards", "active", *FLOW_CONTROL, "users")}
    plan = Plan(
        before={**current["configured"], **facts},
        after={**after, **facts},
        needs=frozenset({REBOOT}) if waiting else frozenset(),
        why=tuple(f"{key} of {module} is taken only when the host boots" for module, key in waiting),
        warnings=tuple(
            _warnings(current, wanted.lossless, changed=after != current["configured"], waiting=bool(waiting))
        ),
    )
    _refuse_shared(current, wanted, plan)
    return plan


def _merged(current: Mapping[str, Any], lossless: Lossless | None) -> dict[str, Any]:
    after: dict[str, Any] = {}
    for driver in current["drivers"]:
        after.update(roce_settings.merged(driver, current["configured"], lossless))
    return after


def _waiting(current: Mapping[str, Any], lossless: Lossless | None) -> list[tuple[str, str]]:
    """The options that are not in use as desired, each with its module."""
    return [
        (module, key)
        for driver in current["drivers"]
        for module, keys in roce_settings.differing(driver, current["active"], lossless).items()
        for key in keys
    ]


def _refuse_impossible(current: Mapping[str, Any], lossless: Lossless) -> None:
    if not current["cards"]:
        said = "the host has no RDMA device: its network cards have none, or their RDMA driver is not loaded"
        raise Refused("RoCE", "make it lossless", said, "install the driver first")
    unknown = {card: driver for card, driver in current["cards"].items() if driver not in roce_settings.OURS}
    if unknown:
        shown = ", ".join(f"{card} uses {driver}" for card, driver in unknown.items())
        known = ", ".join(roce_settings.OURS)
        raise Refused("RoCE", "make it lossless", f"{shown}; options are known for {known}", "set them by hand")
    groups = current["port_groups"]
    if lossless.trust == roce_settings.PCP and groups and not any(one["tagged"] for one in groups):
        said = f"no port group of {', '.join(current['switches'])} has a VLAN, and the priority travels in its tag"
        raise Refused("RoCE", "trust PCP", said, "give the port groups a VLAN, or take trust dscp")


def _refuse_shared(current: Mapping[str, Any], wanted: RoceSpec, plan: Plan) -> None:
    ours = [card for card, driver in current["cards"].items() if driver in current["drivers"]]
    others = rdma_users.on_uplinks(current["users"], ours)
    if others and plan.changes and not wanted.acknowledged:
        raise Refused(
            "RoCE",
            "change the options of the driver",
            f"they act on all ports of the host, also for {', '.join(rdma_users.sentences(others))}",
            "agree with them on the priority, then say acknowledge_shared_nic: true",
        )


def _warnings(current: Mapping[str, Any], lossless: Lossless | None, *, changed: bool, waiting: bool) -> Iterator[str]:
    if changed:
        yield from _before_the_boot(current, lossless)
    if lossless is None:
        return
    untagged = [one["name"] for one in current["port_groups"] if not one["tagged"]]
    if untagged:
        yield f"the port groups {', '.join(untagged)} have no VLAN: their RoCE traffic carries no priority"
    seen = {card: {key: current[key][card] for key in FLOW_CONTROL} for card in current["pfc"]}
    settled = not changed and not waiting
    in_force = (
        [dcb.missing_priority(seen, lossless.priority), dcb.further_priorities(seen, lossless.priority)]
        if settled
        else []
    )
    yield from filter(None, [*in_force, dcb.unknown_cards(seen)])


def _before_the_boot(current: Mapping[str, Any], lossless: Lossless | None) -> Iterator[str]:
    if lossless is not None:
        yield f"set the switch to priority {lossless.priority} before the host boots: see switch in the result"
    dropped = {
        priority
        for driver in current["drivers"]
        for priority in roce_settings.dropped_priorities(driver, current["configured"], lossless)
    }
    if dropped:
        yield f"flow control on priority {', '.join(str(one) for one in sorted(dropped))} is switched off"


def reachable_port_groups(session: Session, hosts: Iterable[Host]) -> dict[str, dict[str, Any]]:
    """The port groups of these hosts by key, without those of uplinks, with whether their traffic is tagged."""
    kind = vim.dvs.DistributedVirtualPortgroup
    refs = {ref._moId: ref for host in hosts for ref in host["network"] or [] if isinstance(ref, kind)}
    configs = [values["config"] for values in properties.read_many(session, list(refs.values()), ("config",)).values()]
    groups = [one for one in configs if not getattr(one, "uplink", False)]
    owners = {one.distributedVirtualSwitch._moId: one.distributedVirtualSwitch for one in groups}
    names = properties.read_many(session, list(owners.values()), ("name",))
    return {one.key: _port_group(one, names[one.distributedVirtualSwitch._moId]["name"]) for one in groups}


def _port_group(config: Any, switch: str) -> dict[str, Any]:
    return {"name": plain(config.name), "switch": switch, **_vlan(getattr(config.defaultPortConfig, "vlan", None))}


def _vlan(vlan: Any) -> dict[str, Any]:
    """A trunk is tagged by the guest, a private VLAN by the switch."""
    if isinstance(vlan, vim.dvs.VmwareDistributedVirtualSwitch.VlanIdSpec):
        return {"vlan": vlan.vlanId or None, "tagged": bool(vlan.vlanId)}
    return {"vlan": None, "tagged": vlan is not None}


def _subject(host: Host, asked: Mapping[str, Any], _context: ProfileContext) -> Roce:
    return Roce(host, spec_of(asked))


def _read(reading: Reading) -> Entry:
    devices = [_rdma_device(reading, name, device) for name, device in reading.net["rdma"].items()]
    return {"rdma_devices": devices, "rdma_users": rdma_users.users(reading.host, reading.net)}


def _rdma_device(reading: Reading, name: str, device: Mapping[str, Any]) -> Entry:
    uplink = device["uplink"]
    card = reading.net["uplinks"].get(uplink, {})
    return {
        "device": name,
        **device,
        "numa_node": reading.numa.get(with_domain(card.get("pci") or "")),
        **(
            dcb.flow_control(reading.host, uplink)
            if card.get("driver") in roce_settings.OURS
            else dict.fromkeys(FLOW_CONTROL)
        ),
        "counters": network.rdma_counters(reading.host, name),
        "uplink_counters": network.uplink_counters(reading.host, uplink) if card else {},
    }


GROUP = Group(
    "rdma",
    "RDMA devices, their traffic, flow control and other users",
    (*network.PATHS, *rdma_users.PATHS, NUMA),
    _read,
    (dcb.CALL, network.RDMA_DEVICES, network.RDMA_COUNTERS, network.UPLINK_COUNTERS),
)
PART = Part(
    key="roce",
    module="esxi_roce",
    spec={"type": "dict", "options": OPTIONS},
    members=one_subject(_subject),
    groups=(GROUP, kernel_module.GROUP),
    kept=("kernel_modules",),
    restore=restoring.roce,
    restores="all options of the driver's modules; options that were added to them since are removed",
    calls=(*kernel_module.CALLS, dcb.CALL, network.RDMA_DEVICES),
    paths=PATHS,
    after=("kernel_modules",),
    result=_advice,
)
