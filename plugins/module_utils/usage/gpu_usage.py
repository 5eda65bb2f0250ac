"""The use of the GPUs of a cluster, read in a constant number of calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..errors import Refused
from ..hosts import pci_devices
from ..maintenance.lock.lock_rules import stamp
from ..vsphere import counters, custom_fields, host_clocks, inventory, rest, tags
from ..vsphere.inventory import Host
from ..vsphere.properties import Values, id_of, read_many
from ..vsphere.sdk import ApiObject
from ..vsphere.session import Session
from ..workers.capacity import host_capacity as capacity
from ..workers.capacity import machines
from ..workers.capacity.place_names import place_names
from . import gpu_load, gpu_users
from .gpu_load import MEMORY, UTILISATION, Samples
from .gpu_users import PASSTHROUGH, VGPU, GpuCard, GpuVm

FOLDER, POOL, OWNER, ATTRIBUTE, TAG = "folder", "resource_pool", "owner", "attribute", "tag"
GROUP_BY = (FOLDER, POOL, OWNER, ATTRIBUTE, TAG)
HOST_PATHS = ("vm", "config.sharedPassthruGpuTypes", *pci_devices.PATHS)
_TEMPLATE = "config.template"
VM_PATHS = (*machines.PATHS, "runtime.bootTime", _TEMPLATE)
_MODES = {capacity.SHARED_DIRECT: VGPU, "direct": PASSTHROUGH}
_VGPU_MODES = {"sameSize": "same_size", capacity.MIXED_SIZE: "mixed_size", "multiInstanceGpu": "mig"}


@dataclass(frozen=True)
class UsageOptions:
    """The options of a report on the use of GPUs."""

    cluster: str
    hours: float
    group_by: str
    attribute: str = ""
    tag_category: str = ""

    def __post_init__(self) -> None:
        if self.hours <= 0:
            cause = f"a period of {self.hours:g} hours is too short"
            raise Refused(self.cluster, "read how its GPUs are used", cause, "give a number of hours above 0")


class GpuUsage:
    """The GPUs of one cluster and the virtual machines that use them."""

    def __init__(self, session: Session, desired: UsageOptions) -> None:
        self.session, self.desired = session, desired
        if desired.group_by == ATTRIBUTE:
            custom_fields.require(session, desired.attribute)
        paths = (*HOST_PATHS, *capacity.binding_paths(session.api_version))
        hosts = inventory.find_hosts(session, {"cluster": desired.cluster}, paths)
        hosts.refresh()
        self.now = host_clocks.server_time(session)
        self.hosts = [host for host in hosts.hosts if pci_devices.gpus(host)]
        # vCenter may have no data about the hardware of a host that it does not reach.
        self.unread = [host for host in hosts.hosts if not host.reachable and not pci_devices.devices(host)]
        refs = [vm for host in self.hosts for vm in host["vm"] or []]
        self.vms = {key: one for key, one in read_many(session, refs, VM_PATHS).items() if not one.get(_TEMPLATE)}
        self.names = place_names(session, self.vms.values())
        self.tags = self._tags() if desired.group_by == TAG else {}

    def read(self) -> dict[str, Any]:
        """Return the use of the GPUs as plain data."""
        measured = read(self.session, self.hosts, self.desired.hours, self.now)
        gpus, waiting, lost = list[dict[str, Any]](), list[dict[str, Any]](), list[dict[str, Any]]()
        for host in self.hosts:
            room = gpu_users.HostGpus(_cards(host), capacity.offered(host.properties), self._machines(host))
            for card in room.cards:
                utilisation = measured.utilisation(host, card.address)
                gpus.append({**_state(host), **gpu_users.facts(room, card), "utilisation": utilisation})
            waiting += [{"host": host.name, **one} for one in room.waiting()]
            lost += [{"host": host.name, "vm": one.name, "profile": profile} for one, profile in room.lost]
        return {
            "cluster": self.desired.cluster,
            "taken": stamp(self.now),
            "group_by": self.desired.attribute or self.desired.tag_category or self.desired.group_by,
            "period": measured.period,
            "gpus": gpus,
            "waiting": waiting,
            "lost": lost,
            "unread": [_state(host) for host in self.unread],
        }

    def _tags(self) -> dict[str, list[str]]:
        with rest.opened(self.session) as api:
            return tags.vm_tags(api, self.desired.tag_category, self.vms)

    def _machines(self, host: inventory.Host) -> list[GpuVm]:
        addresses = list(pci_devices.gpus(host))
        keys = [ref._moId for ref in host["vm"] or []]
        return [self._machine(key, self.vms[key], addresses) for key in keys if key in self.vms]

    def _machine(self, key: str, one: Values, addresses: list[str]) -> GpuVm:
        running = one.get("runtime.powerState") == "poweredOn"
        fixed, any_whole = _whole(one, addresses, running=running)
        began: datetime | None = one.get("runtime.bootTime")
        hours = max((self.now - began).total_seconds() / 3600, 0.0) if running and began else None
        return GpuVm(key, one["name"], running, machines.vgpus(one), fixed, any_whole, hours, self._whose(key, one))

    def _whose(self, key: str, one: Values) -> dict[str, str]:
        places = {
            FOLDER: self.names.get(id_of(one.get("parent")), ""),
            POOL: self.names.get(id_of(one.get("resourcePool")), ""),
            OWNER: machines.owner_of(one),
        }
        return {**places, "tenant": self._tenant(key, one, places)}

    def _tenant(self, key: str, one: Values, places: Mapping[str, str]) -> str:
        if self.desired.group_by == TAG:
            return ", ".join(self.tags.get(key, []))
        if self.desired.group_by == ATTRIBUTE:
            return custom_fields.value_of(self.desired.attribute, one.get("availableField"), one.get("customValue"))
        return places[self.desired.group_by]


def _state(host: Host) -> dict[str, object]:
    return {"host": host.name, "reachable": host.reachable, "maintenance": host.in_maintenance}


def _cards(host: inventory.Host) -> list[GpuCard]:
    known = capacity.graphics(host.properties)
    return [_card(host, address, device, known.get(address)) for address, device in pci_devices.gpus(host).items()]


def _card(host: inventory.Host, address: str, device: Mapping[str, Any], info: ApiObject) -> GpuCard:
    """Return the card of a GPU; a host reports no graphics information for a GPU in passthrough."""
    kind_of_use = str(info.graphicsType) if info else "none"
    passed = device["passthrough"]["active"]
    return GpuCard(
        address=address,
        name=str(device["name"]),
        gigabytes=capacity.gpu_memory_gb(host.properties, address) or 0,
        mode=PASSTHROUGH if passed else _MODES.get(kind_of_use, kind_of_use),
        vgpu_mode=_VGPU_MODES.get(str(getattr(info, "vgpuMode", None)), ""),
        listed=tuple(capacity.users(host.properties).get(address, ())),
    )


def _whole(one: Values, addresses: list[str], *, running: bool) -> tuple[tuple[str, ...], int]:
    """Return the addresses of a machine's passthrough GPUs, and the number of further GPUs without an address."""
    found = machines.passthrough_devices(one)
    # A machine that is off has no assigned device: its host assigns one of its kinds when it starts.
    fixed = tuple(device.address for device in found if running or not device.any_of_kind)
    any_whole = sum(device.nvidia for device in found if device.any_of_kind and not running)
    return tuple(address for address in fixed if address in addresses), any_whole


GROUP = "gpu"


@dataclass(frozen=True)
class MeasuredLoad:
    """The measured samples by host id and PCI address, and their period."""

    period: Mapping[str, Any]
    cards: Mapping[str, Mapping[str, Mapping[str, Samples]]] = field(default_factory=dict)

    def utilisation(self, host: Host, address: str) -> dict[str, object] | None:
        """Return the utilisation of a card; None if it was not measured."""
        found = self.cards.get(host.ref._moId, {}).get(address, {})
        return gpu_load.summary(found, int(self.period["sample_seconds"]))


def read(session: Session, hosts: Sequence[Host], hours: float, now: datetime) -> MeasuredLoad:
    """Return the samples of all hosts that vCenter reaches, in few calls."""
    known = counters.catalogue(session, GROUP)
    desired = {name: known.counters[name] for name in (UTILISATION, MEMORY) if name in known.counters}
    if UTILISATION not in desired:
        why = "this vCenter has no counter gpu.utilization"
        return MeasuredLoad(_period(hours, hours, counters.REALTIME_SECONDS, now, why))
    seconds, covered, why = counters.choose(known, desired[UTILISATION], hours)
    sizes = {host.ref: len(pci_devices.gpus(host)) for host in hosts if host.reachable}
    found = counters.series(session, sizes, desired, seconds, counters.ago(now, covered))
    cards, strangers = dict[str, Mapping[str, Mapping[str, Samples]]](), list[str]()
    for host in hosts:
        mine = [Samples(one.counter, one.instance, one.values) for one in found if one.object_id == host.ref._moId]
        cards[host.ref._moId], others = gpu_load.by_card(list(pci_devices.gpus(host)), mine)
        strangers += [f"{host.name}: {one}" for one in others]
    return MeasuredLoad({**_period(hours, covered, seconds, now, why), "unknown_instances": strangers}, cards)


def _period(requested: float, hours: float, seconds: int, now: datetime, why: str) -> dict[str, object]:
    return {
        "asked_hours": requested,
        "hours": hours,
        "since": stamp(counters.ago(now, hours)),
        "until": stamp(now),
        "sample_seconds": seconds,
        "why": why,
        "unknown_instances": [],
    }
