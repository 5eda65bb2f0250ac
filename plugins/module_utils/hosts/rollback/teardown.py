"""The plan of a teardown: the objects to remove, in order and as lines to show, and the obstacles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...core.findings import listed

Data = Mapping[str, Any]
NOTHING = "nothing here was built by this collection"


def plan(read: Data) -> dict[str, Any]:
    """Return the plan for the state of a cluster.

    ``read`` contains ``cluster``; ``workers`` and ``unfinished``, as worker_vm_info returns them; ``fabric`` and
    ``out_of_service``, as cluster_info returns them; ``rules``, the sets of rules and overrides that exist; ``due``,
    whether ``attributes`` and ``lock`` exist and must be removed; ``switch``, the name of the RDMA switch; ``record``,
    the file with old values of shared settings in ``record_dir``, and ``evidence``, the file with the old state of the
    hosts, each empty if there is no such file.
    """
    removals = _removals(read)
    vm_names = {vm["name"]: vm["vm_name"] for vm in read["workers"]}
    lines = list(_lines(removals, read["switch"], read["fabric"], vm_names))
    obstacles = list(_obstacles(read["fabric"], [vm_names.get(name, name) for name in removals["delete"]]))
    out = [host["host"] for host in read["out_of_service"] if host["ours"]]
    return {
        **removals,
        "workers": [{"name": name} for name in (*removals["delete"], *removals["unmark"])],
        "lines": lines or [NOTHING],
        "any": bool(lines),
        **_errors(read["cluster"], removals, lines, out),
        "refused": _refusal(read["cluster"], obstacles, [] if removals["hosts"] else out),
    }


def _removals(read: Data) -> dict[str, Any]:
    fabric, due, built = read["fabric"], read["due"], [vm for vm in read["workers"] if vm["vm_built"]]
    return {
        "rules": read["rules"],
        "delete": sorted([*(vm["name"] for vm in built), *read["unfinished"]]),
        "keep": [f"{file} of {vm['name']}" for vm in built for file in vm["vm_foreign_disks"]],
        "unmark": [vm["name"] for vm in read["workers"] if not vm["vm_built"]],
        "untag": _tagged(fabric),
        "fabric": _is_built(fabric),
        "hosts": read["evidence"],
        "settings": read["record"],
        "record_dir": read["record_dir"],
        "switch": read["switch"],
        "traces": [name for name in ("attributes", "lock") if due[name]],
    }


def _refusal(cluster: str, obstacles: Sequence[str], out: Sequence[str]) -> str:
    """Return why nothing is removed; empty if nothing prevents it. Evidence returns ``out`` to service."""
    remedies = ["connect or move that elsewhere"] if obstacles else []
    remedies += ["finish that with dml.vsphere.hosts, or restore the hosts with rollback_evidence"] if out else []
    reasons = "; ".join([*obstacles, *_out(out)])
    return (
        f"{cluster}: could not remove what was built: {reasons}; {'; '.join(remedies)}, nothing was changed"
        if reasons
        else ""
    )


def _out(hosts: Sequence[str]) -> list[str]:
    return [f"an unfinished change left {listed(hosts)} out of service"] if hosts else []


def _errors(cluster: str, removals: Data, lines: Sequence[str], out: Sequence[str]) -> dict[str, str]:
    """Return the errors that can end a teardown, each empty if it does not apply."""
    planned = "; ".join(lines)
    # The user requests the restoration of hosts; it is not an object that remains.
    left = "; ".join([*(line for line in lines if line != _restoring(removals)), *_out(out)])
    unconfirmed = f"nothing was removed, because the removal is not confirmed: -e confirm=true would {planned}"
    return {
        "unconfirmed": f"{cluster}: {unconfirmed}",
        "left": f"{cluster}: could not remove everything; remaining: {left}; run again" if left else "",
    }


def _restoring(removals: Data) -> str:
    return f"restore the hosts from {removals['hosts']}"


def _is_built(fabric: Data) -> bool:
    removal = fabric["removal"]
    return bool(removal["switch"] or removal["port_groups"] or any(host["built"] for host in fabric["hosts"].values()))


def _adapters(fabric: Data) -> dict[str, list[str]]:
    """Return the vmkernel adapters that the collection built, by host."""
    built = {
        name: [host["adapters"][group]["device"] for group in host["built"]["adapters"] if group in host["adapters"]]
        for name, host in fabric["hosts"].items()
        if host["built"]
    }
    return {name: devices for name, devices in built.items() if devices}


def _tagged(fabric: Data) -> list[str]:
    """Return the hosts whose PVRDMA tag is on an adapter that is removed."""
    return [name for name, devices in _adapters(fabric).items() if fabric["hosts"][name]["tagged"] in devices]


def _listed(names: Sequence[str], vm_names: Mapping[str, str]) -> str:
    """Return the list of workers; for a renamed worker, add the name that vCenter shows."""
    renamed = {name: f"{name} (renamed to {vm_names[name]})" for name in names if vm_names.get(name, name) != name}
    return ", ".join(renamed.get(name, name) for name in names)


def _lines(removals: Data, switch: str, fabric: Data, vm_names: Mapping[str, str]) -> Iterator[str]:
    words = {"attributes": "the custom attributes that no object carries", "lock": "the folder of the cluster's lock"}
    adopted, shared = _listed(removals["unmark"], vm_names), fabric["removal"]["shared_with"]
    sentences = (
        (removals["rules"], "remove the rules and overrides of the workers"),
        (removals["delete"], f"delete {_listed(removals['delete'], vm_names)} with their disks"),
        (removals["keep"], f"detach and keep {', '.join(removals['keep'])}, which this collection did not create"),
        (removals["unmark"], f"remove the mark from {adopted}, which were adopted and stay"),
        (removals["hosts"], _restoring(removals)),
        (removals["untag"], f"remove the tag for PVRDMA from {', '.join(removals['untag'])}"),
        (removals["fabric"], f"remove {', '.join(_fabric_objects(switch, fabric))}"),
        (removals["fabric"] and shared, f"leave the switch {switch} to {listed(shared)} of other clusters"),
        (removals["settings"], f"restore the shared settings from {removals['settings']}"),
        (removals["traces"], f"remove {' and '.join(words[name] for name in removals['traces'])}"),
    )
    yield from (text for is_due, text in sentences if is_due)


def _fabric_objects(switch: str, fabric: Data) -> Iterator[str]:
    groups = fabric["removal"]["port_groups"]
    by_devices: dict[str, list[str]] = {}
    for name, devices in _adapters(fabric).items():
        by_devices.setdefault(", ".join(devices), []).append(name)
    if fabric["removal"]["switch"]:
        yield f"the switch {switch}"
    if groups:
        yield f"the port groups {', '.join(groups)}"
    for devices_text, hosts in by_devices.items():
        yield f"{devices_text} of {', '.join(hosts)}"
    marked = [name for name, host in fabric["hosts"].items() if host["built"]]
    if marked and not by_devices:
        yield f"the rest of the switch {switch} on {', '.join(marked)}"


def _obstacles(fabric: Data, deleted: Sequence[str]) -> Iterator[str]:
    """Yield the virtual machines, adapters and hosts of others on the network that would be removed."""
    removal = fabric["removal"]
    for machine in fabric["machines"]:
        used = [one for one in machine["port_groups"] if removal["switch"] or one in removal["port_groups"]]
        if used and machine["name"] not in deleted:
            yield f"{machine['name']} stays and is connected to {', '.join(used)}"
    yield from removal["in_use"]
