"""vGPU profiles as hosts describe them; read only for names that do not contain the size, such as mockup-vmiop-8c."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...vsphere import properties
from ...vsphere.faults import translating_faults
from ...vsphere.sdk import vim
from ...vsphere.session import Session
from ..placement.gpu_slots import VgpuProfile, parse
from .host_capacity import DESCRIBED

_OFFERED, _MANAGER, _TIME_SLICED = "config.sharedPassthruGpuTypes", "configManager.graphicsManager", "timeSliced"


def describe(session: Session, hosts: Mapping[str, Any]) -> None:
    """Add the described profiles to the properties of each host that offers names without a size."""
    unknown = [key for key, host in hosts.items() if any(parse(name) is None for name in host.get(_OFFERED) or [])]
    refs = [vim.HostSystem(key, session.stub) for key in unknown]
    for key, values in properties.read_many(session, refs, (_MANAGER,)).items() if refs else ():
        with translating_faults(hosts[key]["name"], "read its vGPU profiles"):
            infos = values[_MANAGER].RetrieveVgpuProfileInfo() or []
        # A description has no MIG slices.
        hosts[key][DESCRIBED] = tuple(
            VgpuProfile(info.profileName, f"{info.deviceVendorId:x}", int(info.fbSizeInGib))
            for info in infos
            if info.profileSharing == _TIME_SLICED and info.fbSizeInGib
        )
