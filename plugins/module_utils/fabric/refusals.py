"""The reasons for which a fabric cannot be built or removed, and the warnings, each with the names of its objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..plan import Plan
from . import vmkernel
from .fabric_spec import AdapterSpec, FabricSpec

State = Mapping[str, Any]
# A host that loses the adapter of such a service loses its storage, or its connection to vCenter.
VITAL = ("management", "nvmeRdma", "nvmeTcp", "vsan", "vsanWitness")


def reasons_against(current: State, spec: FabricSpec) -> Iterator[str]:
    """Yield all reasons why the fabric cannot be built."""
    yield from _names_taken(current, spec)
    for name, net in current["hosts"].items():
        yield from _bad_uplink(net, spec, name)
        for adapter in spec.adapters:
            yield from _bad_adapter(net, spec, adapter, name)
        yield from _misnamed(net, spec, name)
    yield from _addresses_taken(current, spec)
    for adapter in spec.adapters:
        for stranger in sorted(set(adapter.addresses) - set(current["hosts"])):
            yield f"{stranger}, which has an address on {adapter.port_group}, is not a host of cluster {spec.cluster}"


def rdma_cards(net: State) -> list[str]:
    """Return the cards of a host whose RDMA device supports RoCE; a device with an unknown protocol counts."""
    return [
        card
        for card, nic in net["uplinks"].items()
        if nic["rdma"] and net["rdma"].get(nic["rdma"], {}).get("roce") is not False
    ]


def other_switch(net: State, card: str, switch: str) -> str | None:
    """Return the other switch to which a card already belongs, if any."""
    return next((name for name, other in net["switches"].items() if name != switch and card in other["uplinks"]), None)


def in_use(
    current: State, spec: FabricSpec, gone: Mapping[str, Sequence[str]], removed: Sequence[str]
) -> Iterator[str]:
    """Yield the users of the objects to remove."""
    ours = removes_switch(current)
    for machine in current["machines"]:
        used = [group for group in machine["port_groups"] if ours or group in removed or machine["host"] in gone]
        if used:
            yield f"VM {machine['name']} is connected to {', '.join(used)}"
    yield from hosts_in_use(current, spec, gone, removed)


def removes_switch(current: State) -> bool:
    """Return whether the switch is removed: this collection built it, and no host of another cluster is on it."""
    return bool(current["switch"] and current["switch"]["ours"] and not current["others"]["hosts"])


def hosts_in_use(
    current: State, spec: FabricSpec, gone: Mapping[str, Sequence[str]], removed: Sequence[str]
) -> Iterator[str]:
    """Yield the hosts and their adapters that use the objects to remove."""
    ours = removes_switch(current)
    for name, author in current["notes_of_others"].items():
        yield f"the note of {name} was written by {author}: run as that account, or remove its adapters by hand"
    for name, net in current["hosts"].items():
        for device, adapter in net["vmkernel"].items():
            kept = adapter["port_group"] not in gone.get(name, [])
            if adapter["switch"] == spec.switch and kept and (ours or adapter["port_group"] in removed or name in gone):
                yield f"{device} of {name} is on {adapter['port_group']} and was not built by this collection"
        yield from _kept_adapters(net, spec, name, gone.get(name, []))
    if ours:
        strangers = [name for name in current["members"] if not (current["hosts"].get(name) or {}).get("built")]
        yield from (f"host {name} is on the switch and was not put there by this collection" for name in strangers)


def _kept_adapters(net: State, spec: FabricSpec, host: str, groups: Sequence[str]) -> Iterator[str]:
    """Yield the adapters on a port group where this collection built one that must not be removed."""
    for group in groups:
        devices = vmkernel.devices_on_group(net, spec.switch, group)
        if len(devices) > 1:
            yield f"{', '.join(devices)} of {host} are all on {group}, and this collection built only one of them"
        for device in devices:
            if vital := sorted(set(net["vmkernel"][device]["services"]) & set(VITAL)):
                yield f"{device} of {host} carries {', '.join(vital)}"


def left_behind(current: State, spec: FabricSpec, gone: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield warnings about objects that stay."""
    if current["switch"] and not current["switch"]["ours"]:
        yield f"switch {spec.switch} was not built by this collection and stays"
    elif hosts := current["others"]["hosts"]:
        yield f"switch {spec.switch} stays with its port groups: {', '.join(hosts)} of other clusters are on it"
    for name, groups in gone.items():
        net = current["hosts"][name]
        devices = [device for group in groups for device in vmkernel.devices_on_group(net, spec.switch, group)]
        if net["tagged"] in devices:
            yield f"{net['tagged']} of {name} is tagged for PVRDMA; esxi_pvrdma with state absent removes the tag"


def interrupted_machines(current: State, spec: FabricSpec, plan: Plan) -> Iterator[str]:
    """Yield the running virtual machines whose network, or whose RDMA connection, a change would break."""
    for change in plan.changes:
        if change.before is None:
            continue
        kind, _dot, name = change.key.partition(".")
        for machine in current["machines"]:
            hit = kind == "port_groups" and name in machine["port_groups"]
            moved = kind == "hosts" and machine["host"] == name and change.before["uplinks"] != change.after["uplinks"]
            if machine["on"] and (hit or (machine["rdma"] and (moved or kind == "switch"))):
                setting = {"switch": "MTU of", "hosts": "uplink of", "port_groups": "VLAN of"}[kind]
                yield f"{machine['name']} runs and uses the {setting} {name or spec.switch}: power it off first"


def stranded_adapters(current: State, spec: FabricSpec, plan: Plan) -> Iterator[str]:
    """Yield the other adapters on the switch whose host would lose an uplink, since PVRDMA works with one only."""
    groups = {adapter.port_group for adapter in spec.adapters}
    for change in plan.changes:
        kind, _dot, name = change.key.partition(".")
        if kind != "hosts" or change.before is None:
            continue
        lost = sorted(set(change.before["uplinks"]) - set(change.after["uplinks"]))
        there = current["hosts"][name]["vmkernel"].items()
        others = [device for device, one in there if one["switch"] == spec.switch and one["port_group"] not in groups]
        if lost and others:
            yield (
                f"{', '.join(others)} of {name} would lose the uplink {', '.join(lost)}: PVRDMA needs a switch with "
                "one uplink, so give the fabric another switch"
            )


def risks(current: State, spec: FabricSpec) -> Iterator[str]:
    """Yield warnings about settings that limit performance."""
    if spec.mtu < 9000:
        yield f"switch {spec.switch} gets MTU {spec.mtu}; RDMA needs 9000 for its largest packets"
    for name, net in current["hosts"].items():
        for card in _cards(net, spec):
            if not net["uplinks"][card]["link"]:
                yield f"{card} of {name} has no link: check its cable and its switch port"


def _cards(net: State, spec: FabricSpec) -> list[str]:
    return [spec.uplink] if spec.uplink else rdma_cards(net)


def _names_taken(current: State, spec: FabricSpec) -> Iterator[str]:
    for group in spec.port_groups:
        if group.name in current["taken"] and group.name not in current["port_groups"]:
            yield f"a network named {group.name} is already on {current['taken'][group.name]}"
        there = current["port_groups"].get(group.name)
        if there and there["vlan"] is None and group.vlan is None:
            yield f"port group {group.name} is a trunk or has a private VLAN; set its vlan"
    known = {group.name for group in spec.port_groups} | set(current["port_groups"])
    for adapter in spec.adapters:
        if adapter.port_group not in known:
            yield f"there is no port group {adapter.port_group} for an adapter; name it in port_groups"
    if spec.switch in current["taken"]:
        yield f"a network named {spec.switch} is already on {current['taken'][spec.switch]}"


def _bad_uplink(net: State, spec: FabricSpec, host: str) -> Iterator[str]:
    """Yield the reasons why a host cannot connect its RDMA card to the switch."""
    cards = rdma_cards(net)
    have = f"its RDMA cards: {', '.join(cards) or 'none'}"
    if spec.uplink and spec.uplink not in net["uplinks"]:
        yield f"{host} has no card {spec.uplink} ({have})"
        return
    if spec.uplink and spec.uplink not in cards:
        yield f"{spec.uplink} of {host} has no RDMA device that supports RoCE ({have})"
        return
    if not cards:
        yield f"{host} has no RDMA card that supports RoCE, or its RDMA driver is not loaded"
        return
    usable = [spec.uplink] if spec.uplink else cards
    used = {card: other for card in usable if (other := other_switch(net, card, spec.switch))}
    if len(used) == len(usable):
        yield from (f"{card} of {host} is an uplink of switch {other}" for card, other in used.items())
        return
    own = net["switches"].get(spec.switch, {"uplinks": []})["uplinks"]
    if not spec.uplink and len(usable) - len(used) > 1 and len([card for card in usable if card in own]) != 1:
        yield f"{host} has several RDMA cards: {', '.join(cards)}; name the one to use as uplink"
    if net["switches"].get(spec.switch, {}).get("kind", "distributed") != "distributed":
        yield f"{spec.switch} of {host} is a standard switch; PVRDMA works over a distributed switch only"


def _bad_adapter(net: State, spec: FabricSpec, adapter: AdapterSpec, host: str) -> Iterator[str]:
    if not adapter.dhcp and host not in adapter.addresses:
        yield f"{host} has no address on {adapter.port_group}; add it to addresses"
    there = vmkernel.devices_on_group(net, spec.switch, adapter.port_group)
    if not adapter.device and len(there) > 1:
        yield f"{', '.join(there)} of {host} are all on {adapter.port_group}; name the device"
    if adapter.device in net["vmkernel"]:
        current_switch = net["vmkernel"][adapter.device]["switch"]
        if current_switch != spec.switch:
            yield f"{adapter.device} of {host} is on switch {current_switch}, not on {spec.switch}"


def _misnamed(net: State, spec: FabricSpec, host: str) -> Iterator[str]:
    """Yield the adapters that cannot get their names, because ESXi gives a new adapter the lowest free number."""
    new = vmkernel.next_devices(net)
    for adapter in spec.adapters:
        if adapter.device in net["vmkernel"]:
            continue
        if adapter.device is None and vmkernel.devices_on_group(net, spec.switch, adapter.port_group):
            continue
        name = next(new)  # pylint: disable=stop-iteration-return # the host's names do not end
        if adapter.device and adapter.device != name:
            text = f"the adapter on {adapter.port_group} of {host} cannot be {adapter.device}"
            yield f"{text}: the host would name it {name}"


def _addresses_taken(current: State, spec: FabricSpec) -> Iterator[str]:
    """Yield the addresses that another adapter of the cluster already has."""
    own = {(host, address) for desired in spec.adapters for host, address in desired.addresses.items()}
    for host, address in sorted(own):
        for name, net in current["hosts"].items():
            for device, adapter in net["vmkernel"].items():
                ours = name == host and _is_meant(net, spec, device, address)
                if adapter["address"] == address and not ours and not _leaves(spec, name, device, net, address):
                    yield f"{address} for {host} is taken by {device} of {name}"


def _is_meant(net: State, spec: FabricSpec, device: str, address: str) -> bool:
    """Return whether the device is the adapter that the plan assigns the address to."""
    adapter = net["vmkernel"][device]
    return any(
        address in desired.addresses.values()
        and (
            device == desired.device or (adapter["switch"], adapter["port_group"]) == (spec.switch, desired.port_group)
        )
        for desired in spec.adapters
    )


def _leaves(spec: FabricSpec, host: str, device: str, net: State, address: str) -> bool:
    """Return whether this plan gives another address to the adapter that has this one."""
    adapter = net["vmkernel"][device]
    return any(
        (adapter["switch"], adapter["port_group"]) == (spec.switch, desired.port_group)
        and desired.addresses.get(host, address) != address
        for desired in spec.adapters
    )
