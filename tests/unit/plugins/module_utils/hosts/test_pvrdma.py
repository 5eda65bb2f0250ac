"""PVRDMA: impossible and unwise settings, and the order of the writes."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils import runner
from plugins.module_utils.hosts import pvrdma
from plugins.module_utils.hosts.pvrdma import Pvrdma, PvrdmaSpec
from tests.fakes.esxi import FakeFirewall, FakeHost, FakeOptions, refresh
from tests.fakes.module import FakeModule
from tests.fakes.network import FakeNetwork, Switch, Vmk

VMK1 = PvrdmaSpec("vmk1")
TAGGED = ("UpdateOptions", ("Net.PVRDMAVmknic", "vmk1"))


def host(name: str = "esx01.lab", *, tag: str = "", is_open: bool = False) -> FakeHost:
    made = FakeHost(name)
    made.network = FakeNetwork().on(made)
    made.options = FakeOptions(made, Net__PVRDMAVmknic=tag)
    made.firewall = FakeFirewall(made, pvrdma=is_open)
    return made


def converge(*hosts: FakeHost, desired: PvrdmaSpec = VMK1, check: bool = False) -> dict[str, Any]:
    work = runner.Work(subjects=[Pvrdma(esx, desired) for esx in hosts], refresh=refresh)
    return runner.converge(FakeModule(check_mode=check), work)


def test_plans_a_missing_adapter_without_tagging_it() -> None:
    esx, coming = host(), PvrdmaSpec("vmk7", to_come=frozenset({"vmk7"}))
    planned = converge(esx, desired=coming, check=True)
    message = "there is no vmkernel adapter vmk7 yet; it comes with the RDMA fabric"
    assert planned["changed"] and planned["warnings"] == [f"esx01.lab: {message}"]
    assert planned["diff"][0]["after"] == {"vmk": "vmk7", "firewall_open": True}
    refused = converge(esx, desired=coming)
    assert refused["failed"] and message in refused["msg"] and esx.writes == []
    there = converge(esx, desired=PvrdmaSpec("vmk1", to_come=frozenset({"vmk1"})))
    assert there["changed"] and there["warnings"] == [] and TAGGED in esx.writes


def test_only_what_differs_is_written() -> None:
    opened = host(is_open=True)
    converge(opened)
    assert opened.writes == [TAGGED]
    tagged = host(tag="vmk1")
    converge(tagged)
    assert tagged.writes == [("EnableRuleset", "pvrdma")]


def test_keeps_allowed_ruleset_hosts_and_warns() -> None:
    esx = host()
    esx.firewall.allowed["pvrdma"] = ["10.216.0.9"]
    result = converge(esx)
    assert esx.firewall.allowed == {"pvrdma": ["10.216.0.9"]} and esx.firewall.open == {"pvrdma": True}
    assert any("lets in only 10.216.0.9" in text for text in result["warnings"])


def _second_uplink(net: FakeNetwork) -> None:
    net.switch("rdma").uplinks = ["vmnic1", "vmnic2"]


def _plain_uplink(net: FakeNetwork) -> None:
    net.switch("rdma").uplinks = ["vmnic1"]


def _no_uplink(net: FakeNetwork) -> None:
    net.switch("rdma").uplinks = []


def _lag(net: FakeNetwork) -> None:
    net.switch("rdma").lag = True


def _no_rdma(net: FakeNetwork) -> None:
    net.cards[2].rdma = None


def _iwarp(net: FakeNetwork) -> None:
    net.cards[2].roce = False


def _small_switch(net: FakeNetwork) -> None:
    net.switch("rdma").mtu = 1500


def _foreign_switch(net: FakeNetwork) -> None:
    net.switch("rdma").uplinks, net.vmks = ["vmnic2"], [*net.vmks, Vmk("vmk2", "nsx")]
    net.switches.append(Switch("nsx", [], distributed=True))


@pytest.mark.parametrize(
    ("vmk", "harm", "message"),
    [
        ("vmk7", lambda net: None, "no vmkernel adapter vmk7; there is vmk0, vmk1 (the playbook fabric builds others)"),
        ("vmk0", lambda net: None, "vmk0 is on the standard switch vSwitch0; PVRDMA works over"),
        ("vmk1", _second_uplink, "switch rdma has the uplinks vmnic1, vmnic2 of this host; an RDMA card"),
        ("vmk1", _plain_uplink, "the only uplink vmnic1 of switch rdma has no RDMA device (the host's"),
        ("vmk1", _no_uplink, "switch rdma has no uplink of this host"),
        ("vmk1", _lag, "the uplink vmnic2 of switch rdma is in a link aggregation group"),
        ("vmk1", _no_rdma, "the host has no RDMA device"),
        ("vmk1", _iwarp, "vmrdma0 of the uplink vmnic2 does not support RoCE"),
        ("vmk1", _small_switch, "vmk1 has MTU 9000, more than the 1500 of its switch rdma"),
        ("vmk2", _foreign_switch, "switch nsx has no uplink of this host"),
    ],
)  # fmt: skip
def test_refuses_an_impossible_setting_before_any_write(
    vmk: str, harm: Callable[[FakeNetwork], Any], message: str
) -> None:
    good, bad = host("esx01.lab"), host("esx02.lab")
    harm(bad.network)
    result = converge(good, bad, desired=PvrdmaSpec(vmk))
    assert result["failed"] and not result["changed"]
    assert message in result["msg"] and "esx02.lab" in result["msg"]
    assert good.writes == bad.writes == []


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (pvrdma.TAG, "ESXi 8.0.3 of this host has no option Net.PVRDMAVmknic"),
        (pvrdma.SETTLED[1], "the firewall of ESXi 8.0.3 on this host has no ruleset pvrdma"),
    ],
)
def test_a_version_without_option_or_ruleset_is_refused(path: str, message: str) -> None:
    esx = host()
    esx.properties_of({path: None})
    result = converge(esx)
    assert message in result["msg"] and esx.writes == []


def _small(net: FakeNetwork) -> None:
    net.switch("rdma").mtu = net.vmk("vmk1").mtu = 1500


def _small_vmk(net: FakeNetwork) -> None:
    net.vmk("vmk1").mtu = 4000


def _busy(net: FakeNetwork) -> None:
    net.vmk("vmk1").services = ("vmotion", "vsan")


def _down(net: FakeNetwork) -> None:
    net.cards[2].state = "down"


def _homeless(net: FakeNetwork) -> None:
    net.vmk("vmk1").address = ""


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (_small, "switch rdma has MTU 1500"),
        (_small_vmk, "vmk1 has MTU 4000, less than the 9000 of its switch rdma"),
        (_busy, "vmk1 also carries vmotion, vsan"),
        (_down, "vmrdma0 is down, not active: check the link of vmnic2"),
        (_homeless, "vmk1 has no IPv4 address"),
    ],
)
def test_an_unwise_setting_is_a_warning(harm: Callable[[FakeNetwork], Any], message: str) -> None:
    esx = host()
    harm(esx.network)
    result = converge(esx)
    assert "failed" not in result and esx.writes == [("EnableRuleset", "pvrdma"), TAGGED]
    (warning,) = result["warnings"]
    assert warning.startswith("esx01.lab: ") and message in warning


def _with_machines(esx: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = vim.vm.device.VirtualVmxnet3Vrdma()
    machines = {
        "vm-1": {"name": "worker01", "runtime.powerState": "poweredOn", "config.hardware.device": [adapter]},
        "vm-2": {"name": "worker02", "runtime.powerState": "poweredOff", "config.hardware.device": [adapter]},
        "vm-3": {"name": "jumphost", "runtime.powerState": "poweredOn", "config.hardware.device": []},
    }
    refs = [SimpleNamespace(_moId=key) for key in machines]
    esx.has(vm=refs)
    monkeypatch.setattr(
        pvrdma.properties,
        "read_many",
        lambda _session, requested, _paths: {r._moId: machines[r._moId] for r in requested},
    )


@pytest.mark.parametrize("desired", [PvrdmaSpec(None), PvrdmaSpec("vmk2")])
def test_keeps_a_tag_that_running_machines_use(desired: PvrdmaSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    esx = host(tag="vmk1", is_open=True)
    esx.network.vmks.append(Vmk("vmk2", "rdma"))
    _with_machines(esx, monkeypatch)
    planned = converge(esx, desired=desired, check=True)
    assert planned["hosts"][0]["unmet"] == [
        "worker01 runs here with a PVRDMA adapter and would lose vmk1: move the virtual machines or power them off"
    ]
    assert "worker01" in converge(esx, desired=desired)["msg"] and esx.writes == []
