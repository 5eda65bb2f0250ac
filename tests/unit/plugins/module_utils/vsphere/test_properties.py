# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is watched comes whole: changed parts of a property, under names of their own, are not asked for."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from pyVmomi import vim

from plugins.module_utils.vsphere import properties


class Collector:
    """A property collector that notes how it is asked, and answers with one whole property."""

    def __init__(self) -> None:
        self.partial: list[bool] = []

    def CreatePropertyCollector(self) -> Collector:  # noqa: N802 # as pyVmomi spells it
        return self

    def CreateFilter(self, _spec: Any, partialUpdates: bool) -> None:  # noqa: N802, N803 # as pyVmomi spells it
        self.partial.append(partialUpdates)

    def WaitForUpdatesEx(self, _version: str, _options: Any) -> Any:  # noqa: N802 # as pyVmomi spells it
        change = SimpleNamespace(name="config.service", val="whole")
        changed = SimpleNamespace(obj=SimpleNamespace(_moId="host-1"), kind="modify", changeSet=[change])
        return SimpleNamespace(version="1", filterSet=[SimpleNamespace(objectSet=[changed])])

    def DestroyPropertyCollector(self) -> None:  # noqa: N802 # as pyVmomi spells it
        pass


def test_the_server_is_asked_for_whole_properties() -> None:
    collector = Collector()
    session: Any = SimpleNamespace(server="vc", content=SimpleNamespace(propertyCollector=collector))
    seen = next(properties.watch(session, [vim.HostSystem("host-1")], ["config.service"], time.monotonic() + 60))
    assert collector.partial == [False]
    assert seen == {"host-1": {"config.service": "whole"}}
