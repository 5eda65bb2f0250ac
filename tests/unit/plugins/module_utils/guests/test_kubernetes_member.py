"""A worker as a node of Kubernetes: its labels come from proofs, and outdated labels are reported."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.guests import kubernetes_member

from .test_node_checks import AS_MEMBER, JOINED, LIMITS, MEMBER, OWN, PROVEN


def with_labels(labels: dict[str, str]) -> dict[str, Any]:
    return {**MEMBER, "node": {**JOINED, "metadata": {"name": "w1", "labels": labels}}}


def test_labels_come_from_proofs() -> None:
    assert kubernetes_member.labels(PROVEN) == OWN
    assert kubernetes_member.labels({**PROVEN, "dml_rdma": {"proven": False, "why": "no device"}}) == {
        name: value for name, value in OWN.items() if "rdma" not in name
    }
    assert kubernetes_member.labels({}) == {}


def test_names_a_missing_or_outdated_label() -> None:
    left = with_labels({**OWN, "dml.vsphere/gpus": "2", "dml.vsphere/old": "1"})
    assert kubernetes_member.misfits(left, AS_MEMBER) == [
        "Its label dml.vsphere/gpus is 2, not 1.",
        "Its label dml.vsphere/old is 1, not missing.",
    ]
    assert len(kubernetes_member.misfits(with_labels({}), AS_MEMBER)) == len(OWN)


def test_an_unready_node_reports_the_reason() -> None:
    for conditions, words in (
        ([{"type": "Ready", "status": "False", "message": "PLEG is not healthy"}], "PLEG is not healthy"),
        ([], "its kubelet has not reported"),
    ):
        node = {**JOINED, "status": {**JOINED["status"], "conditions": conditions}}
        assert kubernetes_member.misfits({**MEMBER, "node": node}, AS_MEMBER) == [f"The node is not ready: {words}."]


@pytest.mark.parametrize(
    ("limits", "memlock", "is_stale"),
    [
        (LIMITS, "unlimited", False),
        (LIMITS, "8388608", True),
        (LIMITS.replace("unlimited", "8388608"), 8388608, False),
        (LIMITS.replace("unlimited", "8388608"), "unlimited", True),
        ("", "unlimited", False),
    ],
)
def test_a_runtime_with_another_limit_is_restarted(limits: str, memlock: Any, is_stale: bool) -> None:
    facts = kubernetes_member.facts({**MEMBER, "limits": limits}, {**AS_MEMBER, "memlock": memlock})
    assert facts["is_stale"] is is_stale


def test_facts_name_the_versions_and_count_the_gpus() -> None:
    facts = kubernetes_member.facts(MEMBER, AS_MEMBER)
    assert (facts["version"], facts["runtime"], facts["gpus"]) == ("v1.35.4", "containerd://1.6.20", 1)
    assert not facts["is_missing"] and kubernetes_member.facts({**MEMBER, "node": {}}, AS_MEMBER)["is_missing"]
