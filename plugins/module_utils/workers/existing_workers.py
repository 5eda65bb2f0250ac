"""The existing workers, identified by their mark and read together, with the variables for an inventory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypedDict

from ..core import names as forms
from ..core.json_values import mapping, objects
from ..vsphere import custom_fields, inventory, properties
from ..vsphere.escaped_names import plain
from ..vsphere.sdk import ApiObject, vim
from ..vsphere.session import Session
from . import customise, foreign_disks, library_items, nics, worker_gpus, worker_identity, worker_mark
from .machine import GROUPS, GROUPS_SINCE, HOME, Machine
from .worker_power import RUNNING

PATHS = (
    "name",
    "config.instanceUuid",
    "config.hardware.device",
    "config.extraConfig",
    "runtime.host",
    "runtime.powerState",
    "guest.ipAddress",
    "guest.toolsRunningStatus",
    "guest.net",
    HOME,
)


class _Reachable(TypedDict, total=False):
    """The address with which Ansible connects, if it is known."""

    ansible_host: str


class ExistingWorker(_Reachable):
    """One existing worker with the variables for an inventory."""

    name: str
    vm_name: str
    vm_cluster: str
    vm_role: str
    vm_tenant: str
    vm_built: bool
    vm_confirmed: bool
    vm_uuid: str | None
    vm_host: str
    vm_power: str
    vm_tools: bool
    vm_gpus: list[str]
    vm_profiles: list[str]
    vm_rdma_macs: list[str]
    vm_rdma_protocol: str | None
    vm_rdma_classes: list[str]
    vm_rdma_addresses: list[str]
    vm_foreign_disks: list[str]
    vm_template: dict[str, str] | None


def read_workers(session: Session, clusters: Collection[str] = ()) -> list[ExistingWorker]:
    """Return all marked workers, or those of some clusters, with a constant number of calls to vCenter."""
    marked_machines = _marked_machines(session, clusters)
    chosen = [marked.ref for marked in marked_machines]
    marks = {marked.ref._moId: marked.mark for marked in marked_machines}
    paths = (*PATHS, GROUPS) if session.api_version >= GROUPS_SINCE else PATHS
    values_by_id = properties.read_many(session, chosen, paths)
    homes = {host._moId: host for values in values_by_id.values() if (host := values.get("runtime.host")) is not None}
    hosts = properties.read_many(session, list(homes.values()), ("name",))
    names = {key: str(values["name"]) for key, values in hosts.items()}
    machines = [
        Machine(session, ref, values_by_id[ref._moId], str(mark["name"]), built=bool(mark.get("built")))
        for ref in chosen
        if ref._moId in values_by_id and (mark := marks[ref._moId])
    ]
    read = [_worker(machine, marks[machine.ref._moId], names) for machine in machines]
    return sorted(read, key=lambda worker: worker["name"])


def worker_refs(session: Session, cluster: str) -> dict[str, object]:
    """Return the virtual machines of the workers of a cluster, by worker name."""
    return {str(marked.mark["name"]): marked.ref for marked in _marked_machines(session, [cluster])}


def refs_elsewhere(session: Session, cluster: str) -> dict[str, object]:
    """Return the machines of the workers of all other clusters, by their short names, without shared names."""
    others = [one for one in _marked_machines(session, ()) if one.mark.get("cluster") != plain(cluster)]
    named = [forms.short_name(str(one.mark["name"])) for one in others]
    return {name: one.ref for name, one in zip(named, others) if named.count(name) == 1}


def unfinished_clones(session: Session, cluster: str) -> list[str]:
    """Return the names of the unmarked clones of a cluster that a killed run left behind."""
    definitions = custom_fields.definitions(session)
    hosts = {ref._moId for ref in inventory.find_cluster(session, cluster, ("host",))[1].get("host") or []}
    every = properties.find_all(session, vim.VirtualMachine, (*worker_identity.PATHS, "runtime.host"))
    known = worker_identity.WorkerIdentities(definitions, every)
    unmarked = [
        ref
        for ref, values in every
        if getattr(values.get("runtime.host"), "_moId", None) in hosts and known.mark_of(ref) is None
    ]
    read = properties.read_many(session, unmarked, ("name", "config.extraConfig"))
    machines = [Machine(session, ref, read[ref._moId]) for ref in unmarked if ref._moId in read]
    return sorted(machine.name for machine in machines if machine.extra.get(worker_mark.BUILDING) == machine.name)


def inventory_groups(worker: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the groups of one worker; some characters may not be valid in Ansible's group names."""
    yield "workers"
    for kind in ("cluster", "role", "tenant", "host"):
        if worker[f"vm_{kind}"]:
            yield f"{kind}_{worker[f'vm_{kind}']}"
    yield from (f"profile_{profile}" for profile in worker["vm_profiles"])


def _marked_machines(session: Session, clusters: Collection[str]) -> list[worker_identity.MarkedMachine]:
    """Return the machines of the workers of some clusters; two machines with the mark of one worker are refused."""
    definitions = custom_fields.definitions(session)
    known = worker_identity.WorkerIdentities(
        definitions, properties.find_all(session, vim.VirtualMachine, worker_identity.PATHS)
    )
    desired = {plain(cluster) for cluster in clusters}
    chosen = [marked for marked in known.all() if not desired or marked.mark.get("cluster") in desired]
    for marked in chosen:
        known.worker(str(marked.mark.get("cluster", "")), str(marked.mark["name"]))
    return chosen


def _worker(machine: Machine, mark: Mapping[str, Any], hosts: Mapping[str, str]) -> ExistingWorker:
    rdma, management = nics.rdma_nics(machine), nics.management_card(machine)
    gpus = [assigned.gpu for assigned in worker_gpus.assigned_gpus(machine)]
    address = _address(machine, management) or forms.address(machine["guest.ipAddress"])
    confirmed = worker_mark.is_confirmed(mark, machine)
    worker: ExistingWorker = {
        "name": machine.name,
        "vm_name": machine.shown,
        "vm_cluster": mark.get("cluster", ""),
        "vm_role": mark.get("role", ""),
        "vm_tenant": mark.get("tenant", ""),
        "vm_built": bool(mark.get("built")) and confirmed,
        "vm_confirmed": confirmed,
        "vm_uuid": machine["config.instanceUuid"],
        "vm_host": hosts.get(machine.host, ""),
        "vm_power": "on" if machine.on else "off",
        "vm_tools": machine["guest.toolsRunningStatus"] == RUNNING,
        "vm_gpus": worker_gpus.names_of(gpus),
        "vm_profiles": sorted({gpu.profile for gpu in gpus if gpu.profile}),
        "vm_rdma_macs": [card.macAddress for card in rdma if card.macAddress],
        "vm_rdma_protocol": next((card.deviceProtocol for card in nics.rdma_cards(machine)), None),
        "vm_rdma_classes": nics.classes_of(machine),
        "vm_rdma_addresses": list(filter(None, (_address(machine, card) for card in rdma))),
        "vm_template": library_items.recorded(machine.extra),
        "vm_foreign_disks": [foreign_disks.files([disk]) for disk in foreign_disks.attached(machine)],
    }
    if address:
        worker["ansible_host"] = address
    return worker


def _address(machine: Machine, card: ApiObject) -> str | None:
    """Return the IPv4 address of a card, as the guest reports it or, otherwise, from its cloud-init data."""
    if card is None:
        return None
    reported = [one for one in machine["guest.net"] or [] if one.deviceConfigId == card.key]
    addresses = [text for one in reported for text in one.ipAddress or [] if ":" not in text]
    return next(filter(None, map(forms.address, [*addresses, *_given(machine, card)])), None)


def _given(machine: Machine, card: ApiObject) -> Iterator[str]:
    """Yield the fixed addresses of a card in the guest's cloud-init data."""
    # Others may have written this data, in any form that cloud-init reads.
    network = mapping(mapping(mapping(customise.facts(machine.extra)).get("metadata")).get("network"))
    for ethernet in objects(list(mapping(network.get("ethernets")).values())):
        if str(mapping(ethernet.get("match")).get("macaddress")).lower() != (card.macAddress or "").lower():
            continue
        addresses = ethernet.get("addresses")
        texts = map(str, addresses if isinstance(addresses, list) else ())
        yield from (text.partition("/")[0] for text in texts if ":" not in text)
