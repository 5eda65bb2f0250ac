"""The GIDs of an address, from the kernel's data, and the bandwidth between nodes, from perftest's output."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.guests import node_checks

LINK = {"index": 0, "gid": "fe80:0000:0000:0000:0250:56ff:fe01:0203", "type": "RoCE v2", "state": "4: ACTIVE"}
OLD = {"index": 2, "gid": "0000:0000:0000:0000:0000:ffff:0ad8:0128", "type": "IB/RoCE v1", "state": "4: ACTIVE"}
NEW = {**OLD, "index": 3, "type": "RoCE v2"}
OTHER = {**NEW, "index": 5, "gid": "0000:0000:0000:0000:0000:ffff:0ad8:0129"}
DOWN = {**NEW, "index": 7, "state": "1: DOWN"}
ROWS = [LINK, OLD, NEW, OTHER, DOWN]


@pytest.mark.parametrize(
    ("rows", "kind", "addresses", "indexes"),
    [
        (ROWS, "RoCE v2", ["10.216.1.40"], [3]),
        (ROWS, "RoCE v2", ["10.216.1.41", "10.216.1.40"], [5, 3]),
        (ROWS, "IB/RoCE v1", ["10.216.1.40"], [2]),
        (ROWS, "RoCE v2", [], [3, 5]),
        (ROWS, "RoCE v2", ["10.216.9.9"], []),
        ([LINK, DOWN], "RoCE v2", [], []),
        ([], "RoCE v2", ["10.216.1.40"], []),
    ],
)
def test_the_index_is_found(rows: list[dict[str, Any]], kind: str, addresses: list[str], indexes: list[int]) -> None:
    chosen = node_checks.usable_gids(rows, kind, addresses)
    assert [row["index"] for row in chosen] == indexes
    assert all(row["address"].startswith("10.216.1.") for row in chosen)


HEADING = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
GOOD = f" Dual-port : OFF\n{HEADING} 65536      5000             92.57              92.55 \t\t   0.176526\n{'-' * 87}\n"
# perftest 4.5 in an emulated guest: it wrote all data but could not determine the processor's frequency.
BLIND = f"{HEADING} 65536      5000           0.000000            0.000000            0.000000\n{'-' * 87}\n"
BLINDNESS = "Correlation coefficient r^2: 0.826522 < 0.9\n"
OTHER_UNITS = GOOD.replace("Gb/sec", "MB/sec")


@pytest.mark.parametrize(
    ("output", "gigabits"),
    [
        (GOOD, 92.55),
        (BLIND, None),
        (HEADING, None),
        ("", None),
        (OTHER_UNITS, None),
        ("Couldn't connect to n2:10999\n", None),
    ],
)
def test_the_average_is_read(output: str, gigabits: float | None) -> None:
    assert node_checks.average_gbits(output) == gigabits


def test_each_bad_pair_is_named() -> None:
    pairs = [
        {"from": "n1", "to": "n2", "output": GOOD},
        {"from": "n2", "to": "n3", "output": GOOD.replace("92.55", " 9.00")},
        {"from": "n3", "to": "n1", "output": "", "error": "Couldn't connect to n1:10999"},
        {"from": "n4", "to": "n1", "output": ""},
    ]
    assert node_checks.bandwidth_misfits(pairs, 20) == [
        "ib_write_bw from n2 to n3 measured 9 Gbit/s, less than 20.",
        "ib_write_bw from n3 to n1 measured nothing: Couldn't connect to n1:10999",
        "ib_write_bw from n4 to n1 measured nothing: it printed nothing",
    ]


def test_zero_is_too_little_even_without_a_minimum() -> None:
    pair = {"from": "n1", "to": "n2", "output": GOOD.replace("92.55", " 0.00")}
    assert node_checks.bandwidth_misfits([pair], 0) == ["ib_write_bw from n1 to n2 measured 0 Gbit/s, less than 0."]


def test_a_missing_measurement_is_not_zero() -> None:
    pair = {"from": "n1", "to": "n2", "output": BLIND, "error": BLINDNESS}
    assert node_checks.bandwidth_misfits([pair], 0) == []
    (sentence,) = node_checks.bandwidth_misfits([pair], 20)
    assert sentence == (
        "ib_write_bw from n1 to n2 wrote all data but could not measure the bandwidth with the processor's clock "
        "(Correlation coefficient r^2: 0.826522 < 0.9): run it again."
    )
    assert "no reason was printed" in node_checks.bandwidth_misfits([{**pair, "error": ""}], 20)[0]
