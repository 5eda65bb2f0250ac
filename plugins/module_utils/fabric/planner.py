"""The pure planner of a fabric: from the current and the desired state to the changes, or to a refusal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import Refused
from ..plan import Plan
from . import refusals, vmkernel
from .fabric_spec import AdapterSpec, FabricSpec

SWITCH = "switch"
GROUP, HOST = "port_groups.", "hosts."
State = Mapping[str, Any]


def plan_present(current: State, spec: FabricSpec) -> Plan:
    """Return the plan that builds the fabric or changes its differing settings."""
    reasons = list(refusals.reasons_against(current, spec))
    if reasons:
        raise Refused(spec.cluster, f"build its RDMA switch {spec.switch}", "; ".join(reasons), "correct that first")
    pairs = {SWITCH: (current["switch"] and {"mtu": current["switch"]["mtu"]}, {"mtu": spec.mtu})}
    for group in spec.port_groups:
        there = current["port_groups"].get(group.name)
        vlan = (there["vlan"] if there else 0) if group.vlan is None else group.vlan
        pairs[GROUP + group.name] = (there and {"vlan": there["vlan"]}, {"vlan": vlan})
    for name, net in current["hosts"].items():
        pairs[HOST + name] = _host(net, spec, name)
    plan = _plan(pairs)
    return Plan(
        before=plan.before,
        after=plan.after,
        warnings=tuple(refusals.risks(current, spec)),
        unmet=tuple(_unmet(current, spec, plan)),
    )


def plan_absent(current: State, spec: FabricSpec) -> Plan:
    """Return the plan that removes only the objects that this collection built and that no other cluster needs."""
    gone, removed = _gone(current, spec), _removed_groups(current)
    switch = current["switch"]
    pairs = {HOST + name: (_built(current["hosts"][name], spec, groups), None) for name, groups in gone.items()}
    pairs |= {GROUP + name: ({"vlan": current["port_groups"][name]["vlan"]}, None) for name in removed}
    if refusals.removes_switch(current):
        pairs[SWITCH] = ({"mtu": switch["mtu"]}, None)
    plan = _plan(pairs)
    if reasons := list(refusals.in_use(current, spec, gone, removed)) if plan.changes else []:
        remedy = "move or delete these first"
        raise Refused(spec.cluster, f"remove its RDMA switch {spec.switch}", "; ".join(reasons), remedy)
    return Plan(before=plan.before, after=plan.after, warnings=tuple(refusals.left_behind(current, spec, gone)))


def removal(current: State, spec: FabricSpec) -> dict[str, object]:
    """Return what ``plan_absent`` removes, who besides virtual machines prevents it, and what stays for others."""
    gone, removed = _gone(current, spec), _removed_groups(current)
    return {
        "switch": refusals.removes_switch(current),
        "port_groups": removed,
        "in_use": list(refusals.hosts_in_use(current, spec, gone, removed)),
        "shared_with": current["others"]["hosts"] if current["switch"] and current["switch"]["ours"] else [],
    }


def _gone(current: State, spec: FabricSpec) -> dict[str, list[str]]:
    """Return the port groups of the adapters that this collection built, by host."""
    return {
        name: [group for group in net["built"]["adapters"] if vmkernel.devices_on_group(net, spec.switch, group)]
        for name, net in current["hosts"].items()
        if net["built"]
    }


def _removed_groups(current: State) -> list[str]:
    shared = current["others"]["port_groups"]
    return [name for name, group in current["port_groups"].items() if group["ours"] and name not in shared]


def host_done(net: State, spec: FabricSpec, name: str) -> bool:
    before, after = _host(net, spec, name)
    return bool(before == after)


def host_clear(net: State, spec: FabricSpec) -> bool:
    """Return whether a host no longer has any object that was built on it."""
    built = net["built"] or {"joined": False, "adapters": []}
    left = any(vmkernel.devices_on_group(net, spec.switch, group) for group in built["adapters"])
    return not left and not (built["joined"] and spec.switch in net["switches"])


def result_of(state: Mapping[str, object]) -> dict[str, object]:
    """Return a state of a plan, sorted for the result."""
    return {
        "switch": state.get(SWITCH),
        "port_groups": {key.removeprefix(GROUP): value for key, value in state.items() if key.startswith(GROUP)},
        "hosts": {key.removeprefix(HOST): value for key, value in state.items() if key.startswith(HOST)},
    }


def host_facts(net: State, switch: str) -> dict[str, object]:
    """Return the uplinks and adapters of a host on the switch, for the result."""
    there = net["switches"].get(switch, {"uplinks": []})
    shown_keys = ("port_group", "address", "netmask", "mtu", "services")
    adapters = {
        adapter["port_group"]: {"device": device, **{key: adapter[key] for key in shown_keys}}
        for device, adapter in net["vmkernel"].items()
        if adapter["switch"] == switch
    }
    other_facts = {key: net[key] for key in ("rdma", "built", "tagged")}
    return {"uplinks": there["uplinks"], "adapters": adapters, **other_facts}


def uplink_of(net: State, spec: FabricSpec) -> str | None:
    """Return the uplink card of a host: the named card, its current uplink, or its only free RDMA card."""
    if spec.uplink:
        return spec.uplink
    cards = refusals.rdma_cards(net)
    given = [card for card in cards if card in net["switches"].get(spec.switch, {"uplinks": []})["uplinks"]]
    free = [card for card in cards if not refusals.other_switch(net, card, spec.switch)]
    candidates = given if len(given) == 1 else free
    return candidates[0] if len(candidates) == 1 else None


def device_of(net: State, spec: FabricSpec, adapter: AdapterSpec) -> str | None:
    """Return the existing adapter for a desired one: the named device, or the adapter on the port group."""
    if adapter.device:
        return adapter.device if adapter.device in net["vmkernel"] else None
    devices = vmkernel.devices_on_group(net, spec.switch, adapter.port_group)
    return devices[0] if devices else None


def _host(net: State, spec: FabricSpec, name: str) -> tuple[Any, Any]:
    """Return the current and the desired uplink and adapters of a host."""
    new = vmkernel.next_devices(net)
    before: dict[str, Any] = {"uplinks": net["switches"].get(spec.switch, {"uplinks": []})["uplinks"], "adapters": {}}
    after: dict[str, Any] = {"uplinks": [uplink_of(net, spec)], "adapters": {}}
    for adapter in spec.adapters:
        device = device_of(net, spec, adapter)
        if device:
            before["adapters"][adapter.port_group] = _adapter(net, device, adapter)
        after["adapters"][adapter.port_group] = _desired_adapter(adapter, name, device or next(new))
    joined = spec.switch in net["switches"]
    return (before if joined or before["adapters"] else None), after


def _adapter(net: State, device: str, desired: AdapterSpec) -> dict[str, object]:
    """Return the managed settings of an existing adapter."""
    there = net["vmkernel"][device]
    state = {
        "device": device,
        "port_group": there["port_group"],
        "address": "dhcp" if there["dhcp"] else there["address"],
        "netmask": "" if there["dhcp"] else there["netmask"],
        "mtu": there["mtu"],
    }
    return state if desired.services is None else {**state, "services": there["services"]}


def _desired_adapter(adapter: AdapterSpec, host: str, device: str) -> dict[str, object]:
    state = {
        "device": device,
        "port_group": adapter.port_group,
        "address": "dhcp" if adapter.dhcp else adapter.addresses[host],
        "netmask": adapter.netmask,
        "mtu": adapter.mtu,
    }
    return state if adapter.services is None else {**state, "services": list(adapter.services)}


def _built(net: State, spec: FabricSpec, groups: Sequence[str]) -> dict[str, object]:
    """Return what plan_absent removes from a host: added adapters, and its membership if the collection added it."""
    uplinks = net["switches"].get(spec.switch, {"uplinks": []})["uplinks"] if net["built"]["joined"] else []
    return {
        "uplinks": uplinks,
        "adapters": {
            group: {"device": device, "address": net["vmkernel"][device]["address"]}
            for group in groups
            for device in vmkernel.devices_on_group(net, spec.switch, group)
        },
    }


def _plan(pairs: Mapping[str, tuple[object, object]]) -> Plan:
    return Plan(
        before={key: before for key, (before, _after) in pairs.items()},
        after={key: after for key, (_before, after) in pairs.items()},
    )


def _unmet(current: State, spec: FabricSpec, plan: Plan) -> Iterator[str]:
    """Yield the reasons against making the changes now."""
    if not plan.changes:
        return
    if current["switch"] and not current["switch"]["ours"] and not spec.adopt:
        keys = ", ".join(change.key for change in plan.changes)
        yield (
            f"switch {spec.switch} exists and was not built by this collection, and {keys} would change; "
            "set adopt: true to change it, or give the fabric another name"
        )
    yield from refusals.interrupted_machines(current, spec, plan)
    yield from refusals.stranded_adapters(current, spec, plan)
