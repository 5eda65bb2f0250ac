"""Counters of a host under the names of real hosts: the printed words without blanks."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.hosts import network
from tests.fakes.esxi import FakeHost

REAL = {
    "NICname": "vmnic2",
    "Packetsreceived": "12",
    "Packetssent": "34",
    "Bytesreceived": "5600",
    "Bytessent": "7800",
    "ReceiveCRCerrors": "1",
    "Totaltransmiterrors": "0",
    "Receivemissederrors": "2",
}
OTHERWISE = {key[:1].lower() + key[1:]: value for key, value in REAL.items()}
SPLIT = {
    "NICName": "vmnic2",
    "PacketsReceived": "12",
    "PacketsSent": "34",
    "BytesReceived": "5600",
    "BytesSent": "7800",
}


@pytest.mark.parametrize("row", [REAL, OTHERWISE, SPLIT], ids=["real", "lower case", "camel case"])
def test_a_counter_is_identified_by_its_letters(row: dict[str, str]) -> None:
    esx: Any = FakeHost()
    esx.__dict__["esxcli"] = type("Esxcli", (), {"rows": lambda _self, _command, **_options: [row]})()
    counters = network.uplink_counters(esx, "vmnic2")
    assert {key: counters[key] for key in ("packets_received", "packets_sent", "bytes_received", "bytes_sent")} == {
        "packets_received": 12,
        "packets_sent": 34,
        "bytes_received": 5600,
        "bytes_sent": 7800,
    }
    if row is REAL:
        assert (counters["receive_crc_errors"], counters["receivemissederrors"]) == (1, 2)
