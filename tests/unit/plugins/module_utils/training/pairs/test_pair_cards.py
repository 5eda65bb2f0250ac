"""The payload that a network card can carry, and the cards for which nothing is established."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.training.pairs import pair_result


def device(identifier: str, gbits: float, mtu: int = 1500, rdma: bool = False) -> dict[str, Any]:
    return {"id": identifier, "gbits": gbits, "mtu": mtu, "rdma": rdma}


@pytest.mark.parametrize(
    ("mtu", "rdma", "percent"),
    [(1500, False, 94.1), (9000, False, 99.0), (1500, True, 92.6), (9000, True, 98.0), (4200, True, 98.0)],
)
def test_headers_take_a_share_of_the_link(mtu: int, rdma: bool, percent: float) -> None:
    assert round(100 * pair_result.payload_share(mtu, rdma), 1) == percent


@pytest.mark.parametrize(
    ("known", "name", "gbits"),
    [
        (device("15b3:1015", 25), "ConnectX-4 Lx", 23.5),
        (device("15b3:1017", 100, 9000, rdma=True), "ConnectX-5", 98.0),
        (device("15b3:101b", 200, 4200, rdma=True), "ConnectX-6", 196.1),
        (device("15b3:1021", 200, 9000, rdma=True), "ConnectX-7", 196.1),
        (device("15b3:101d", 10, 9000), "ConnectX-6 Dx", 9.9),
    ],
)
def test_a_physical_card_carries_its_payload_rate(known: dict[str, Any], name: str, gbits: float) -> None:
    expected = pair_result.expected(known)
    assert pair_result.name(known) == name
    assert expected.gbits is not None
    assert round(expected.gbits, 1) == gbits
    assert "less the headers of IEEE 802.3" in expected.source


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
