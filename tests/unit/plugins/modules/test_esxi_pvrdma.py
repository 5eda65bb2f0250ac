"""The module esxi_pvrdma as Ansible calls it."""

from __future__ import annotations

from tests.fakes.calling import call
from tests.fakes.esxi import FakeFirewall, FakeHost, FakeOptions
from tests.fakes.network import FakeNetwork


def host() -> FakeHost:
    made = FakeHost()
    FakeNetwork().on(made)
    FakeOptions(made, Net__PVRDMAVmknic="")
    FakeFirewall(made, pvrdma=False)
    return made


def test_checks_applies_and_removes_once_each() -> None:
    one = host()
    assert call("esxi_pvrdma", [one], vmk="vmk1", check=True)["changed"] and one.writes == []
    counts = []
    for options in ({"vmk": "vmk1"}, {"vmk": "vmk1"}, {"state": "absent"}, {"state": "absent"}):
        before = len(one.writes)
        result = call("esxi_pvrdma", [one], **options)
        counts.append((result["changed"], len(one.writes) - before))
    assert counts == [(True, 2), (False, 0), (True, 2), (False, 0)]


def test_absent_keeps_the_firewall_open_on_request() -> None:
    one = host()
    call("esxi_pvrdma", [one], vmk="vmk1")
    assert call("esxi_pvrdma", [one], state="absent", close_firewall=False)["hosts"][0]["state"]["firewall_open"]


def test_present_needs_an_adapter() -> None:
    assert "state is present but all of the following are missing: vmk" in call("esxi_pvrdma", [host()])["msg"]
