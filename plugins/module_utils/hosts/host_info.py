# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""All that the collection reads of hosts, as plain data, put together from the groups of the parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from ..errors import CollectionError
from ..maintenance import boot
from ..vsphere.inventory import Host, HostSet
from . import management, network
from .pci_address import with_domain
from .reading import NUMA, UUID, Entry, Group, Reading
from .registry import PARTS

# So many hosts are read in one go and then forgotten, which bounds the memory that a large cluster takes.
BATCH = 64
PARALLEL = 16
Profiles = Mapping[str, Mapping[str, Any]]  # the profile of each host, for subjects that are read by name alone


def gather(fleet: HostSet, names: Sequence[str], asked: Profiles | None = None) -> list[Entry]:
    """An entry for each host; one that cannot be read has ``failed`` and ``msg`` instead of its groups."""
    entries: list[Entry] = []
    places: dict[str, management.HostRefs] = {}
    for start in range(0, len(fleet.hosts), BATCH):
        batch = fleet.hosts[start : start + BATCH]
        fleet.refresh(batch)
        with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
            entries += pool.map(partial(_entry, names=names, asked=asked or {}), batch)
        for host in batch:
            places[host.name] = management.HostRefs(host.ref, host["parent"])
            host.properties = {}
    managed = management.managers_of(fleet.session, places) if _wants(names, "management") else {}
    return [{**entry, **managed.get(entry["host"], {})} for entry in entries]


def paths(names: Sequence[str], profiles: Sequence[Mapping[str, Any]] = ()) -> tuple[str, ...]:
    """The properties that the groups read, also for these profiles, each once."""
    chosen = [path for group in _chosen(names) for path in group.paths]
    chosen += [path for group in _chosen(names) for profile in profiles for path in group.paths_of(profile)]
    return tuple(dict.fromkeys((*_SYSTEM, *boot.PATHS, *management.PATHS, *chosen)))


def result(entries: Sequence[Entry], *, fail_unreachable: bool) -> dict[str, Any]:
    """The result of the module: every host, and a failure where one could not be read."""
    lost = [one["host"] for one in entries if not one["reachable"]]
    bad = [one["msg"] for one in entries if one.get("failed") and (one["reachable"] or fail_unreachable)]
    answer = {"changed": False, "hosts": list(entries), "unreachable_hosts": lost}
    return {**answer, "failed": True, "msg": " | ".join(bad)} if bad else answer


def _wants(names: Sequence[str], group: str) -> bool:
    return ALL in names or group in names


def _chosen(names: Sequence[str]) -> list[Group]:
    return [group for name, group in GROUPS.items() if _wants(names, name)]


def _entry(host: Host, names: Sequence[str], asked: Profiles) -> Entry:
    entry = _system(host)
    reading = Reading(host, asked.get(host.name, {}))
    try:
        host.must_answer("read it")
        for group in _chosen(names):
            entry.update(group.read(reading))
    except CollectionError as error:
        return {**entry, "failed": True, "msg": str(error)}
    owed = list(_reboot_owed(host, entry, names))
    return {**entry, "reboot_owed": bool(owed), "reboot_why": owed}


_SYSTEM = (
    "config.product.version",
    "config.product.build",
    "summary.hardware.vendor",
    "summary.hardware.model",
    UUID,
)


def _system(host: Host) -> Entry:
    return {
        "host": host.name,
        "connection": host["runtime.connectionState"],
        "reachable": host.reachable,
        "in_maintenance": host.in_maintenance,
        "boot_time": host.boot_time,
        "version": host["config.product.version"],
        "build": host["config.product.build"],
        "vendor": host["summary.hardware.vendor"],
        "model": host["summary.hardware.model"],
        "uuid": host[UUID],
    }


def _network(reading: Reading) -> Entry:
    net = reading.net
    uplinks = _listed("device", net["uplinks"])
    for card in uplinks:
        card["switch"] = network.switch_with(net, card["device"])
        card["numa_node"] = reading.numa.get(with_domain(card["pci"] or ""))
    switches, adapters = _listed("name", net["switches"]), _listed("device", net["vmkernel"])
    return {"uplinks": uplinks, "switches": switches, "vmkernel": adapters}


def _groups() -> dict[str, Group]:
    """Every group by name: those of the parts, in the order of the parts, and the network, which no part owns."""
    found = [group for part in PARTS for group in part.groups]
    calls = (network.RDMA_DEVICES,)
    shows = "uplinks, switches and vmkernel adapters"
    return {group.name: group for group in (*found, Group("network", shows, (*network.PATHS, NUMA), _network, calls))}


def _reboot_owed(host: Host, entry: Entry, names: Sequence[str]) -> Iterator[str]:
    """Why a host must boot until all that is configured is in use, as far as its groups were read."""
    if boot.reboot_owed(host):
        yield "the host asks for it"
    for group in _chosen(names):
        yield from (f"{what} waits for it" for what in group.waiting(entry))


def _listed(key: str, by_name: Mapping[str, Mapping[str, Any]]) -> list[Entry]:
    return [{key: name, **facts} for name, facts in by_name.items()]


ALL, MANAGEMENT = "all", "management"
GROUPS = _groups()
OPTIONS: dict[str, Any] = {
    "gather": {"type": "list", "elements": "str", "choices": [ALL, *GROUPS, MANAGEMENT], "default": [ALL]},
    "fail_unreachable": {"type": "bool", "default": True},
}
