# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Everything the collection can read of hosts, as plain data, put together from what each subject reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from ..errors import CollectionError
from ..logic.hosts import roce as roce_logic
from ..vsphere.fleet import Fleet, Host
from . import boot, graphics, kernel_module, management, network, pvrdma, rdma_users, roce, vib

ALL = "all"
OPTIONS: dict[str, Any] = {
    "gather": {
        "type": "list",
        "elements": "str",
        "choices": [ALL, "gpu", "rdma", "network", "vib", "driver", "pvrdma", "management"],
        "default": [ALL],
    },
    "fail_unreachable": {"type": "bool", "default": True},
}
# So many hosts are read in one go and then forgotten, which bounds the memory that a large cluster takes.
BATCH = 64
PARALLEL = 16

Entry = dict[str, Any]


class Reading:
    """One host as it is read, with what several groups look at."""

    def __init__(self, host: Host) -> None:
        self.host = host

    @cached_property
    def net(self) -> dict[str, Any]:
        """The network."""
        return network.read(self.host)

    @cached_property
    def numa(self) -> dict[str, int]:
        """The NUMA node of each PCI device, where the host tells."""
        nodes = self.host["hardware.numaInfo.numaNode"] or []
        return {_address(text): int(node.typeId) for node in nodes for text in node.pciId or []}


@dataclass(frozen=True)
class Group:
    """A part of the whole: the properties it looks at, and how it is read."""

    paths: tuple[str, ...]
    read: Callable[[Reading], Entry]


def gather(fleet: Fleet, names: Sequence[str]) -> list[Entry]:
    """An entry for each host; one that cannot be read has ``failed`` and ``msg`` instead of its groups."""
    entries: list[Entry] = []
    places: dict[str, management.Place] = {}
    for start in range(0, len(fleet.hosts), BATCH):
        batch = fleet.hosts[start : start + BATCH]
        fleet.refresh(batch)
        with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
            entries += pool.map(partial(_entry, names=names), batch)
        for host in batch:
            places[host.name] = management.Place(host.ref, host["parent"])
            host.properties = {}
    managed = management.of(fleet.session, places) if _wants(names, "management") else {}
    return [{**entry, **managed.get(entry["host"], {})} for entry in entries]


def paths(names: Sequence[str]) -> tuple[str, ...]:
    """The properties that the groups look at, each once."""
    chosen = [path for group in _chosen(names) for path in group.paths]
    return tuple(dict.fromkeys((*_SYSTEM, *boot.PATHS, *management.PATHS, *chosen)))


def result(entries: Sequence[Entry], *, fail_unreachable: bool) -> dict[str, Any]:
    """What the module answers: every host, and a failure where one could not be read."""
    lost = [one["host"] for one in entries if not one["reachable"]]
    bad = [one["msg"] for one in entries if one.get("failed") and (one["reachable"] or fail_unreachable)]
    answer = {"changed": False, "hosts": list(entries), "unreachable_hosts": lost}
    return {**answer, "failed": True, "msg": " | ".join(bad)} if bad else answer


def _wants(names: Sequence[str], group: str) -> bool:
    return ALL in names or group in names


def _chosen(names: Sequence[str]) -> list[Group]:
    return [group for name, group in GROUPS.items() if _wants(names, name)]


def _entry(host: Host, names: Sequence[str]) -> Entry:
    entry = _system(host)
    reading = Reading(host)
    try:
        host.must_answer("read it")
        for group in _chosen(names):
            entry.update(group.read(reading))
    except CollectionError as error:
        return {**entry, "failed": True, "msg": str(error)}
    owed = list(_reboot_owed(host, entry))
    return {**entry, "reboot_owed": bool(owed), "reboot_why": owed}


_SYSTEM = (
    "config.product.version",
    "config.product.build",
    "summary.hardware.vendor",
    "summary.hardware.model",
)
_NUMA = "hardware.numaInfo.numaNode"


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
    }


def _gpu(reading: Reading) -> Entry:
    found = graphics.facts(reading.host)
    facts = {key: value for key, value in found.items() if key not in ("version", "in_maintenance")}
    per_gpu = {"type": "types", "active_type": "active_types", "mode": "modes", "active_mode": "active_modes"}
    gpus = [
        {
            "address": address,
            **gpu,
            **{ours: facts[theirs].get(address) for ours, theirs in per_gpu.items()},
            "numa_node": reading.numa.get(_address(address)),
        }
        for address, gpu in facts["gpus"].items()
    ]
    return {"gpus": gpus, "graphics": facts}


def _rdma(reading: Reading) -> Entry:
    devices = [_rdma_device(reading, name, device) for name, device in reading.net["rdma"].items()]
    return {"rdma_devices": devices, "rdma_users": rdma_users.users(reading.host, reading.net)}


def _rdma_device(reading: Reading, name: str, device: Mapping[str, Any]) -> Entry:
    uplink = device["uplink"]
    card = reading.net["uplinks"].get(uplink, {})
    knows_pfc = card.get("driver") in roce_logic.OURS
    return {
        "device": name,
        **device,
        "numa_node": reading.numa.get(_address(card.get("pci") or "")),
        "pfc": roce.flow_control(reading.host, uplink) if knows_pfc else None,
        "counters": network.rdma_counters(reading.host, name),
        "uplink_counters": network.uplink_counters(reading.host, uplink) if card else {},
    }


def _network(reading: Reading) -> Entry:
    net = reading.net
    uplinks = _listed("device", net["uplinks"])
    for card in uplinks:
        card["switch"] = network.switch_with(net, card["device"])
        card["numa_node"] = reading.numa.get(_address(card["pci"] or ""))
    switches, adapters = _listed("name", net["switches"]), _listed("device", net["vmkernel"])
    return {"uplinks": uplinks, "switches": switches, "vmkernel": adapters}


def _vib(reading: Reading) -> Entry:
    return {"vibs": vib.facts(reading.host)}


def _driver(reading: Reading) -> Entry:
    drivers = {card["driver"] for card in reading.net["uplinks"].values()}
    ours = {module for driver in drivers for module in roce_logic.OURS.get(driver, ())}
    return {"kernel_modules": kernel_module.facts(reading.host, {*drivers, *ours, "nvidia"})}


def _pvrdma(reading: Reading) -> Entry:
    return {"pvrdma": pvrdma.facts(reading.host)}


GROUPS: dict[str, Group] = {
    "gpu": Group((*graphics.PATHS, _NUMA), _gpu),
    "rdma": Group((*network.PATHS, *rdma_users.PATHS, _NUMA), _rdma),
    "network": Group((*network.PATHS, _NUMA), _network),
    "vib": Group(vib.PATHS, _vib),
    "driver": Group((*network.PATHS, *kernel_module.PATHS), _driver),
    "pvrdma": Group(pvrdma.SETTLED, _pvrdma),
}


def _reboot_owed(host: Host, entry: Entry) -> Iterator[str]:
    """Why a host must boot until all that is configured is in use, as far as its groups were read."""
    if boot.reboot_owed(host):
        yield "the host asks for it"
    waiting = [*_waiting_options(entry), *_waiting_vibs(entry), *_waiting_gpus(entry)]
    yield from (f"{what} waits for it" for what in waiting)


def _waiting_options(entry: Entry) -> list[str]:
    modules = entry.get("kernel_modules", {})
    return [f"kernel module {name}" for name, one in modules.items() if one["options"] != one["active"]]


def _waiting_vibs(entry: Entry) -> list[str]:
    vibs = entry.get("vibs", {})
    running = {one["name"]: one["version"] for one in vibs.get("running", [])}
    pending = [one for one in vibs.get("pending", []) if running.get(one["name"]) != one["version"]]
    return [f"VIB {one['name']} {one['version']}" for one in pending]


def _waiting_gpus(entry: Entry) -> Iterator[str]:
    for gpu in entry.get("gpus", []):
        name = f"{gpu['name']} at {gpu['address']}"
        if gpu["passthrough"] == "pending":
            yield f"the passthrough of {name}"
        elif {gpu["type"], gpu["active_type"]} == {*graphics.TYPES}:
            yield f"the graphics type of {name}"


def _listed(key: str, by_name: Mapping[str, Mapping[str, Any]]) -> list[Entry]:
    return [{key: name, **facts} for name, facts in by_name.items()]


def _address(text: str) -> str:
    """A PCI address with its domain, which NUMA nodes may leave out."""
    lower = text.lower()
    return f"0000:{lower}" if lower.count(":") == 1 else lower
