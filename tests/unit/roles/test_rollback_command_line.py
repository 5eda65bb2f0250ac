"""The role rollback restores the evidence, whatever else the command line sets."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.errors import WholeError
from tests.unit.simulation.role_tasks import RoleTasks

EVIDENCE: dict[str, Any] = {"rollback_cluster": "gpu", "rollback_evidence": "gpu.json", "inventory_hostname": "gpu"}
# The profile of the inventory, which the evidence replaces.
PROFILE = {"kernel_modules": [{"name": "nmlx5_core", "options": {"max_vfs": 8}}]}


class CommandLine(RoleTasks):
    """One run of roles with variables of the command line, which outrank all others."""

    def __init__(self, **extra: Any) -> None:
        super().__init__(lambda *_call: {"profiles": {}, "image": {}}, {"esxi_host": lambda _given: None})
        self._registered.update(extra)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("esxi_host_profiles", {"esx01.lab": PROFILE}),
        ("esxi_host_profiles", {}),
        ("esxi_host_image", {"components": {"NVD-AIE-800": "550.127.06"}}),
        ("esxi_host_hosts", ["esx03.lab"]),
        ("esxi_host_cluster", "another"),
    ],
)
def test_rollback_refuses_variables_that_outrank_evidence(name: str, value: Any) -> None:
    with pytest.raises(WholeError, match=f"gpu: could not restore its hosts .* the command line sets {name}, which"):
        CommandLine(**{name: value}).run("rollback", EVIDENCE)


def test_rollback_accepts_a_profile_of_the_inventory() -> None:
    given = {**EVIDENCE, "esxi_host_profile": PROFILE, "esxi_host_profiles": {"esx01.lab": PROFILE}}

    CommandLine().run("rollback", given)


def test_teardown_refuses_outranking_variables_before_removal() -> None:
    given = {"inventory_hostname": "gpu", "teardown_evidence": "gpu.json", "teardown_confirm": True}

    with pytest.raises(WholeError, match=r"gpu: could not restore its hosts .* the command line sets esxi_host_image"):
        CommandLine(esxi_host_image={"components": {}}).run("teardown", given)
