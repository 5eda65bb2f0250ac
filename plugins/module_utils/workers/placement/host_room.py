"""The demand of workers, the resources of hosts, and whether a demand fits on a host."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from .gpu_slots import Slots

REQUIRE, PREFER, IGNORE = "require", "prefer", "ignore"
# The name of a device group in vSphere 8 contains the number and the profile of its linked vGPUs.
_GROUP = re.compile(r"^[^:]+:(?P<count>\d+)@(?P<profile>[\w-]+)(?:%.*)?$")


@dataclass(frozen=True)
class Device:
    """A PCI device in passthrough, or a device of a class, for one virtual machine; ``node`` is its NUMA node."""

    address: str
    kind: str
    label: str = ""
    node: int | None = None
    holder: str = ""
    device_class: str = ""


@dataclass(frozen=True)
class DeviceRequest:
    """A request for a device; an empty field matches any device."""

    kind: str = ""
    label: str = ""
    address: str = ""
    device_class: str = ""

    def matches(self, device: Device) -> bool:
        requested = ((self.kind, device.kind), (self.label, device.label), (self.address, device.address))
        if self.device_class != device.device_class:
            return False
        return all(want in ("", have) for want, have in requested)

    def __str__(self) -> str:
        return " ".join(part for part in (self.address, self.kind, self.label, self.device_class) if part)


@dataclass(frozen=True)
class Promise:
    """A promise of a device to a worker: the device may change until all workers have one."""

    request: DeviceRequest
    nodes: tuple[int, ...] = ()  # the NUMA nodes that the device may be on; empty for all

    def matches(self, device: Device) -> bool:
        return self.request.matches(device) and (not self.nodes or device.node in (None, *self.nodes))


@dataclass(frozen=True)
class Demand:
    """The resources that a worker needs on its host; each of the ``groups`` contains vGPUs linked with NVLink.

    ``nics`` is the number of its RDMA NICs.
    """

    profiles: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    devices: tuple[DeviceRequest, ...] = ()
    memory_mb: int = 0
    cpus: int = 0
    nics: int = 0

    @property
    def vgpus(self) -> tuple[str, ...]:
        return (*self.profiles, *(profile for group in self.groups for profile in group_profiles(group) or ()))

    @property
    def size(self) -> tuple[int, int, int]:
        """The sort key: larger demands fit on fewer hosts and are placed first."""
        return len(self.devices), len(self.vgpus), self.memory_mb


@dataclass(frozen=True)
class HostResources:
    """The free resources of a host; ``workers`` are its workers except those to be placed.

    ``nodes`` are the NUMA nodes of its GPUs by address, ``nic_nodes`` those of its RDMA NICs, ``groups`` the device
    groups that it offers, ``holders`` the virtual machines with a vGPU and its profile. ``promises`` are kept with the
    devices ``given``.
    """

    name: str
    in_service: bool = True
    slots: Slots = field(default_factory=Slots)
    devices: tuple[Device, ...] = ()
    free_mb: int = 0
    threads: int = 0
    nic_nodes: tuple[int, ...] = ()
    nodes: tuple[tuple[str, int], ...] = ()
    groups: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    holders: tuple[tuple[str, str], ...] = ()
    promises: tuple[Promise, ...] = ()
    given: tuple[Device, ...] = ()

    def take(self, demand: Demand, same_node: str = PREFER) -> HostResources | None:
        """Return the host after the demand is placed on it; None if it does not fit."""
        if not self.in_service or demand.memory_mb > self.free_mb or demand.cpus > self.threads:
            return None
        if not set(demand.groups) <= set(self.groups):
            return None
        for slots, nodes in self._parts(demand, same_node):
            after = slots.take_all(demand.vgpus)
            promises = (*self.promises, *(Promise(request, nodes) for request in demand.devices))
            given = self._give(promises)
            if after is not None and given is not None:
                left = tuple(device for device in (*self.devices, *self.given) if device not in given)
                free_mb = self.free_mb - demand.memory_mb
                here = self._with(after)
                return replace(self, slots=here, devices=left, free_mb=free_mb, promises=promises, given=given)
        return None

    def occupy(self, demand: Demand, same_node: str = PREFER) -> HostResources:
        """Return the host with a running worker on it, which is counted even if it seems not to fit."""
        if (fitting := self.take(demand, same_node)) is not None:
            return fitting
        after = self
        for device in demand.devices:
            after = after.take(Demand(devices=(device,)), IGNORE) or after
        slots, free_mb = after.slots.occupy(demand.vgpus), max(after.free_mb - demand.memory_mb, 0)
        return replace(after, slots=slots, free_mb=free_mb)

    def _give(self, promises: Sequence[Promise]) -> tuple[Device, ...] | None:
        """Return a device for each promise; a worker that can use another device gives way to one that cannot."""
        return choose(promises, [device for device in (*self.devices, *self.given) if not device.holder])

    def near(self, demand: Demand) -> bool:
        """Return whether the GPUs of the demand can be on a NUMA node of its RDMA NICs."""
        return self.take(demand, REQUIRE) is not None

    def _parts(self, demand: Demand, same_node: str) -> Iterator[tuple[Slots, tuple[int, ...]]]:
        """Yield the shared GPUs and the nodes of PCI devices: near an RDMA NIC first, then all if ``same_node`` allows.

        A worker with one RDMA NIC uses the first of the host. The host chooses the GPU of a vGPU, so all shared GPUs
        must be on a NUMA node of the NICs.
        """
        near = self.nic_nodes if demand.nics > 1 else self.nic_nodes[:1]
        if same_node != IGNORE and near:
            nodes = dict(self.nodes)
            shared = all(nodes.get(gpu.address, near[0]) in near for gpu in self.slots.gpus)
            yield (self.slots if shared else replace(self.slots, gpus=())), near
        if same_node != REQUIRE or not near:
            yield self.slots, ()

    def _with(self, part: Slots) -> Slots:
        """Return all GPUs of the host, some of them changed."""
        changed = {gpu.address: gpu for gpu in part.gpus}
        return replace(self.slots, gpus=tuple(changed.get(gpu.address, gpu) for gpu in self.slots.gpus))


def choose(desired: Sequence[DeviceRequest | Promise], free: Sequence[Device]) -> tuple[Device, ...] | None:
    """Return a different device for each request; None if there are not enough."""
    holder: dict[int, int] = {}  # by device: the index of the request that has it
    for number in range(len(desired)):
        if not _give(number, desired, free, holder, set()):
            return None
    return tuple(free[device] for device in holder)


def _give(
    number: int,
    desired: Sequence[DeviceRequest | Promise],
    free: Sequence[Device],
    holder: dict[int, int],
    requested: set[int],
) -> bool:
    """Assign a device; if necessary, take one whose holder can use another device (an augmenting path)."""
    for device in range(len(free)):
        if device in requested or not desired[number].matches(free[device]):
            continue
        requested.add(device)
        if device not in holder or _give(holder[device], desired, free, holder, requested):
            holder[device] = number
            return True
    return False


def alike(host: HostResources) -> HostResources:
    """Return the properties in which two interchangeable hosts agree."""
    return replace(host, name="", workers=(), holders=())


def group_profiles(group: str) -> tuple[str, ...] | None:
    """Return the profiles of the virtual GPUs of a device group; None if its name does not contain them."""
    match = _GROUP.match(group)
    return (match["profile"],) * int(match["count"]) if match else None


def offered(hosts: Iterable[HostResources]) -> dict[tuple[str, ...], list[str]]:
    by_offer: dict[tuple[str, ...], list[str]] = {}
    for host in hosts:
        by_offer.setdefault(host.slots.offered, []).append(host.name)
    return by_offer
