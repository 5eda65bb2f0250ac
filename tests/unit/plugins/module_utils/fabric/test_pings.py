"""The pings between hosts: all pairs, and one error for those without all answers."""

from __future__ import annotations

from plugins.module_utils.fabric import pings

ANSWERED = {"reached": True, "text": "vmk1 of esx01 -> esx02 (10.0.0.2), 8972 bytes: 3 of 3 answered"}
LOST = {"reached": False, "text": "vmk1 of esx02 -> esx01 (10.0.0.1), 8972 bytes: 0 of 3 answered (no answer)"}


def test_without_lost_pings_the_error_is_empty() -> None:
    assert pings.reach_error("gpu", "rdma", [ANSWERED]) == ""
    assert pings.reach_error("gpu", "rdma", []) == ""


def test_error_names_only_pings_with_lost_answers() -> None:
    error = f"gpu: not all hosts reach each other over switch rdma: {LOST['text']}; check VLAN and MTU of the physical"
    assert pings.reach_error("gpu", "rdma", [ANSWERED, LOST]) == f"{error} switch"


def test_each_pair_of_adapters_pings_with_the_full_mtu() -> None:
    adapters = {
        name: {"g": {"device": "vmk1", "address": f"10.0.0.{number}", "mtu": 9000 - number}}
        for number, name in enumerate("cab", start=1)
    }
    pairs = [(ping.host, ping.peer, ping.address, ping.size) for ping in pings.pings_of_pairs(adapters, ["g"])]
    assert pairs == [("a", "b", "10.0.0.3", 8969), ("a", "c", "10.0.0.1", 8970), ("b", "c", "10.0.0.1", 8969)]
    assert pings.pings_of_pairs({"a": adapters["a"]}, ["g"]) == []
