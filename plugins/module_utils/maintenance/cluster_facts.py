"""The facts about a cluster, as cluster_info returns them and as the rules on changes of its hosts read them."""

from __future__ import annotations

from typing import Any, Mapping, TypedDict


class DeviceClass(TypedDict):
    """A class of devices with Enhanced DirectPath I/O: whether their machines can move, and whether they are NICs."""

    moves: bool
    network_card: bool


class HostState(TypedDict):
    """One host of the cluster, with its device classes by name."""

    host: str
    version: str
    build: str
    connection: str
    maintenance: bool
    ours: bool
    device_classes: dict[str, DeviceClass]


class HaState(TypedDict):
    """High availability; ``failover_hosts`` are kept free, None if the policy does not define them."""

    enabled: bool
    admission_control: bool
    policy: str
    failover_hosts: int | None
    failover_hosts_now: int | None


class DrsState(TypedDict):
    """DRS, with its advanced options as text."""

    enabled: bool
    behaviour: str | None
    vmotion_rate: int | None
    options: dict[str, str]


class VsanState(TypedDict):
    """vSAN, and the bytes left to resynchronise; None if they are unknown."""

    enabled: bool
    resync_bytes: int | None


class Alarm(TypedDict):
    """A red or yellow alarm."""

    object: str
    alarm: str
    status: str
    since: str
    acknowledged: bool


class RunningTask(TypedDict):
    """A task that runs on the cluster or on a host."""

    object: str
    task: str
    user: str
    ours: bool


class Remediation(TypedDict):
    """A remediation by vLCM that runs on the cluster, with the names of its hosts, empty if they are not known.

    ``error`` is the reason why remediations cannot be read.
    """

    user: str
    hosts: list[str]
    error: str


class OutOfService(TypedDict):
    """A host that cannot take virtual machines; ``by`` is the user who caused it, if known."""

    host: str
    why: str
    ours: bool
    by: str | None


class HostSlots(TypedDict):
    """The places of a vGPU profile on one host; only the count of a server from 9.0 on has ``reserved`` places."""

    host: str
    used: int
    free: int
    reserved: int


class ProfileSlots(TypedDict):
    """The places of a vGPU profile on all hosts in service."""

    profile: str
    used: int
    free: int
    reserved: int
    hosts: list[HostSlots]


class MaxOutOfService(TypedDict):
    """The number of hosts that may be out of service at once, and the limit."""

    allowed: int
    why: str


class ClusterIdentity(TypedDict):
    """The cluster, its vCenter, and who manages the configuration of its hosts."""

    name: str
    # It stays the same when the cluster is renamed.
    id: str
    vcenter: dict[str, str]
    options: dict[str, Any]
    image_managed: bool
    configuration_profile: bool


class ClusterState(ClusterIdentity):
    """The facts that the rules on changes read."""

    hosts: list[HostState]
    ha: HaState
    vsan: VsanState
    alarms: list[Alarm]
    tasks: list[RunningTask]
    remediations: list[Remediation]
    out_of_service: list[OutOfService]
    gpu_slots: list[ProfileSlots]


class ClusterFacts(ClusterState):
    """All facts about a cluster; ``vms`` and ``occupied`` are None unless they were gathered."""

    drs: DrsState
    evc: str | None
    lock: dict[str, Any]
    licences: list[dict[str, Any]]
    clocks: list[dict[str, Any]]
    vms: list[Mapping[str, Any]] | None
    occupied: list[str] | None
    max_out_of_service: MaxOutOfService
