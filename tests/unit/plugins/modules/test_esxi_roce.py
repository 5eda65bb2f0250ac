"""The module esxi_roce as Ansible calls it."""

from __future__ import annotations

from tests.fakes.calling import call
from tests.fakes.esxi import FakeEsxcli, FakeHost, FakeKernelModules
from tests.fakes.network import FakeNetwork


def host() -> FakeHost:
    made = FakeHost()
    FakeNetwork().on(made)
    FakeKernelModules(made, nmlx5_core="", nmlx5_rdma="")
    FakeEsxcli(made, {"network nic dcb status get": [{"PFCEnabled": "false"}]})
    return made


def test_checks_applies_and_removes_once_each() -> None:
    one = host()
    planned = call("esxi_roce", [one], check=True)
    assert planned["changed"] and one.writes == []
    assert "priority 3 enable" in planned["switch"]["onyx"] and "DCB status that the host reports" in planned["note"]
    results = [call("esxi_roce", [one], state=state) for state in ("present", "present", "absent", "absent")]
    assert [result["changed"] for result in results] == [True, False, True, False]
    assert "switch" not in results[2]


def test_refuses_contradictory_options_before_any_login() -> None:
    one = host()
    assert "DSCP 34 is of priority 4, not 3" in call("esxi_roce", [one], priority=3, dscp=34)["msg"]
    assert one.properties == {}
