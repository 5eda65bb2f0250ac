# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""What a teardown takes away, in its order and in words, and what stands in its way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Data = Mapping[str, Any]


def plan(read: Data) -> dict[str, Any]:
    """What goes, from what was read: workers, RDMA fabric, shared settings, and what only serves our own bookkeeping.

    ``read`` holds ``workers`` (a result of worker_vm_info), ``fabric`` (of rdma_fabric_info), ``rules``, ``attributes``
    and ``lock`` (of worker_rules, custom_attributes and cluster_lock in check mode); ``switch``, the name of the RDMA
    switch; ``record``, the file with old values of shared settings, and ``evidence``, the file with the old state of
    the hosts, each empty where there is none.
    """
    built = [one["name"] for one in read["workers"]["workers"] if one["vm_built"]]
    fabric = read["fabric"]["fabric"]
    found: dict[str, Any] = {
        "rules": read["rules"]["changed"],
        "delete": sorted([*built, *read["workers"]["unfinished"]]),
        "let_go": [one["name"] for one in read["workers"]["workers"] if not one["vm_built"]],
        "untag": _tagged(fabric),
        "fabric": _is_built(fabric),
        "hosts": read["evidence"],
        "settings": read["record"],
        "switch": read["switch"],
        "traces": [name for name in ("attributes", "lock") if read[name]["changed"]],
    }
    obstacles = list(_obstacles(fabric, found["delete"]))
    return {**found, "lines": list(_lines(found, read["switch"], fabric)), "obstacles": obstacles}


def _is_built(fabric: Data) -> bool:
    hosts, groups = fabric["hosts"].values(), fabric["port_groups"].values()
    ours = bool(fabric["switch"] and fabric["switch"]["ours"])
    return ours or any(one["ours"] for one in groups) or any(one["built"] for one in hosts)


def _adapters(fabric: Data) -> dict[str, list[str]]:
    """The vmkernel adapters that were built, by host."""
    built = {
        name: [one["adapters"][group]["device"] for group in one["built"]["adapters"] if group in one["adapters"]]
        for name, one in fabric["hosts"].items()
        if one["built"]
    }
    return {name: devices for name, devices in built.items() if devices}


def _tagged(fabric: Data) -> list[str]:
    """The hosts whose tag for PVRDMA is on an adapter that goes."""
    return [name for name, devices in _adapters(fabric).items() if fabric["hosts"][name]["tagged"] in devices]


def _lines(found: Data, switch: str, fabric: Data) -> Iterator[str]:
    words = {"attributes": "the custom attributes that nothing carries", "lock": "the folder of the cluster's lock"}
    sentences = (
        (found["rules"], "take away the rules and overrides of the workers"),
        (found["delete"], f"delete {', '.join(found['delete'])} with their disks"),
        (found["let_go"], f"take the mark off {', '.join(found['let_go'])}, which were taken over and stay"),
        (found["hosts"], f"set the hosts back to {found['hosts']}"),
        (found["untag"], f"take the tag for PVRDMA off {', '.join(found['untag'])}"),
        (found["fabric"], f"take away {', '.join(_parts(switch, fabric))}"),
        (found["settings"], f"restore the settings that others share from {found['settings']}"),
        (found["traces"], f"remove {' and '.join(words[name] for name in found['traces'])}"),
    )
    yield from (text for there, text in sentences if there)


def _parts(switch: str, fabric: Data) -> Iterator[str]:
    groups = [name for name, one in fabric["port_groups"].items() if one["ours"]]
    by_devices: dict[str, list[str]] = {}
    for name, devices in _adapters(fabric).items():
        by_devices.setdefault(", ".join(devices), []).append(name)
    if fabric["switch"] and fabric["switch"]["ours"]:
        yield f"the switch {switch}"
    if groups:
        yield f"the port groups {', '.join(groups)}"
    for names, hosts in by_devices.items():
        yield f"{names} of {', '.join(hosts)}"
    noted = [name for name, one in fabric["hosts"].items() if one["built"]]
    if noted and not by_devices:
        yield f"what is left of the switch {switch} on {', '.join(noted)}"


def _obstacles(fabric: Data, deleted: Sequence[str]) -> Iterator[str]:
    """Who uses what would go and is not ours."""
    whole = bool(fabric["switch"] and fabric["switch"]["ours"])
    going = {name for name, one in fabric["port_groups"].items() if one["ours"]}
    for machine in fabric["machines"]:
        used = [group for group in machine["port_groups"] if whole or group in going]
        if used and machine["name"] not in deleted:
            yield f"{machine['name']} stays and is connected to {', '.join(used)}"
    for name, one in fabric["hosts"].items():
        built = (one["built"] or {"adapters": []})["adapters"]
        for group, adapter in one["adapters"].items():
            if group not in built and (whole or group in going):
                yield f"{adapter['device']} of {name} is on {group} and was not built by this collection"
