# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Bandwidth of RDMA between nodes, from lines as perftest prints them."""

from __future__ import annotations

import pytest

from plugins.module_utils.guests import rdma_bandwidth

HEADING = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
GOOD = f" Dual-port : OFF\n{HEADING} 65536      5000             92.57              92.55 \t\t   0.176526\n{'-' * 87}\n"
# perftest 4.5 in an emulated guest: all was written, and the frequency of the processor could not be told.
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
    assert rdma_bandwidth.average(output) == gigabits


def test_each_bad_pair_is_named() -> None:
    pairs = [
        {"from": "n1", "to": "n2", "output": GOOD},
        {"from": "n2", "to": "n3", "output": GOOD.replace("92.55", " 9.00")},
        {"from": "n3", "to": "n1", "output": "", "error": "Couldn't connect to n1:10999"},
        {"from": "n4", "to": "n1", "output": ""},
    ]
    assert rdma_bandwidth.misfits(pairs, 20) == [
        "ib_write_bw from n2 to n3 measured 9 Gbit/s, less than 20.",
        "ib_write_bw from n3 to n1 measured nothing: Couldn't connect to n1:10999",
        "ib_write_bw from n4 to n1 measured nothing: it printed nothing",
    ]


def test_nothing_at_all_is_too_little_also_where_no_least_is_given() -> None:
    pair = {"from": "n1", "to": "n2", "output": GOOD.replace("92.55", " 0.00")}
    assert rdma_bandwidth.misfits([pair], 0) == ["ib_write_bw from n1 to n2 measured 0 Gbit/s, less than 0."]


def test_what_was_not_measured_is_not_zero() -> None:
    pair = {"from": "n1", "to": "n2", "output": BLIND, "error": BLINDNESS}
    assert rdma_bandwidth.misfits([pair], 0) == []
    (said,) = rdma_bandwidth.misfits([pair], 20)
    assert said == (
        "ib_write_bw from n1 to n2 wrote all and could not measure how fast, by the clock of the node's processor "
        "(Correlation coefficient r^2: 0.826522 < 0.9): run it again."
    )
    assert "it does not say why" in rdma_bandwidth.misfits([{**pair, "error": ""}], 20)[0]
