# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The refusals of network cards that a host does not support."""

from __future__ import annotations

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.workers import nics
from plugins.module_utils.workers.worker_spec import WorkerSpec


@pytest.mark.parametrize(
    ("version", "protocol", "refused"),
    [("9.0.0", "rocev1", True), ("9.1.0", "rocev2", False), ("8.0.3", "rocev1", False), (None, "rocev1", False)],
)
def test_roce_version_1_is_refused_where_the_host_no_longer_has_it(
    version: str | None, protocol: str, *, refused: bool
) -> None:
    after = {"rdma_nic": {"portgroup": "rdma-vm", "protocol": protocol}}
    desired, host = WorkerSpec("w1", after, ()), {"name": "esx1", "config.product.version": version}
    if not refused:
        nics.refuse_removed(desired, after, host)
        return
    with pytest.raises(Refused, match=r"esx1 runs ESX 9\.0\.0, and 9\.0 removed RoCE version 1; set protocol: rocev2"):
        nics.refuse_removed(desired, after, host)
    nics.refuse_removed(WorkerSpec("w1", {"rdma_nic": None}, ()), after, host)  # the card is not ours to configure
