"""A measurement of all pairs: records, tables, findings, and when it stops a later run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.training.pairs import pair_result
from plugins.module_utils.training.pairs.pair_result import findings

NODES = ["n1", "n2", "n3"]
GOOD = {
    "round": 0,
    "node": "n1",
    "peer": "n2",
    "gbits": [9.0, 9.1, 9.2],
    "latency_us": 21.5,
    "carried": ["ens192"],
    "devices": {"ens192": {"id": "15ad:07b0", "gbits": 10.0, "mtu": 1500, "rdma": False}},
}
CHECK = {"name": "fabric", "transport": "tcp", "nccl": "", "asked": {}, "least": 0.8, "goal": 0.0}


def output(*pairs: tuple[str, str, float]) -> str:
    both = [way for one, other, rate in pairs for way in ((one, other, rate), (other, one, rate))]
    lines = [{**GOOD, "node": node, "peer": peer, "gbits": [rate] * 3} for node, peer, rate in both]
    return "".join(json.dumps(line) + "\n" for line in lines)


ALL = output(("n1", "n2", 9.0), ("n1", "n3", 9.0), ("n2", "n3", 9.0))


def result(text: str = ALL, job: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return pair_result.result({**CHECK, "nodes": NODES, **more}, text, job or {"started": 1.0, "ended": 100.0})


def test_a_good_measurement_has_no_findings() -> None:
    good = result()
    assert (good["findings"], good["malformed"], len(good["pairs"])) == ([], 0, 3)
    assert good["cards"][0] == {
        "node": "n1",
        "device": "ens192",
        "card": "VMXNET3",
        "link_gbits": 10.0,
        "expected_gbits": None,
        "source": "not established for VMXNET3",
        "best_gbits": 9.0,
        "median_gbits": 9.0,
        "least_gbits": 9.0,
    }
    shown = pair_result.lines(good)
    assert shown[0] == "3 pairs of 3 nodes by tcp, MPI messages, Gbit/s"
    assert shown[2].split() == ["n1", "ens192", "VMXNET3", "9.00", "9.00", "9.00", "-"]
    assert shown[-2:] == ["Slowest pairs: n1 - n2: 9.00, n1 - n3: 9.00, n2 - n3: 9.00", "No findings."]


@pytest.mark.parametrize(
    "broken",
    [
        *("", "{}", "[]", "nonsense", json.dumps({**GOOD, "node": "n9"}), json.dumps({**GOOD, "peer": "n1"})),
        *(json.dumps({**GOOD, "gbits": rates}) for rates in ([], [-1.0], [float("nan")], ["9"], [True], None)),
        *(json.dumps({**GOOD, "carried": names}) for names in (["<b>"], [1], None)),
        json.dumps({**GOOD, "devices": {"ens192": {"id": "<script>"}}}),
        *(json.dumps({**GOOD, "node": node}) for node in ([], {}, None, 1)),
        json.dumps({**GOOD, "latency_us": 10**400}),
    ],
)
def test_a_malformed_record_is_counted_and_left_out(broken: str) -> None:
    text = json.dumps(GOOD) + "\n" + broken + "\n"
    records, malformed = pair_result.parsed(text, NODES)
    assert (len(records), malformed) == (1, 1 if broken else 0)


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    records, malformed = pair_result.parsed(text, NODES)
    assert records == []
    assert malformed >= 0


def test_names_unmeasured_pairs_with_the_cause() -> None:
    (found,) = result(output(("n1", "n2", 9.0)), {"why": "the launcher lost the node n3"})["findings"]
    assert found["text"] == "n1 and n3 and 1 more pairs were not measured: the launcher lost the node n3."
    assert found["nodes"] == NODES


def test_a_stalled_pair_is_named_once() -> None:
    why = "rank 1 on n2 ended: StalledPairError: the pair n2 and n3 moved no data for 30 s"
    (found,) = result("", {"why": why, "last_lines": [why]})["findings"]
    assert (found["rule"], found["nodes"]) == ("stalled-pair", ["n2", "n3"])
    assert "moved no data for 30 s, so the measurement was stopped. Check that the MTU" in found["text"]


SLOW = result(output(("n1", "n2", 9.0), ("n1", "n3", 1.0), ("n2", "n3", 1.0)))


@pytest.mark.parametrize(
    ("checks", "nodes", "now", "count"),
    [
        ([SLOW], NODES, 150.0, 1),
        ([SLOW], ["n1", "n2"], 150.0, 0),
        ([SLOW], ["n3", "n4"], 150.0, 0),
        ([SLOW], NODES, 300.0, 0),
        ([SLOW, {**result(), "ended": 140.0}], NODES, 150.0, 0),
        ([{**result(), "ended": 140.0}, SLOW], NODES, 150.0, 0),
        ([SLOW, {**result(), "ended": 140.0, "transport": "rdma"}], NODES, 150.0, 1),
        ([result("", {"ended": 100.0})], ["n1", "n2"], 150.0, 1),
    ],
)
def test_the_latest_recent_check_blocks_a_run(
    checks: list[dict[str, Any]], nodes: list[str], now: float, count: int
) -> None:
    stopping = pair_result.stops(checks, nodes, now, 100.0)
    assert len(stopping) == count
    assert all(text.startswith("fabric: ") for text in stopping)


def device(identifier: str, gbits: float, mtu: int = 1500, rdma: bool = False) -> dict[str, Any]:
    return {"id": identifier, "gbits": gbits, "mtu": mtu, "rdma": rdma}


@pytest.mark.parametrize(
    ("mtu", "rdma", "percent"),
    [(1500, False, 94.1), (9000, False, 99.0), (1500, True, 92.6), (9000, True, 98.0), (4200, True, 98.0)],
)
def test_headers_take_a_share_of_the_link(mtu: int, rdma: bool, percent: float) -> None:
    assert round(100 * pair_result.payload_share(mtu, rdma), 1) == percent


@pytest.mark.parametrize(
    ("unknown", "source"),
    [
        (device("15ad:07b0", 10), "not established for VMXNET3"),
        (device("15ad:0820", 100, rdma=True), "not established for PVRDMA"),
        (device("1af4:1000", 0), "not established for virtio"),
        (device("8086:1592", 100), "not established for 8086:1592"),
        (device("", 0), "not established for unknown card"),
        (device("15b3:1015", 100, rdma=True), "not established for ConnectX-4 Lx at 100 Gbit/s"),
        (device("15b3:1017", 100), "not established for one TCP connection at 100 Gbit/s"),
    ],
)
def test_expects_nothing_from_a_nominal_or_unknown_rate(unknown: dict[str, Any], source: str) -> None:
    assert pair_result.expected(unknown) == pair_result.Expected(None, source)


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
