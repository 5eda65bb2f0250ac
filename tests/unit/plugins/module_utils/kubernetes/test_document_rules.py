"""Rules of docs/kubernetes.md as properties, from an oracle that was written from the page and not from the code."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.kubernetes.preflight import ClusterObjects
from plugins.module_utils.kubernetes.seen import tolerated_seconds

from .test_preflight import MOVED, NODES, member, results

TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
TOLERATIONS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "key": st.sampled_from((*TAINTS, "nvidia.com/gpu")),
            "operator": st.sampled_from(("Exists", "Equal")),
            "effect": st.sampled_from(("NoExecute", "NoSchedule")),
            "value": st.sampled_from(("", "true")),
            "tolerationSeconds": st.integers(0, 900),
        },
    ),
    max_size=5,
)


def stays(taint: str, tolerations: list[dict[str, Any]]) -> float:
    """Return how long a pod stays on a node with this taint, which has no value, as Kubernetes documents it."""
    limits = []
    for one in tolerations:
        matches_all = one.get("operator") == "Exists" and "key" not in one
        has_key = one.get("key") == taint and (one.get("operator") == "Exists" or not one.get("value"))
        if one.get("effect") != "NoSchedule" and (matches_all or has_key):
            limits.append(one.get("tolerationSeconds", math.inf))
    return min(limits, default=0)


@settings(max_examples=400, deadline=None)
@given(TOLERATIONS)
def test_the_shorter_of_both_tolerations_counts(tolerations: list[dict[str, Any]]) -> None:
    shorter = min(stays(taint, tolerations) for taint in TAINTS)
    assert tolerated_seconds(tolerations) == (None if math.isinf(shorter) else shorter)


@settings(max_examples=300, deadline=None)
@given(
    members=st.lists(
        st.tuples(
            st.sampled_from(("etcd", "kube-apiserver")), st.sampled_from(("kube-system", "team-a")), st.booleans()
        ),
        max_size=5,
    ),
    moved=st.sets(st.sampled_from(range(5)), min_size=1),
    at_once=st.booleans(),
)
def test_refuses_to_move_the_last_control_plane_members(
    members: list[tuple[str, str, bool]], moved: set[int], at_once: bool
) -> None:
    names = [f"cp{index}" for index in range(5)]
    pods = [
        member(component, names[index], namespace, str(is_ready))
        for index, (component, namespace, is_ready) in enumerate(members)
    ]
    takes = [moved] if at_once else [{one} for one in moved]
    expected = False
    for component, namespace in (("etcd", "kube-system"), ("kube-apiserver", "kube-system")):
        mine = [index for index, one in enumerate(members) if one[:2] == (component, namespace)]
        serving = {index for index in mine if members[index][2]}
        needed = len(mine) // 2 + 1 if component == "etcd" else 1
        expected = expected or any(serving & taken and len(serving - taken) < needed for taken in takes)
    nodes = [*NODES, *({**NODES[0], "metadata": {"name": name}} for name in names)]
    taken = [*MOVED, *(names[index] for index in sorted(moved))]
    found = results(ClusterObjects("v1.35.4", nodes, pods), moved=taken, at_once=at_once)
    assert any((severity, rule) == ("stop", "control_plane") for severity, rule, _name, _text in found) is expected
