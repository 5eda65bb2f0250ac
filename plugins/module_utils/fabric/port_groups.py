"""Reads the port groups of a data centre, and creates, changes and removes those of a fabric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..vsphere import properties, tasks
from ..vsphere.escaped_names import escaped
from ..vsphere.faults import translating_faults
from ..vsphere.sdk import vim
from ..vsphere.session import Session
from . import fabric_marks
from .fabric_spec import PortGroupSpec
from .switch import SECONDS, Switch, SwitchLocation

# The switch adds more ports when they are needed.
PORTS = 8


@dataclass(frozen=True)
class PortGroup:
    """A distributed port group as last read."""

    name: str
    key: str
    ref: Any
    config: Any

    @property
    def vlan(self) -> int | None:
        """Return the VLAN: 0 for none, None for a trunk or a private VLAN."""
        vlan = getattr(self.config.defaultPortConfig, "vlan", None)
        kind = vim.dvs.VmwareDistributedVirtualSwitch.VlanIdSpec
        return int(vlan.vlanId) if isinstance(vlan, kind) else None

    @property
    def ours(self) -> bool:
        return fabric_marks.is_ours(self.config.description)

    @property
    def carries_uplinks(self) -> bool:
        return bool(getattr(self.config, "uplink", False))

    @property
    def switch(self) -> Any:
        return self.config.distributedVirtualSwitch


def read(session: Session, location: SwitchLocation) -> tuple[list[PortGroup], list[str]]:
    """Return the distributed port groups of a data centre, and the names of its other networks."""
    kind = vim.dvs.DistributedVirtualPortgroup
    groups = properties.read_linked(session, [location.ref], "network", kind, ("name", "key", "config"))
    plain = properties.read_linked(session, [location.ref], "network", vim.Network, ("name",))
    return (
        [PortGroup(values["name"], values["key"], ref, values["config"]) for ref, values in groups],
        # Another cluster may have made a distributed one between the two reads.
        [values["name"] for ref, values in plain if not isinstance(ref, kind)],
    )


def make(session: Session, switch: Switch, cluster: str, groups: Sequence[PortGroupSpec]) -> None:
    """Create new port groups, all in one task."""
    specs = [
        vim.dvs.DistributedVirtualPortgroup.ConfigSpec(
            name=escaped(group.name),
            description=fabric_marks.note(cluster),
            type="earlyBinding",
            numPorts=PORTS,
            autoExpand=True,
            defaultPortConfig=_setting(group.vlan or 0),
        )
        for group in groups
    ]
    tried = f"add the port groups {', '.join(group.name for group in groups)}"
    with translating_faults(switch.name, tried):
        task = switch.ref.AddDVPortgroup_Task(specs)
    tasks.wait(session, tasks.Started(task, switch.name, tried), SECONDS)


def set_vlan(session: Session, group: PortGroup, vlan: int) -> None:
    """Set the VLAN of a port group; its other settings stay."""
    spec = vim.dvs.DistributedVirtualPortgroup.ConfigSpec(
        configVersion=group.config.configVersion, defaultPortConfig=_setting(vlan)
    )
    tried = f"set VLAN {vlan}"
    with translating_faults(group.name, tried):
        task = group.ref.ReconfigureDVPortgroup_Task(spec)
    tasks.wait(session, tasks.Started(task, group.name, tried), SECONDS)


def remove(session: Session, groups: Sequence[PortGroup]) -> None:
    started = []
    for group in groups:
        with translating_faults(group.name, "remove the port group"):
            started.append(tasks.Started(group.ref.Destroy_Task(), group.name, "remove the port group"))
    for outcome in tasks.wait_all(session, started, SECONDS):
        if isinstance(outcome, Exception):
            raise outcome


def _setting(vlan: int) -> object:
    dvs = vim.dvs.VmwareDistributedVirtualSwitch
    return dvs.VmwarePortConfigPolicy(vlan=dvs.VlanIdSpec(vlanId=vlan, inherited=False))
