# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Distributed port groups that a host can reach, and whether their traffic carries a VLAN tag."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..vsphere import properties
from ..vsphere.fleet import Host
from ..vsphere.sdk import vim
from ..vsphere.session import Session

PATHS = ("network",)


def of(session: Session, hosts: Iterable[Host]) -> dict[str, dict[str, Any]]:
    """The port groups of these hosts by key, without those of uplinks, in two reads."""
    kind = vim.dvs.DistributedVirtualPortgroup
    refs = {ref._moId: ref for host in hosts for ref in host["network"] or [] if isinstance(ref, kind)}
    configs = [values["config"] for values in properties.read_many(session, list(refs.values()), ("config",)).values()]
    groups = [one for one in configs if not getattr(one, "uplink", False)]
    owners = {one.distributedVirtualSwitch._moId: one.distributedVirtualSwitch for one in groups}
    names = properties.read_many(session, list(owners.values()), ("name",))
    return {one.key: _port_group(one, names[one.distributedVirtualSwitch._moId]["name"]) for one in groups}


def _port_group(config: Any, switch: str) -> dict[str, Any]:
    return {"name": config.name, "switch": switch, **_vlan(getattr(config.defaultPortConfig, "vlan", None))}


def _vlan(vlan: Any) -> dict[str, Any]:
    """A trunk is tagged by the guest, a private VLAN by the switch."""
    if isinstance(vlan, vim.dvs.VmwareDistributedVirtualSwitch.VlanIdSpec):
        return {"vlan": vlan.vlanId or None, "tagged": bool(vlan.vlanId)}
    return {"vlan": None, "tagged": vlan is not None}
