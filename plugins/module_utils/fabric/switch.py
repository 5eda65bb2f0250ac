"""Finds, creates, changes and removes the distributed switch of a fabric, and adds hosts to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import Refused
from ..vsphere import properties, tasks
from ..vsphere.escaped_names import escaped, plain
from ..vsphere.faults import translating_faults
from ..vsphere.inventory import Host
from ..vsphere.sdk import ApiObject, vim
from ..vsphere.session import Session
from . import fabric_marks

SECONDS = 300
# One port for one card, which prevents a second uplink: with two, PVRDMA falls back to TCP.
UPLINK = "uplink1"


@dataclass(frozen=True)
class SwitchLocation:
    """The place of the switch: the data centre of its cluster."""

    name: str
    ref: Any
    folder: Any


@dataclass(frozen=True)
class Switch:
    """A distributed switch as last read."""

    name: str
    ref: Any
    config: Any

    @property
    def ours(self) -> bool:
        return fabric_marks.is_ours(self.config.description)

    @property
    def member_refs(self) -> list[ApiObject]:
        """Return the references of the hosts that have joined."""
        return [member.config.host for member in self.config.host or [] if member.config.host is not None]

    @property
    def members(self) -> list[str]:
        """Return the object ids of the hosts that have joined."""
        return [ref._moId for ref in self.member_refs]


def location_of(session: Session, cluster: ApiObject) -> SwitchLocation:
    ref = cluster
    while not isinstance(ref, vim.Datacenter):
        ref = properties.read_many(session, [ref], ("parent",))[ref._moId]["parent"]
    values = properties.read_many(session, [ref], ("name", "networkFolder"))[ref._moId]
    return SwitchLocation(values["name"], ref, values["networkFolder"])


def find(session: Session, refs: Sequence[ApiObject], name: str) -> Switch | None:
    by_id = {ref._moId: ref for ref in refs}
    switches = [
        Switch(values["name"], by_id[key], values["config"])
        for alike in properties.by_type(refs)
        for key, values in properties.read_many(session, alike, ("name", "config")).items()
        if values["name"] == plain(name)
    ]
    if len(switches) > 1:
        raise Refused(
            name, "take it as the RDMA switch", f"{len(switches)} switches have that name", "rename one of them"
        )
    return switches[0] if switches else None


def make(session: Session, location: SwitchLocation, name: str, cluster: str, mtu: int) -> Switch:
    """Create a new switch without hosts."""
    spec = vim.dvs.VmwareDistributedVirtualSwitch.ConfigSpec(
        name=escaped(name),
        description=fabric_marks.note(cluster),
        maxMtu=mtu,
        uplinkPortPolicy=vim.DistributedVirtualSwitch.NameArrayUplinkPortPolicy(uplinkPortName=[UPLINK]),
    )
    tried = f"make the distributed switch {name}"
    with translating_faults(location.name, tried):
        task = location.folder.CreateDVS_Task(vim.DistributedVirtualSwitch.CreateSpec(configSpec=spec))
    return reread(session, name, tasks.created_object(session, tasks.Started(task, location.name, tried), SECONDS))


def reread(session: Session, name: str, ref: ApiObject) -> Switch:
    """Return the current switch: each change must contain the version of the last one."""
    return Switch(name, ref, properties.read_many(session, [ref], ("config",))[ref._moId]["config"])


def change(session: Session, switch: Switch, mtu: int, hosts: Mapping[Host, str]) -> None:
    """Set the MTU, and add or edit the hosts, each with one uplink."""
    members = [
        _member("edit" if host.ref._moId in switch.members else "add", host, uplink) for host, uplink in hosts.items()
    ]
    names = ", ".join(host.name for host in hosts)
    tried = f"set MTU {mtu}" + (f" and the uplinks of {names}" if names else "")
    _reconfigure(session, switch, tried, host=members, maxMtu=mtu)


def leave(session: Session, switch: Switch, hosts: Sequence[Host]) -> None:
    spec = vim.dvs.HostMember.ConfigSpec
    members = [spec(operation="remove", host=host.ref) for host in hosts]
    _reconfigure(session, switch, f"take {', '.join(host.name for host in hosts)} off it", host=members)


def remove(session: Session, switch: Switch) -> None:
    with translating_faults(switch.name, "remove the switch"):
        task = switch.ref.Destroy_Task()
    tasks.wait(session, tasks.Started(task, switch.name, "remove the switch"), SECONDS)


def _member(operation: str, host: Host, uplink: str) -> ApiObject:
    pnic = vim.dvs.HostMember.PnicSpec(pnicDevice=uplink)
    backing = vim.dvs.HostMember.PnicBacking(pnicSpec=[pnic])
    return vim.dvs.HostMember.ConfigSpec(operation=operation, host=host.ref, backing=backing)


def _reconfigure(session: Session, switch: Switch, tried: str, **settings: object) -> None:
    spec = vim.dvs.VmwareDistributedVirtualSwitch.ConfigSpec(configVersion=switch.config.configVersion, **settings)
    with translating_faults(switch.name, tried):
        task = switch.ref.ReconfigureDvs_Task(spec)
    tasks.wait(session, tasks.Started(task, switch.name, tried, "run again, which detects completed changes"), SECONDS)
