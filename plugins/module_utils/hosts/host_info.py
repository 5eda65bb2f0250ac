"""The data that the collection reads from hosts, assembled from the groups of the parts."""

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
from .profile_parts import PARTS
from .reading import NUMA, UUID, Entry, Group, Reading

# The hosts of a batch are read together and then released, which limits the memory for a large cluster.
BATCH = 64
PARALLEL = 16
Profiles = Mapping[str, Mapping[str, Any]]  # the profile of each host, for settings that are read only by name


def gather(hosts: HostSet, names: Sequence[str], requested: Profiles | None = None) -> list[Entry]:
    """Return an entry for each host; a host that cannot be read has ``failed`` and ``msg`` instead of its groups."""
    entries: list[Entry] = []
    refs: dict[str, management.HostRefs] = {}
    for start in range(0, len(hosts.hosts), BATCH):
        batch = hosts.hosts[start : start + BATCH]
        hosts.refresh(batch)
        with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
            entries += pool.map(partial(_entry, names=names, requested=requested or {}), batch)
        for host in batch:
            refs[host.name] = management.HostRefs(host.ref, host["parent"])
            host.properties = {}
    managed = management.managers_of(hosts.session, refs) if _wants(names, "management") else {}
    return [{**entry, **managed.get(entry["host"], {})} for entry in entries]


def paths(names: Sequence[str], profiles: Sequence[Mapping[str, object]] = ()) -> tuple[str, ...]:
    """Return, each once, the properties that the groups and these profiles read."""
    chosen = [path for group in _chosen(names) for path in group.paths]
    chosen += [path for group in _chosen(names) for profile in profiles for path in group.paths_of(profile)]
    return tuple(dict.fromkeys((*_SYSTEM, *boot.PATHS, *management.PATHS, *chosen)))


def result(entries: Sequence[Entry], *, fail_unreachable: bool) -> dict[str, Any]:
    """Return the result of the module: every host, and a failure if a host could not be read."""
    unreachable = [entry["host"] for entry in entries if not entry["reachable"]]
    errors = [entry["msg"] for entry in entries if entry.get("failed") and (entry["reachable"] or fail_unreachable)]
    answer = {"changed": False, "hosts": list(entries), "unreachable_hosts": unreachable}
    return {**answer, "failed": True, "msg": " | ".join(errors)} if errors else answer


def _wants(names: Sequence[str], group: str) -> bool:
    return ALL in names or group in names


def _chosen(names: Sequence[str]) -> list[Group]:
    return [group for name, group in GROUPS.items() if _wants(names, name)]


def _entry(host: Host, names: Sequence[str], requested: Profiles) -> Entry:
    entry = _system(host)
    reading = Reading(host, requested.get(host.name, {}))
    try:
        host.must_answer("read it")
        for group in _chosen(names):
            entry.update(group.read(reading))
    except CollectionError as error:
        return {**entry, "failed": True, "msg": str(error)}
    reasons = list(_reboot_reasons(host, entry, names))
    return {**entry, "reboot_owed": bool(reasons), "reboot_why": reasons}


_SYSTEM = ("config.product.version", "config.product.build", "summary.hardware.vendor", "summary.hardware.model", UUID)


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
    """Return every group by name: those of the parts, in the order of the parts, and the network, which has no part."""
    groups = [group for part in PARTS for group in part.groups]
    shows = "uplinks, switches and vmkernel adapters"
    return {group.name: group for group in (*groups, Group("network", shows, (*network.PATHS, NUMA), _network))}


def _reboot_reasons(host: Host, entry: Entry, names: Sequence[str]) -> Iterator[str]:
    """Yield the reasons why the host must boot for its configuration to take effect, from the groups that were read."""
    if boot.reboot_due(host):
        yield "the host requests it"
    for group in _chosen(names):
        yield from (f"{setting} waits for it" for setting in group.waiting(entry))


def _listed(key: str, by_name: Mapping[str, Mapping[str, object]]) -> list[Entry]:
    return [{key: name, **facts} for name, facts in by_name.items()]


ALL, MANAGEMENT = "all", "management"
GROUPS = _groups()
OPTIONS: dict[str, Any] = {
    "gather": {"type": "list", "elements": "str", "choices": [ALL, *GROUPS, MANAGEMENT], "default": [ALL]},
    "fail_unreachable": {"type": "bool", "default": True},
}
