"""Lossless RoCE on a host: two modules in one plan, other users of the cards, and the DCB status afterwards."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils import runner
from plugins.module_utils.errors import Refused
from plugins.module_utils.hosts import roce
from plugins.module_utils.hosts.roce import Roce, RoceSpec
from plugins.module_utils.hosts.roce_settings import lossless_roce
from tests.fakes.esxi import BOOTED, FakeEsxcli, FakeHost, FakeKernelModules, no_dcb, refresh
from tests.fakes.module import FakeModule
from tests.fakes.network import Card, FakeNetwork, Vmk

DSCP = RoceSpec(lossless_roce(3, "dscp"))
PCP = RoceSpec(lossless_roce(3, "pcp"))
ABSENT = RoceSpec(None)
CORE = "pfctx=0x08 pfcrx=0x08 trust_state=2"


def host(name: str = "esx01.lab", *, core: str = "max_vfs=8", rdma: str = "", pfc: int | None = None) -> FakeHost:
    made = FakeHost(name)
    made.network = FakeNetwork().on(made)
    made.modules = FakeKernelModules(made, nmlx5_core=core, nmlx5_rdma=rdma)
    made.esxcli_ = FakeEsxcli(made, {"network nic dcb status get": lambda nicname: [_status(nicname, pfc)]})
    return made


def _status(nic: str, priority: int | None) -> dict[str, str]:
    flags = " ".join("1" if number == priority else "0" for number in range(8))
    return {"Nic": nic, "PFCEnabled": str(priority is not None).lower(), "PFCConfiguration": flags}


def converge(*hosts: FakeHost, desired: RoceSpec = DSCP, check: bool = False) -> dict[str, Any]:
    work = runner.Work(subjects=[Roce(esx, desired) for esx in hosts], refresh=refresh)
    return runner.converge(FakeModule(check_mode=check), work)


def strings_written(esx: FakeHost) -> list[tuple[Any, ...]]:
    return [write[1:] for write in esx.writes if write[0] == "UpdateModuleOptionString"]


def test_names_a_configured_card_without_flow_control() -> None:
    esx = host(core=CORE, rdma="dscp_force=26", pfc=5)
    result = converge(esx)
    assert not result["changed"] and result["needs"] == []
    silent, beyond = result["warnings"]
    assert "vmnic2 shows no flow control on priority 3 although the options are set" in silent
    assert "vmnic2 does flow control on priority 5 too" in beyond and "the card does not report its DCBX" in beyond


def _dcbx(esx: FakeHost, willing: int, priorities: str = "0 0 0 0 0 0 0 0") -> None:
    """Let the card take part in DCBX; the exchanged settings are a record within the answer."""
    ets = {"WillingBitInETSConfigTLV": str(willing), "SupportedCapacity": "8"}
    esx.esxcli_.answers["network nic dcb status get"] = [
        {
            "Nic": "vmnic2",
            "Mode": "3 - IEEE Mode",
            "PFCEnabled": "true",
            "PFCConfiguration": priorities,
            "IEEEETSConfiguration": ets,
        }
    ]


@pytest.mark.parametrize(
    ("willing", "priorities", "message"),
    [
        (1, "0 0 0 0 0 0 0 0", "vmnic2: DCBX in mode IEEE, the card adopts the settings that the switch announces"),
        (
            0,
            "0 0 0 0 0 0 0 0",
            "vmnic2: DCBX in mode IEEE, the card does not adopt the settings that the switch announces",
        ),
        (
            1,
            "0 0 0 1 0 1 0 0",
            "vmnic2 does flow control on priority 5 too, which its options do not set: DCBX in mode",
        ),
    ],
)
def test_warns_about_settings_that_dcbx_may_overrule(willing: int, priorities: str, message: str) -> None:
    esx = host(core=CORE, rdma="dscp_force=26")
    _dcbx(esx, willing, priorities)
    result = converge(esx)
    assert message in " ".join(result["warnings"]) and not result["changed"]
    assert result["hosts"][0]["state"]["dcbx"] == {"vmnic2": {"mode": "ieee", "willing": bool(willing)}}


def test_reports_cards_without_dcb_as_unknown() -> None:
    esx = host(core=CORE, rdma="dscp_force=26")
    esx.esxcli_.answers["network nic dcb status get"] = lambda nicname: no_dcb(esx, nicname)
    result = converge(esx)
    assert "failed" not in result and result["hosts"][0]["state"]["pfc"] == {"vmnic2": None}
    (warning,) = result["warnings"]
    assert "whether vmnic2 does flow control is unknown: esxcli said DCB not supported" in warning


def test_changing_the_trust_removes_the_other_mark() -> None:
    esx = host(core=CORE, rdma="dscp_force=26")
    _with_port_groups(esx, [{"name": "rdma-vm", "switch": "rdma", "vlan": 216, "tagged": True}])
    converge(esx, desired=PCP)
    assert esx.modules.strings == {"nmlx5_core": CORE.replace("=2", "=1"), "nmlx5_rdma": "pcp_force=3"}


def test_absent_removes_only_its_options_until_a_boot() -> None:
    esx = host(core=f"max_vfs=8 {CORE}", rdma="dscp_force=26")
    result = converge(esx, desired=ABSENT)
    assert esx.modules.strings == {"nmlx5_core": "max_vfs=8", "nmlx5_rdma": ""}
    assert result["needs"] == ["reboot"]
    assert any(
        "flow control on priority 3 is switched off" in text
        for text in converge(host(core=CORE), desired=ABSENT)["warnings"]
    )
    esx.has(runtime__bootTime=BOOTED + timedelta(minutes=10))
    rested = converge(esx, desired=ABSENT)
    assert not rested["changed"] and rested["needs"] == [] and rested["warnings"] == []


@pytest.mark.parametrize(
    ("cards", "message"),
    [
        ([Card("vmnic0")], "the host has no RDMA device"),
        ([Card("vmnic2", "bnxtnet", "vmrdma0")], "vmnic2 uses bnxtnet; options are known for nmlx5_core, nmlx4_en"),
        ([Card("vmnic2", "nmlx5_core", "vmrdma0"), Card("vmnic3", "bnxtnet", "vmrdma1")], "vmnic3 uses bnxtnet"),
    ],
)
def test_refuses_unconfigurable_cards_by_name(cards: list[Card], message: str) -> None:
    good, bad = host("esx01.lab"), host("esx02.lab")
    bad.network.cards = cards
    result = converge(good, bad)
    assert message in result["msg"] and "esx02.lab" in result["msg"]
    assert good.writes == bad.writes == []


def _hba(kind: str) -> Any:
    if kind == "iSER":
        return vim.host.InternetScsiHba(device="vmhba64", driver="iser")
    return vim.host.RdmaHba(device="vmhba64", associatedRdmaDevice="vmrdma0")


def _share(esx: FakeHost, user: str) -> None:
    if user == "vSAN":
        esx.network.vmks.append(Vmk("vmk2", "rdma", services=("vsan",)))
    else:
        esx.properties_of({"config.storageDevice.hostBusAdapter": [_hba(user)]})


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ("vSAN", "vSAN (vmk2 over vmnic2)"),
        ("NVMe over RDMA", "NVMe over RDMA (vmhba64 over vmnic2)"),
        ("iSER", "iSER (vmhba64 over an unknown card)"),
    ],
)
def test_refuses_a_shared_card_until_acknowledged(user: str, message: str) -> None:
    esx = host()
    _share(esx, user)
    refused = converge(esx)
    assert message in refused["msg"] and "acknowledge_shared_nic" in refused["msg"] and esx.writes == []
    assert message not in str(converge(esx, desired=RoceSpec(DSCP.lossless, acknowledged=True)).get("msg"))
    assert len(strings_written(esx)) == 2
    assert "failed" not in converge(esx), "nothing is left to change, so no other user is affected"


def _with_port_groups(esx: FakeHost, groups: list[dict[str, Any]]) -> None:
    esx.groups = {f"dvportgroup-{index}": group for index, group in enumerate(groups)}


@pytest.fixture(autouse=True)
def _port_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roce, "reachable_port_groups", lambda _session, hosts: hosts[0].groups)


def test_trust_pcp_needs_a_vlan_tag() -> None:
    bare, mixed, foreign = host("esx01.lab"), host("esx02.lab"), host("esx03.lab")
    untagged = {"name": "rdma-vm", "switch": "rdma", "vlan": None, "tagged": False}
    _with_port_groups(bare, [untagged, {"name": "lan", "switch": "lan", "vlan": 5, "tagged": True}])
    refused = converge(bare, desired=PCP)
    assert "no port group of rdma has a VLAN" in refused["msg"] and bare.writes == []
    _with_port_groups(mixed, [untagged, {"name": "rdma-vmk", "switch": "rdma", "vlan": 216, "tagged": True}])
    assert any("the port groups rdma-vm have no VLAN" in text for text in converge(mixed, desired=PCP)["warnings"])
    _with_port_groups(foreign, [{"name": "lan", "switch": "lan", "vlan": None, "tagged": False}])
    assert "failed" not in converge(foreign, desired=PCP)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"priority": 3, "trust": "dscp", "dscp": 34}, "DSCP 34 is of priority 4"),
        ({"priority": 9, "trust": "dscp", "dscp": None}, "The PFC priority 9"),
    ],
)
def test_options_that_contradict_each_other_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        roce.spec_of({**params, "state": "present", "acknowledge_shared_nic": False})


def test_warns_about_foreign_flow_control_on_its_ports() -> None:
    result = converge(host(core="pfctx=0x18 pfcrx=0x18"))
    assert any("flow control on priority 4 is switched off" in text for text in result["warnings"])
