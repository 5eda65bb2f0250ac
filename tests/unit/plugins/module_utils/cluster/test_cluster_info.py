"""HA policies and vSAN's answer in our own words."""

from __future__ import annotations

import json
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
