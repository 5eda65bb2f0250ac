"""HA policies and vSAN's answer in our own words."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.cluster import cluster_info

POLICIES = vim.cluster


def config(policy: Any, **more: Any) -> Any:
    das = vim.cluster.DasConfigInfo(enabled=True, admissionControlEnabled=True, admissionControlPolicy=policy, **more)
    return vim.cluster.ConfigInfoEx(dasConfig=das)


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        (POLICIES.FailoverLevelAdmissionControlPolicy(failoverLevel=2), 2),
        (POLICIES.FailoverResourcesAdmissionControlPolicy(failoverLevel=1, autoComputePercentages=True), 1),
        (
            POLICIES.FailoverResourcesAdmissionControlPolicy(
                failoverLevel=1,
                autoComputePercentages=False,
                cpuFailoverResourcesPercent=25,
                memoryFailoverResourcesPercent=50,
            ),
            2,
        ),
        (POLICIES.FailoverHostAdmissionControlPolicy(failoverHosts=[]), 0),
        (None, None),
    ],
)
def test_a_policy_defines_the_number_of_reserved_hosts(policy: Any, kept: int | None) -> None:
    assert cluster_info.ha(config(policy), None, 8)["failover_hosts"] == kept


def test_reads_the_failover_level_of_an_old_cluster() -> None:
    assert cluster_info.ha(config(None, failoverLevel=1), None, 8)["failover_hosts"] == 1


def test_sums_what_vsan_still_copies() -> None:
    parts = {
        "child-1": {"attributes": {"bytesToSync": 5}},
        "child-2": {"child-1": {"attributes": {"bytesToSync": "7"}}},
    }
    assert cluster_info.resync_bytes(json.dumps({"dom_objects": {"uuid": {"config": {"content": parts}}}})) == 12
    assert cluster_info.resync_bytes(json.dumps({"dom_objects": {}})) == 0


@pytest.mark.parametrize("text", ["", "{}", "[]", "no json", None])
def test_reports_unreadable_answers_as_unknown_instead_of_zero(text: Any) -> None:
    assert cluster_info.resync_bytes(text) is None


class Host(dict[str, Any]):
    """A host whose vSAN answers with a text, or has none."""

    def __init__(self, text: str = "", *, reachable: bool = True) -> None:
        system = SimpleNamespace(QuerySyncingVsanObjects=lambda uuids: text) if text else None
        super().__init__({"configManager.vsanInternalSystem": system})
        self.name, self.reachable, self.in_maintenance = "esx1", reachable, False


@pytest.mark.parametrize(
    ("enabled", "hosts", "state"),
    [
        (None, [Host("{}")], (False, 0)),
        (False, [Host("{}")], (False, 0)),
        (True, [], (True, None)),
        (True, [Host("{}", reachable=False)], (True, None)),
        (True, [Host()], (True, None)),
        (True, [Host('{"dom_objects": {}}')], (True, 0)),
    ],
)
def test_vsan_answers_through_a_host_in_service(
    enabled: bool | None, hosts: list[Any], state: tuple[bool, Any]
) -> None:
    known = None if enabled is None else vim.vsan.cluster.ConfigInfo(enabled=enabled)

    found = cluster_info.vsan(vim.cluster.ConfigInfoEx(vsanConfigInfo=known), hosts)
    assert (found["enabled"], found["resync_bytes"]) == state
