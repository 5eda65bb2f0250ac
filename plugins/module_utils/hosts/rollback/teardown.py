# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The plan of a teardown: what goes, in its order and as lines to show, and what prevents that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Data = Mapping[str, Any]
NOTHING = "nothing here was built by this collection"


def plan(read: Data) -> dict[str, Any]:
    """The plan from what was read of a cluster.

    ``read`` holds ``cluster``; ``workers`` and ``unfinished``, as worker_vm_info returns them; ``fabric``, as
    rdma_fabric_info returns it; ``due``, whether ``rules``, ``attributes`` and ``lock`` are there to be removed;
    ``switch``, the name of the RDMA switch; ``record``, the file with old values of shared settings in ``record_dir``,
    and ``evidence``, the file with the old state of the hosts, each empty where there is none.
    """
    fabric, due = read["fabric"], read["due"]
    found: dict[str, Any] = {
        "rules": due["rules"],
        "delete": sorted([*(one["name"] for one in read["workers"] if one["vm_built"]), *read["unfinished"]]),
        "unmark": [one["name"] for one in read["workers"] if not one["vm_built"]],
        "untag": _tagged(fabric),
        "fabric": _is_built(fabric),
        "hosts": read["evidence"],
        "settings": read["record"],
        "record_dir": read["record_dir"],
        "switch": read["switch"],
        "traces": [name for name in ("attributes", "lock") if due[name]],
    }
    shown = {one["name"]: one["vm_name"] for one in read["workers"]}
    lines = list(_lines(found, read["switch"], fabric, shown))
    obstacles = list(_obstacles(fabric, [shown.get(name, name) for name in found["delete"]]))
    return {
        **found,
        "lines": lines or [NOTHING],
        "any": bool(lines),
        **_sentences(read["cluster"], found, lines, obstacles),
    }


def _sentences(cluster: str, found: Data, lines: Sequence[str], obstacles: Sequence[str]) -> dict[str, str]:
    """The errors with which a teardown ends, each empty where it does not apply."""
    going = "; ".join(lines)
    # That hosts are to be restored is asked for by the user; it is nothing that was found.
    left = "; ".join(line for line in lines if line != _restoring(found))
    refused = (
        f"could not remove what was built: {'; '.join(obstacles)}; connect or move that elsewhere, nothing was changed"
    )
    unconfirmed = f"nothing was removed, because the removal is not confirmed: -e confirm=true would {going}"
    return {
        "refused": f"{cluster}: {refused}" if obstacles else "",
        "unconfirmed": f"{cluster}: {unconfirmed}",
        "left": f"{cluster}: could not remove everything: it is still to do: {left}; run again" if left else "",
    }


def _restoring(found: Data) -> str:
    return f"restore the hosts from {found['hosts']}"


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


def _named(names: Sequence[str], shown: Mapping[str, str]) -> str:
    """The workers, a renamed one with the name that vCenter shows."""
    renamed = {name: f"{name} (renamed to {shown[name]})" for name in names if shown.get(name, name) != name}
    return ", ".join(renamed.get(name, name) for name in names)


def _lines(found: Data, switch: str, fabric: Data, shown: Mapping[str, str]) -> Iterator[str]:
    words = {"attributes": "the custom attributes that no object carries", "lock": "the folder of the cluster's lock"}
    sentences = (
        (found["rules"], "remove the rules and overrides of the workers"),
        (found["delete"], f"delete {_named(found['delete'], shown)} with their disks"),
        (found["unmark"], f"remove the mark from {_named(found['unmark'], shown)}, which were adopted and stay"),
        (found["hosts"], _restoring(found)),
        (found["untag"], f"remove the tag for PVRDMA from {', '.join(found['untag'])}"),
        (found["fabric"], f"remove {', '.join(_parts(switch, fabric))}"),
        (found["settings"], f"restore the shared settings from {found['settings']}"),
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
        yield f"the rest of the switch {switch} on {', '.join(noted)}"


def _obstacles(fabric: Data, deleted: Sequence[str]) -> Iterator[str]:
    """The virtual machines and adapters of others on the network that would go."""
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
