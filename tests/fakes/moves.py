"""A cluster between whose hosts a worker moves: what is read of the target, and what vCenter itself thinks of it."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.moves.move.move import move_facts
from plugins.module_utils.vsphere import properties, tasks
from plugins.module_utils.workers.machine import Machine
from tests.fakes.worker_cluster import STORE, FakeWorkerCluster

MANAGER = vim.encryption.CryptoManagerKmip("CryptoManager")
MORE: dict[str, Any] = {
    "datastore": [STORE],
    "network": [vim.Network("network-1"), vim.dvs.DistributedVirtualPortgroup("dvpg-1")],
    "summary.hardware.numCpuCores": 16,
    "config.product.apiVersion": "8.0.1",
    move_facts.pvrdma.TAG: "vmk1",
}


class FakeServer:
    """The further properties of the target host, and what vCenter itself thinks of a move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.values: dict[str, Any] = {**MORE, "name": "named"}
        self.results: list[Any] = []
        monkeypatch.setattr(properties, "read_many", self._read)
        monkeypatch.setattr(tasks, "wait", lambda *_args: SimpleNamespace(result=self.results))

    def CheckRelocate_Task(self, **_of: Any) -> Any:  # as pyVmomi spells it
        return None

    def _read(self, _session: Any, refs: Sequence[Any], paths: Sequence[str]) -> dict[str, Any]:
        return {ref._moId: {path: self.values[path] for path in paths if path in self.values} for ref in refs}


def site_of(server: FakeServer, *machines: Machine, **more: Any) -> FakeWorkerCluster:
    site = FakeWorkerCluster(*machines, **more)
    site.session.api_version = (8, 0, 1)  # type: ignore[misc]
    site.session.content = SimpleNamespace(vmProvisioningChecker=server, cryptoManager=MANAGER)  # type: ignore[misc]
    return site
