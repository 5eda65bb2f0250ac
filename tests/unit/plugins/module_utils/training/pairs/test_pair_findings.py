"""The findings of a measurement of all pairs: a slow node, a slow pair, a wrong card, and less than expected."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.training.pairs import pair_result
from plugins.module_utils.training.pairs.pair_result import findings

VETH = {"id": "", "gbits": 10.0, "mtu": 1500, "rdma": False}
CONNECTX = {"id": "15b3:1015", "gbits": 25.0, "mtu": 9000, "rdma": False}


def record(node: str, peer: str, gbits: float, **more: Any) -> dict[str, Any]:
    found = {"node": node, "peer": peer, "gbits": [gbits] * 3, "latency_us": 20.0, "carried": ["eth1"]}
    return {**found, "devices": {"eth1": VETH}, **more}


def measured(count: int, slow: Mapping[tuple[int, int], float], **more: Any) -> list[dict[str, Any]]:
    """Return the records of all pairs of nodes; slow contains the rates from one to another."""
    both = [way for pair in combinations(range(count), 2) for way in (pair, pair[::-1])]
    return [record(f"n{one}", f"n{other}", slow.get((one, other), 9.0), **more) for one, other in both]


def rules(records: list[dict[str, Any]], goal: float = 0.0, **requested: list[str]) -> list[tuple[str, list[str]]]:
    return [(each["rule"], each["nodes"]) for each in findings(records, requested, 0.8, goal)]


@given(st.integers(3, 12), st.data())
def test_a_node_slow_everywhere_is_the_only_finding(count: int, data: st.DataObject) -> None:
    bad = data.draw(st.integers(0, count - 1))
    slow = {(bad, other): data.draw(st.floats(0.1, 7.1)) for other in range(count) if other != bad}
    assert rules(measured(count, slow)) == [("slow-node", [f"n{bad}"])]


@given(st.integers(3, 12), st.data())
def test_a_slow_pair_is_the_only_finding(count: int, data: st.DataObject) -> None:
    first, second = sorted(data.draw(st.permutations(range(count)))[:2])
    assert rules(measured(count, {(second, first): 2.0})) == [("slow-pair", sorted([f"n{first}", f"n{second}"]))]


@given(st.integers(2, 12), st.floats(0.1, 400.0), st.data())
def test_equal_pairs_have_no_finding(count: int, rate: float, data: st.DataObject) -> None:
    ways = [way for pair in combinations(range(count), 2) for way in (pair, pair[::-1])]
    near = {way: rate * data.draw(st.floats(0.9, 1.0)) for way in ways}
    assert rules(measured(count, near)) == []


def test_the_traffic_through_another_card_is_named() -> None:
    records = measured(3, {})
    for each in records:
        each["carried"] = ["eth0"] if each["node"] == "n1" else ["eth1", "bond0"]
    (found,) = findings(records, {"n0": ["eth1"], "n1": ["eth1"], "n2": ["eth1"]}, 0.8, 0.0)
    assert (found["rule"], found["nodes"]) == ("wrong-card", ["n1"])
    assert found["text"].startswith("n1 sends through eth0 and not through eth1.")


def test_accepts_any_card_without_counters_or_requests() -> None:
    assert rules(measured(2, {}, carried=[]), n0=["mlx5_0"], n1=["mlx5_0"]) == []
    assert rules(measured(2, {}), n0=[], n1=[]) == []


def test_compares_two_nodes_with_their_cards_bandwidth() -> None:
    slow = {(0, 1): 12.0, (1, 0): 12.0}
    (found,) = findings(measured(2, slow, devices={"eth1": CONNECTX}), {}, 0.8, 0.0)
    assert found["rule"] == "below-expected"
    assert found["text"].startswith("n0 and n1 reach 12.00 Gbit/s, less than the expected 19.8")
    assert rules(measured(2, slow)) == []


@pytest.mark.parametrize(("value", "words"), [(94.123, "94.12"), (1.0, "1.00"), (0.01549, "0.0155"), (0.0, "0")])
def test_slow_links_have_three_digits(value: float, words: str) -> None:
    assert pair_result.in_gbits(value) == words
