"""The module esxi_info as Ansible calls it."""

from __future__ import annotations

from tests.fakes.calling import call
from tests.fakes.esxi import FakeFirewall, FakeHost, FakeOptions


def host(name: str) -> FakeHost:
    made = FakeHost(name)
    FakeOptions(made, Net__PVRDMAVmknic="vmk1")
    FakeFirewall(made, pvrdma=True)
    return made


def test_gathers_a_subset_of_hosts_without_writing() -> None:
    hosts = [host("esx01.lab"), host("esx02.lab")]
    for check in (True, False):
        result = call("esxi_info", hosts, check=check, gather=["pvrdma"])
        assert [entry["pvrdma"]["vmk"] for entry in result["hosts"]] == ["vmk1", "vmk1"]
        assert not result["changed"] and "failed" not in result
    assert hosts[0].writes == hosts[1].writes == []


def test_unreachable_host_fails_the_call_without_hiding_others() -> None:
    hosts = [host("esx01.lab"), host("esx02.lab")]
    hosts[1].has(runtime__connectionState="disconnected")
    strict = call("esxi_info", hosts, gather=["pvrdma"])
    assert strict["failed"] and strict["unreachable_hosts"] == ["esx02.lab"]
    assert strict["hosts"][0]["pvrdma"]["vmk"] == "vmk1"
    lenient = call("esxi_info", hosts, gather=["pvrdma"], fail_unreachable=False)
    assert "failed" not in lenient and lenient["hosts"][1]["connection"] == "disconnected"


def test_names_an_unknown_group() -> None:
    assert "value of gather must be one or more of" in call("esxi_info", [host("esx01.lab")], gather=["gpus"])["msg"]
