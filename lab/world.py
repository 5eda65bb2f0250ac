"""The complete state of a simulated vCenter as text, to compare it at two points in time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pyVmomi import vim, vmodl

from lab.person import opened
from lab.simulator import Centre

KINDS = (
    vim.Folder,
    vim.Datacenter,
    vim.ComputeResource,
    vim.HostSystem,
    vim.ResourcePool,
    vim.VirtualMachine,
    vim.Network,
    vim.DistributedVirtualSwitch,
    vim.Datastore,
)
# History and clocks differ in any case: the server keeps its lists of tasks and events, and time goes on.
BOOT = re.compile(r"(bootTime = |'boot_time': )[^,]+,")
HISTORY = frozenset({"recentTask"})


def state(vcenter: Centre) -> dict[str, str]:
    """Return all properties of all objects, vCenter's options and attributes, and the internal state of each host."""
    with opened(vcenter) as client:
        found = dict(_properties(client))
        found["vCenter: options"] = _text(client.content.setting.setting)
        found["vCenter: custom attributes"] = _text(client.content.customFieldsManager.field)
    for host in vcenter.ask("GET", "/hosts"):
        found[f"{host}: inside"] = _text(vcenter.ask("GET", f"/hosts/{host}"))
    return found


def differences(before: dict[str, str], after: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """Return the properties that differ, each with the values before and after."""
    keys = sorted({*before, *after})
    return {key: (before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)}


def _properties(client: Any) -> Iterator[tuple[str, str]]:
    content, spec = client.content, vmodl.query.PropertyCollector
    view = content.viewManager.CreateContainerView(content.rootFolder, list(KINDS), True)
    walk = spec.TraversalSpec(name="view", path="view", skip=False, type=vim.view.ContainerView)
    start = spec.ObjectSpec(obj=view, skip=True, selectSet=[walk])
    desired = [spec.PropertySpec(type=kind, all=True) for kind in KINDS]
    for entry in content.propertyCollector.RetrieveContents([spec.FilterSpec(objectSet=[start], propSet=desired)]):
        values = {item.name: item.val for item in entry.propSet}
        for name, value in values.items():
            if name not in HISTORY:
                yield f"{entry.obj._moId} {values['name']}: {name}", _text(value)
    view.DestroyView()


def _text(value: Any) -> str:
    return BOOT.sub("", str(value))
